"""Modules that return a row for each node, in the manner of public repositories."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

V, D, H, CLASSES = 20, 6, 5, 3


class Phrase:
    """A node that lists the nodes of its tree, the parts of a phrase before the phrase."""

    def __init__(self, word, children=()):
        self.word = word
        self.children = list(children)
        self.state = None

    def nodes(self):
        found = [node for child in self.children for node in child.nodes()]
        return [*found, self]


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, D)
        self.join = nn.Linear(D + H, H)
        self.out = nn.Linear(H, CLASSES)

    def cell(self, node, below):
        summed = sum(below, torch.zeros(H))
        return torch.tanh(self.join(torch.cat([self.emb(torch.tensor(node.word)), summed])))


class PhraseSentiment(Encoder):
    """The sentiment of every phrase: states are appended to a list, and one layer takes them all."""

    def encode(self, node, states):
        h = self.cell(node, [self.encode(child, states) for child in node.children])
        states.append(h)
        return h

    def forward(self, tree):
        states = []
        self.encode(tree, states)
        return F.log_softmax(self.out(torch.stack(states)), dim=1)


class StoredStates(Encoder):
    """The states that nodes hold, in the tree's own order."""

    def encode(self, node):
        node.state = self.cell(node, [self.encode(child) for child in node.children])
        return node.state

    def forward(self, tree):
        self.encode(tree)
        return torch.stack([node.state for node in tree.nodes()])


class CollectingModule(Encoder):
    """An attribute of the module collects; the labels are what is asked for."""

    def encode(self, node):
        h = self.cell(node, [self.encode(child) for child in node.children])
        self.collected.append(self.out(h).unsqueeze(0))
        return h

    def forward(self, tree):
        self.collected = []
        root = self.encode(tree)
        scores = torch.cat(self.collected, 0)
        return root, scores, scores.argmax(1)


class MergedLists(Encoder):
    """Lists of pairs go up with the states."""

    def encode(self, node):
        states, found = [], []
        for child in node.children:
            h, below = self.encode(child)
            states.append(h)
            found += below
        h = self.cell(node, states)
        return h, [*found, (h, self.out(h))]

    def forward(self, tree):
        h, found = self.encode(tree)
        return {"root": self.out(h), "all": found}


class SceneAttention(Encoder):
    """Top-down states, with the weights of attention over all nodes and the vector they make."""

    def up(self, node):
        node.state = self.cell(node, [self.up(child) for child in node.children])
        return node.state

    def down(self, node, above, rows):
        h = torch.tanh(node.state + above)
        rows.append(h)
        for child in node.children:
            self.down(child, h, rows)

    def forward(self, tree):
        rows = []
        self.up(tree)
        self.down(tree, torch.zeros(H), rows)
        states = torch.stack(rows)
        weights = F.softmax(states @ self.out.weight[0], dim=0)
        return weights, weights @ states, states - states.mean(0)


class LeavesThenAll(Encoder):
    """Two lists, one after the other, the last one backwards; then what belongs to no node alone."""

    def encode(self, node, leaves, every):
        h = self.cell(node, [self.encode(child, leaves, every) for child in node.children])
        if not node.children:
            leaves.append(h)
        every.append(h)
        return h

    def forward(self, tree):
        leaves, every = [], []
        h = self.encode(tree, leaves, every)
        return torch.stack([*leaves, *every[::-1], h], dim=1)


MODULES = (PhraseSentiment, StoredStates, CollectingModule, MergedLists, SceneAttention, LeavesThenAll)


class PairsOfRows(PhraseSentiment):
    """What rows have to do with one another: refused."""

    def forward(self, tree):
        states = []
        self.encode(tree, states)
        rows = torch.stack(states)
        return torch.stack([rows[i] * rows[i - 1] for i in range(len(states))])

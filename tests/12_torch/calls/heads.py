"""Modules whose forward does more than to call itself: heads, several routines, two trees, two passes."""

from __future__ import annotations

import torch
from bottom_up import ChildSum, D, H
from nodes import WORDS
from torch import nn
from torch.nn import functional as F


class Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(WORDS, H)
        self.one, self.two = nn.Linear(H, H), nn.Linear(2 * H, H)
        self.out = nn.Linear(H, 3)


class RootClassifier(Parts):
    """A classifier of the root."""

    def encode(self, node):
        if node.left is None and node.right is None:
            return self.emb(torch.tensor(node.word))
        return torch.tanh(self.two(torch.cat((self.encode(node.left), self.encode(node.right)))))

    def forward(self, tree):
        return F.log_softmax(self.out(self.encode(tree)), dim=-1)


class NodeClassifier(Parts):
    """Scores of every node with its state."""

    def forward(self, node):
        if node.is_leaf():
            h = self.emb(torch.tensor(node.word))
        else:
            h = torch.tanh(self.two(torch.cat([self(node.left)["h"], self(node.right)["h"]])))
        return {"h": h, "scores": self.out(h)}


class TwoTrees(nn.Module):
    """Comparison of two trees by one encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = ChildSum()
        self.hidden, self.out = nn.Linear(2 * H, 4), nn.Linear(4, 3)

    def forward(self, left, right):
        (_, a), (_, b) = self.encoder(left), self.encoder(right)
        features = torch.cat((a * b, torch.abs(a - b)), 1)
        return F.log_softmax(self.out(torch.sigmoid(self.hidden(features))), dim=1)


class Inputs(nn.Module):
    """Words in tensors beside the trees, embedded as a whole and indexed by node.idx."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(WORDS, D)
        self.cell = ChildSum()
        self.out = nn.Linear(2 * H, 3)

    def encode(self, tree, inputs):
        for child in tree.children:
            self.encode(child, inputs)
        if not tree.children:
            c, h = inputs[0].detach().new_zeros(1, H), inputs[0].new_zeros(1, H)
        else:
            c, h = zip(*map(lambda child: child.state, tree.children))  # noqa: B905, C417 - as people write it
            c, h = torch.cat(c, dim=0), torch.cat(h, dim=0)
        tree.state = self.cell.node_forward(inputs[tree.idx].unsqueeze(0), c, h)
        return tree.state

    def forward(self, left, left_words, right, right_words):
        _, a = self.encode(left, self.emb(left_words))
        _, b = self.encode(right, self.emb(right_words))
        return self.out(torch.cat([a, b], 1))


class Memo(Parts):
    """A memo dictionary for nodes that are shared."""

    def encode(self, node, memo):
        if id(node) in memo:
            return memo[id(node)]
        h = self.emb(torch.tensor(node.word))
        for child in node.children:
            h = h + self.one(self.encode(child, memo))
        memo[id(node)] = torch.tanh(h)
        return memo[id(node)]

    def forward(self, node):
        return self.encode(node, {})


class EvenOdd(Parts):
    """Two methods that call each other."""

    def even(self, node):
        h = self.emb(torch.tensor(node.word))
        for child in node.children:
            h = h + self.odd(child)
        return torch.tanh(self.one(h))

    def odd(self, node):
        h = self.emb(torch.tensor(node.word))
        for child in node.children:
            h = h * self.even(child)
        return torch.sigmoid(h)

    def forward(self, tree):
        return self.even(tree)


class Visitor(Parts):
    """A method for each kind of node, called by the nodes."""

    def visit_word(self, node):
        return self.emb(torch.tensor(node.word))

    def visit_sum(self, node):
        return torch.tanh(self.one(node.left.accept(self) + node.right.accept(self)))

    def visit_product(self, node):
        return torch.tanh(self.two(torch.cat([node.left.accept(self), node.right.accept(self)])))

    def forward(self, node):
        return node.accept(self)


class Flag(Parts):
    """A constant that differs from call to call."""

    def encode(self, node, is_left=False):
        if node.left is None:
            return self.emb(torch.tensor(node.word)) * (2 if is_left else 1)
        return torch.tanh(self.two(torch.cat([self.encode(node.left, True), self.encode(node.right)])))

    def forward(self, node, scale=1.0):
        return self.encode(node) * scale


class Pooling(Parts):
    """The mean over all nodes."""

    def encode(self, node):
        if node.left is None:
            node.h = self.emb(torch.tensor(node.word))
        else:
            node.h = torch.tanh(self.one(self.encode(node.left) + self.encode(node.right)))
        return node.h

    def forward(self, tree):
        self.encode(tree)
        return self.out(torch.stack([node.h for node in tree.nodes()]).mean(0))


class Forests(RootClassifier):
    """A list of trees as the argument."""

    def forward(self, trees):
        return self.out(torch.stack([self.encode(tree) for tree in trees]).sum(0))


class UpAndDown(Parts):
    """Bottom-up, then top-down, then both at the leaves; all states on the nodes."""

    def up(self, node):
        if node.left is None:
            node.up = self.emb(torch.tensor(node.word))
        else:
            self.up(node.left)
            self.up(node.right)
            node.up = torch.tanh(self.one(node.left.up - node.right.up))

    def down(self, node, above):
        node.down = torch.tanh(self.two(torch.cat([node.up, above])))
        if node.left is not None:
            self.down(node.left, node.down)
            self.down(node.right, node.down)

    def total(self, node):
        if node.left is None:
            return self.out(node.up) + self.out(node.down)
        return self.total(node.left) + self.total(node.right)

    def forward(self, tree):
        self.up(tree)
        self.down(tree, torch.zeros(H))
        return self.total(tree)


class Bidirectional(Parts):
    """The root has no state above it; the result is a pair."""

    def up(self, node):
        h = self.emb(torch.tensor(node.word))
        for child in node.children:
            h = h + self.up(child)
        node.u = torch.tanh(self.one(h))
        return node.u

    def down(self, node, above=None):
        node.d = node.u if above is None else torch.tanh(self.two(torch.cat([node.u, above])))
        for child in node.children:
            self.down(child, node.d)

    def total(self, node):
        scores = self.out(node.d)
        for child in node.children:
            scores = scores + self.total(child)
        return scores

    def forward(self, tree):
        root = self.up(tree)
        self.down(tree)
        return root, self.total(tree)


class Accumulated(Parts):
    """What is passed down differs from child to child, and results come back up."""

    def forward(self, node, above=None):
        if above is None:
            above = torch.zeros(H)
        if node.left is None:
            return torch.tanh(above + self.emb(torch.tensor(node.word)))
        return self(node.left, torch.tanh(self.one(above + 1))) + self.forward(node.right, torch.sigmoid(above))

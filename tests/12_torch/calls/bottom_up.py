"""Modules whose forward calls itself, in the styles people use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from nodes import WORDS, Leaf, Op
from torch import nn

D, H = 6, 4


class ChildSum(nn.Module):
    """States stored on the nodes, a batch dimension of 1, loops over range(len(...)), zip and map."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(WORDS, D)
        self.ioux, self.iouh = nn.Linear(D, 3 * H), nn.Linear(H, 3 * H)
        self.fx, self.fh = nn.Linear(D, H), nn.Linear(H, H)

    def node_forward(self, x, child_c, child_h):
        child_h_sum = torch.sum(child_h, dim=0, keepdim=True)
        i, o, u = torch.split(self.ioux(x) + self.iouh(child_h_sum), H, dim=1)
        f = torch.sigmoid(self.fh(child_h) + self.fx(x).repeat(len(child_h), 1))
        c = torch.sigmoid(i) * torch.tanh(u) + torch.sum(f * child_c, dim=0, keepdim=True)
        return c, torch.sigmoid(o) * torch.tanh(c)

    def forward(self, tree):
        for k in range(len(tree.children)):
            self.forward(tree.children[k])
        if len(tree.children) == 0:
            child_c, child_h = torch.zeros(1, H), torch.zeros(1, H)
        else:
            child_c, child_h = zip(*map(lambda child: child.state, tree.children))  # noqa: B905, C417 - as people write it
            child_c, child_h = torch.cat(child_c, dim=0), torch.cat(child_h, dim=0)
        tree.state = self.node_forward(self.emb(torch.tensor([tree.word])), child_c, child_h)
        return tree.state


class Tuples(nn.Module):
    """States passed as tuples, children taken one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(WORDS, D)
        self.cell = nn.LSTMCell(D, H)

    def forward(self, node):
        h = torch.zeros(1, H)
        c = torch.zeros(1, H)
        for child in reversed(node.children):
            child_h, child_c = self(child)
            h += child_h
            c = c + child_c
        return self.cell(self.emb(torch.LongTensor([node.word])), (h, c))


class Dicts(nn.Module):
    """States in dicts; a method of the node says whether it is a leaf."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(WORDS, H)
        self.cell = nn.Linear(2 * H, 2 * H)
        self.drop = nn.Dropout(0.5)

    def forward(self, node):
        if node.is_leaf():
            h = self.drop(self.emb(torch.tensor([node.word])))
            return {"h": h, "c": torch.zeros_like(h)}
        left, right = self(node.left), self(node.right)
        h, gate = self.cell(torch.cat([left["h"], right["h"]], dim=-1)).chunk(2, -1)
        return {"h": torch.tanh(h), "c": torch.sigmoid(gate) * (left["c"] + right["c"])}


@dataclass
class Pair:
    h: Any
    c: Any


class Dataclass(Tuples):
    """States in a dataclass, list comprehensions."""

    def forward(self, node):
        states = [self(child) for child in node.children]
        h = sum([s.h for s in states]) if states else torch.zeros(1, H)
        c = sum([s.c for s in states]) if states else torch.zeros(1, H)
        h, c = self.cell(self.emb(torch.tensor([node.word])), (h, c))
        return Pair(h=h, c=c)


class Named(NamedTuple):
    h: Any
    c: Any


class NamedTuples(Tuples):
    """States in a named tuple, stacked."""

    def forward(self, node):
        states = [self(child) for child in node.children]
        if not states:
            states = [Named(torch.zeros(1, H), torch.zeros(1, H))]
        h = torch.stack([s.h for s in states]).mean(0)
        c = torch.stack([s.c for s in states]).max(dim=0)[0]
        return Named(*self.cell(self.emb(torch.tensor([node.word])), (h, c)))


class OfNone(nn.Module):
    """Called on children that are None."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(WORDS + 1, H)
        self.join = nn.Linear(3 * H, H)

    def forward(self, node):
        if node is None:
            return torch.zeros(H)
        word = WORDS if node.word is None else node.word
        parts = [self.emb(torch.tensor(word)), self(node.left), self(node.right)]
        return torch.tanh(self.join(torch.cat(parts)))


class Classes(nn.Module):
    """Modules chosen by the class of a node and by its type."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(WORDS, H)
        self.ops = nn.ModuleDict({"add": nn.Linear(2 * H, H), "mul": nn.Sequential(nn.Linear(2 * H, H), nn.ReLU())})

    def forward(self, node):
        if isinstance(node, Leaf):
            return self.emb(torch.tensor(node.token))
        return self.ops[node.op](torch.cat([self(kid) for kid in node.kids]))


class TypeNames(Classes):
    """The same by `type(node)`."""

    def forward(self, node):
        if type(node).__name__ == "Leaf":
            return self.emb(torch.tensor(node.token))
        left, right = node.kids
        return self.ops[node.op](torch.cat((self(left), self(right))))


class Attributes(Classes):
    """The same by what attributes there are."""

    def forward(self, node):
        if hasattr(node, "token"):
            return self.emb(torch.tensor(node.token))
        h = torch.cat([self(kid) for kid in node.kids])
        return self.ops["add"](h) if getattr(node, "op", None) == "add" else torch.relu(self.ops["mul"][0](h))


class Enums(nn.Module):
    """An enum, compared by identity; a property that holds the children."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(WORDS, H)
        self.join = nn.Linear(H, H)

    def forward(self, node):
        if node.op is Op.WORD:
            return self.emb(torch.tensor(node.word))
        left, right = (self(kid) for kid in node.kids)
        return torch.tanh(self.join(left + right if node.op == Op.SUM else left * right))


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.join = nn.Linear(2 * H, H)

    def forward(self, left, right):
        return torch.tanh(self.join(torch.cat([left, right])))


class OwnCell(nn.Module):
    """A module of the user's as the cell, and truth values of children."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(WORDS, H)
        self.cell = Cell()

    def forward(self, node):
        if not node.left:
            return self.emb(torch.tensor(node.word))
        return self.cell(self(node.left), self(node.right))


class NestedTuples(OwnCell):
    """Structures that are tuples in tuples."""

    def forward(self, node):
        if isinstance(node, int):
            return self.emb(torch.tensor(node))
        left, right = node
        return self.cell(self(left), self(right))


class Json(nn.Module):
    """Structures that are dictionaries."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(WORDS, H)
        self.join = nn.Linear(H, H)

    def forward(self, node):
        h = self.emb(torch.tensor(node["id"]))
        for child in node.get("Plans", []):
            h = h + self(child)
        return torch.tanh(self.join(h)) if "Plans" in node else h

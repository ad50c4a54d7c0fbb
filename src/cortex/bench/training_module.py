"""A TreeLSTM as a module, and the same by hand in PyTorch: node by node, and by level over a whole batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from cortex.structures.tree import postorder

WORDS = 18_000


class TreeLSTM(nn.Module):
    """Child-sum TreeLSTM: words at the leaves, a label at the root."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, inputs)
        self.leaf = nn.Linear(inputs, 3 * hidden)
        self.inner = nn.Linear(hidden, 3 * hidden)
        self.forget = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 5)

    def encode(self, node: Any) -> Any:
        """The states of a node."""
        if not node.children:
            i, o, u = self.leaf(self.embedding(torch.tensor(node.word))).chunk(3)
            c = torch.sigmoid(i) * torch.tanh(u)
        else:
            kids = [self.encode(k) for k in node.children]
            i, o, u = self.inner(sum(h for h, _ in kids)).chunk(3)
            c = torch.sigmoid(i) * torch.tanh(u) + sum(torch.sigmoid(self.forget(h)) * c for h, c in kids)
        return torch.sigmoid(o) * torch.tanh(c), c

    def forward(self, node: Any) -> Any:
        """Scores of the classes."""
        return self.out(self.encode(node)[0])


def eager(module: TreeLSTM, trees: list[Any]) -> torch.Tensor:
    """Node by node; the embedding is looked up once per tree, as good public code does."""

    def encode(node: Any, rows: dict[int, torch.Tensor]) -> Any:
        if not node.children:
            i, o, u = module.leaf(rows[id(node)]).chunk(3)
            c = torch.sigmoid(i) * torch.tanh(u)
        else:
            kids = [encode(k, rows) for k in node.children]
            i, o, u = module.inner(sum(h for h, _ in kids)).chunk(3)
            c = torch.sigmoid(i) * torch.tanh(u) + sum(torch.sigmoid(module.forget(h)) * c for h, c in kids)
        return torch.sigmoid(o) * torch.tanh(c), c

    found = []
    for tree in trees:
        leaves = [n for n in postorder(tree) if not n.children]
        table = module.embedding(torch.tensor([n.word for n in leaves]))
        rows = {id(n): row for n, row in zip(leaves, table.unbind(), strict=True)}
        found.append(encode(tree, rows)[0])
    scores: torch.Tensor = module.out(torch.stack(found))
    return scores


def batched(module: TreeLSTM, trees: list[Any]) -> torch.Tensor:
    """By level over the whole batch, by hand."""
    heights: dict[int, int] = {}
    levels: list[list[Any]] = []
    for tree in trees:
        for node in postorder(tree):
            height = 1 + max((heights[id(k)] for k in node.children), default=-1)
            heights[id(node)] = height
            while len(levels) <= height:
                levels.append([])
            levels[height].append(node)
    ids = {id(n): i for i, n in enumerate(n for level in levels for n in level)}
    i, o, u = module.leaf(module.embedding(torch.tensor([n.word for n in levels[0]]))).chunk(3, 1)
    c = torch.sigmoid(i) * torch.tanh(u)
    states = [torch.cat([torch.sigmoid(o) * torch.tanh(c), c], 1)]
    hidden = c.shape[1]
    starts = [0]
    for level in levels:
        starts.append(starts[-1] + len(level))
    at = {key: (heights[key], number - starts[heights[key]]) for key, number in ids.items()}
    for level in levels[1:]:
        kids = [at[id(k)] for n in level for k in n.children]
        whole = torch.cat(states)
        below = whole.index_select(0, torch.tensor([starts[h] + place for h, place in kids]))
        pairs = below.view(len(level), 2, 2 * hidden)
        kept = (torch.sigmoid(module.forget(below[:, :hidden])) * below[:, hidden:]).view(len(level), 2, hidden)
        i, o, u = module.inner(pairs[:, 0, :hidden] + pairs[:, 1, :hidden]).chunk(3, 1)
        c = torch.sigmoid(i) * torch.tanh(u) + kept[:, 0] + kept[:, 1]
        states.append(torch.cat([torch.sigmoid(o) * torch.tanh(c), c], 1))
    whole = torch.cat(states)
    scores: torch.Tensor = module.out(whole.index_select(0, torch.tensor([ids[id(t)] for t in trees]))[:, :hidden])
    return scores

"""One step of training a TreeLSTM, forward and backward: compiled, eager PyTorch, and PyTorch batched by level.

    python benchmarks/training.py [--hidden 150] [--inputs 300] [--batch 25] [--rounds 5]

Microseconds per tree with gradients in place, the optimizer left out, on one thread. Systems take turns; medians and
minima are of the processor time of the thread, which other programs on the machine change less than the time of the
clock. The trees have the sizes and depths of the Stanford treebank. That all three give the same gradients is checked.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Callable
from random import Random
from typing import Any

import torch
from torch import nn

import cortex
from cortex.structures.tree import postorder
from cortex.zoo.structures import parse_trees_with_children

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
    return module.out(torch.stack(found))


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
    return module.out(whole.index_select(0, torch.tensor([ids[id(t)] for t in trees]))[:, :hidden])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    for name, value in (("hidden", 150), ("inputs", 300), ("batch", 25), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=value)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    module = TreeLSTM(asked.inputs, asked.hidden)
    rng = Random(0)
    fast = cortex.compile(module, examples=parse_trees_with_children(rng, asked.batch, WORDS)).train()
    systems: dict[str, Callable[[list[Any]], torch.Tensor]] = {
        "cortex": fast,
        "torch-eager": lambda trees: eager(module, trees),
        "torch-batched": lambda trees: batched(module, trees),
    }

    def step(run: Callable[[list[Any]], torch.Tensor], trees: list[Any]) -> float:
        labels = torch.tensor([t.word % 5 for t in trees])
        module.zero_grad(set_to_none=True)
        began = time.thread_time()
        nn.functional.cross_entropy(run(trees), labels).backward()
        return (time.thread_time() - began) * 1e6 / len(trees)

    trees = parse_trees_with_children(rng, asked.batch, WORDS)
    found = {}
    for name, run in systems.items():
        step(run, trees)
        found[name] = {key: p.grad.clone() for key, p in module.named_parameters()}
    for name, gradients in found.items():
        for key, g in gradients.items():
            torch.testing.assert_close(g, found["torch-eager"][key], rtol=1e-3, atol=1e-5, msg=f"{name}: {key}")
    times: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(asked.rounds):
        trees = parse_trees_with_children(rng, asked.batch, WORDS)
        for name, run in systems.items():
            times[name] += [step(run, trees) for _ in range(1 if name == "torch-eager" else 3)]
    own = sorted(times["cortex"])
    for name, each in times.items():
        each.sort()
        ratio = each[len(each) // 2] / own[len(own) // 2]
        print(f"{name:14} median {each[len(each) // 2]:8.0f}  least {each[0]:8.0f} us per tree  {ratio:5.1f} x cortex")


if __name__ == "__main__":
    main()

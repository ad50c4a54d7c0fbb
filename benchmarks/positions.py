"""Recurrent layers over children and over token lists: time to compile, other lengths, speed against eager.

python benchmarks/positions.py
"""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import cortex

SIZE, WORDS, TREES = 64, 100, 30


class Block:
    """A node with a list of tokens."""

    def __init__(self, tokens: list[int], children: list[Block]) -> None:
        self.tokens = tokens
        self.word = tokens[0]
        self.children = children


class LstmOverChildren(nn.Module):
    """The last output of an LSTM over the children's states."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(WORDS, SIZE)
        self.lstm = nn.LSTM(SIZE, SIZE)

    def forward(self, node: Any) -> Any:
        """The state of a node."""
        x = self.emb(torch.tensor(node.word))
        if not node.children:
            return x
        return x + self.lstm(torch.stack([self(child) for child in node.children]))[1][0][0]


class AttentionOverOutputs(LstmOverChildren):
    """All outputs, weighted by how they fit the last."""

    def forward(self, node: Any) -> Any:
        """The state of a node."""
        x = self.emb(torch.tensor(node.word))
        if not node.children:
            return x
        out, (h, _) = self.lstm(torch.stack([self(child) for child in node.children]))
        return x + torch.softmax(out @ h[0], 0) @ out


class BasicBlocks(nn.Module):
    """A GRU over a node's tokens, and the sum of the children's states."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(WORDS, SIZE)
        self.gru = nn.GRU(SIZE, SIZE)
        self.W = nn.Linear(2 * SIZE, SIZE)

    def forward(self, node: Any) -> Any:
        """The state of a node."""
        x = self.gru(self.emb(torch.tensor(node.tokens)))[1][0]
        if not node.children:
            return x
        return torch.tanh(self.W(torch.cat([x, sum(self(child) for child in node.children)])))


def block(rng: random.Random, tokens: int, children: int) -> Block:
    """A node above leaves."""
    own = [rng.randrange(WORDS) for _ in range(tokens)]
    return Block(own, [block(rng, rng.randrange(1, tokens + 1), 0) for _ in range(children)])


def best(run: Callable[[], object]) -> float:
    """The shortest of some times."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print a line for each module."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rng = random.Random(0)
    for cls, tokens, children in ((LstmOverChildren, 1, 60), (AttentionOverOutputs, 1, 60), (BasicBlocks, 64, 5)):
        module = cls().eval()
        trees = [block(rng, rng.randrange(1, tokens + 1), rng.randrange(1, children + 1)) for _ in range(TREES)]
        with torch.no_grad():
            start = time.process_time()
            fast = cortex.compile(module, examples=[block(rng, min(tokens, 3), 2)])
            compiled = time.process_time() - start
            start = time.process_time()
            found = torch.stack([fast(tree) for tree in trees])
            others = time.process_time() - start
            worst = (found - torch.stack([module(tree) for tree in trees])).abs().max().item()
            eager = best(lambda m=module, t=trees: [m(x) for x in t])  # type: ignore[misc]
            speed = eager / best(lambda f=fast, t=trees: [f(x) for x in t])  # type: ignore[misc]
        print(
            f"{cls.__name__}: compiled in {compiled:.1f} s of processor time, {len(fast.program.traced.kinds)} kinds; "
            f"{TREES} trees of other lengths {others:.1f} s the first time; {speed:.0f}x eager; "
            f"largest difference {worst:.1e}"
        )


if __name__ == "__main__":
    main()

"""Arguments that the request gives to the first call and calls compute for the next ones: decoders over given trees."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import cortex

H = 5


class Rule:
    """A grammar's tree: a rule has two parts, a last one has a word, which is a node too."""

    def __init__(self, label: Any, rule: int | None = None, parts: tuple[Any, ...] = (), is_last: bool = False) -> None:
        self.label, self.rule, self.parts, self.is_last = label, rule, list(parts), is_last


def last(word: int) -> Rule:
    return Rule(word % 2, word % 3, (Rule(torch.tensor([word])),), is_last=True)


def both(left: Rule, right: Rule) -> Rule:
    return Rule(1, len(left.parts) % 3, (left, right))


def chain(depth: int) -> Rule:
    return last(depth) if depth == 0 else both(chain(depth - 1), last(depth))


TREES = [both(both(last(1), both(last(2), last(2))), last(0)), last(1)]
OTHERS = [chain(12), both(chain(2), chain(3))]


class Split(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Linear(H, 2 * H)

    def forward(self, hidden: Any) -> Any:
        return torch.tanh(self.down(hidden)).split(H, dim=1)


class ListOfWords(nn.Module):
    """Lists go up; those of nodes that are no calls of the model, which a loop over nothing makes, are empty."""

    def __init__(self) -> None:
        super().__init__()
        self.split, self.word = Split(), nn.Linear(H, 7)

    def decode(self, node: Any, hidden: Any) -> Any:
        if node.is_last:
            return [self.word(hidden)]
        found = []
        for part, below in zip(node.parts, self.split(hidden), strict=False):
            found += self.decode(part, below)
        return found

    def forward(self, node: Any, z: Any) -> Any:
        return torch.stack(self.decode(node, z))


class ByRule(ListOfWords):
    """Weights are chosen by the rule, which words have none of."""

    def __init__(self) -> None:
        super().__init__()
        self.splits = nn.ModuleList([Split() for _ in range(3)])

    def split_by(self, node: Any, hidden: Any) -> Any:
        return self.splits[node.rule](hidden)

    def decode(self, node: Any, hidden: Any) -> Any:
        if node.is_last:
            return [self.word(hidden)]
        found = []
        for part, below in zip(node.parts, self.split_by(node, hidden), strict=False):
            found += self.decode(part, below)
        return found


class InTurns(nn.Module):
    """Two routines pass each other what they compute of the latent, and the latent as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.out = nn.Linear(H, H), nn.Linear(2 * H, H), nn.Linear(H, 3)

    def one(self, node: Any, hidden: Any, z: Any) -> Any:
        loss = self.out(hidden).sum()
        return (
            loss if node.is_last else loss + sum(self.two(part, torch.tanh(self.a(hidden)), z) for part in node.parts)
        )

    def two(self, node: Any, hidden: Any, z: Any) -> Any:
        loss = self.out(hidden).pow(2).sum()
        below = torch.tanh(self.b(torch.cat([hidden, z], 1)))
        return loss if node.is_last else loss + sum(self.one(part, below, z) for part in node.parts)

    def forward(self, node: Any, z: Any) -> Any:
        return self.one(node, z, z)


class Halves(nn.Module):
    """What is passed becomes a function of itself that torch could also compute for each row."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(H, 3)

    def decode(self, node: Any, hidden: Any) -> Any:
        if node.is_last:
            return self.out(hidden)
        return self.out(hidden) + sum(self.decode(part, hidden * 0.5 + 1) for part in node.parts)

    def forward(self, node: Any, z: Any) -> Any:
        return self.decode(node, z)


@pytest.mark.parametrize("module", [ListOfWords, ByRule, InTurns, Halves])
def test_a_latent_is_given_and_then_computed(module: type[nn.Module]) -> None:
    torch.manual_seed(3)
    model = module().eval()
    z = torch.randn(len(TREES) + len(OTHERS), 1, H)
    pairs = [(tree, z[i]) for i, tree in enumerate([*TREES, *OTHERS])]
    with torch.no_grad():
        fast = cortex.compile(model, examples=pairs[: len(TREES)])
        for tree, latent in pairs:
            torch.testing.assert_close(fast(tree, latent), model(tree, latent), rtol=1e-4, atol=1e-5)


def test_rows_that_change_with_every_call_are_refused() -> None:
    """A tensor with any number of rows cannot be passed on as a state; the message comes at once."""

    class OfRows(Halves):
        def decode(self, node: Any, rows: Any) -> Any:
            if node.is_last:
                return self.out(rows[node.rule])
            return sum(self.decode(part, rows * 0.5 + 1) for part in node.parts)

    pairs = [(tree, torch.randn(3 + i, H)) for i, tree in enumerate(TREES)]
    with pytest.raises(cortex.ModelError, match=r"a recursive call takes 'z', .* calls compute another one from it"):
        cortex.compile(OfRows().eval(), examples=pairs)

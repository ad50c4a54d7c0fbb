"""Modules as people write them: compiled without a change, each agrees with itself run by torch.

`CORTEX_FUZZ=long` tries a hundred structures of each instead of eight.
"""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import bottom_up
import heads
import nodes
import pytest
import torch

import cortex


def _inputs() -> tuple[Any, ...]:
    found: list[Any] = []
    for _ in range(2):
        tree, count = nodes.numbered(nodes.nary())
        found += [tree, torch.randint(0, nodes.WORDS, (count,))]
    return tuple(found)


CASES: dict[str, tuple[Any, Any, str]] = {
    "child_sum": (bottom_up.ChildSum, nodes.nary, "plain"),
    "tuples": (bottom_up.Tuples, nodes.nary, "plain"),
    "dicts": (bottom_up.Dicts, nodes.pairs, "plain"),
    "dataclass": (bottom_up.Dataclass, nodes.nary, "plain"),
    "named_tuples": (bottom_up.NamedTuples, nodes.nary, "plain"),
    "of_none": (bottom_up.OfNone, nodes.pairs, "plain"),
    "classes": (bottom_up.Classes, nodes.typed, "plain"),
    "type_names": (bottom_up.TypeNames, nodes.typed, "plain"),
    "attributes": (bottom_up.Attributes, nodes.typed, "plain"),
    "enums": (bottom_up.Enums, nodes.expression, "plain"),
    "own_cell": (bottom_up.OwnCell, nodes.pairs, "plain"),
    "nested_tuples": (bottom_up.NestedTuples, lambda: (nodes.nested(),), "calls"),
    "json": (bottom_up.Json, nodes.plan, "plain"),
    "root_classifier": (heads.RootClassifier, nodes.pairs, "headed"),
    "node_classifier": (heads.NodeClassifier, nodes.pairs, "plain"),
    "two_trees": (heads.TwoTrees, lambda: (nodes.nary(), nodes.nary()), "headed"),
    "inputs": (heads.Inputs, _inputs, "calls"),
    "memo": (heads.Memo, nodes.dag, "headed"),
    "even_odd": (heads.EvenOdd, nodes.nary, "calls"),
    "visitor": (heads.Visitor, nodes.expression, "calls"),
    "flag": (heads.Flag, nodes.pairs, "calls"),
    "pooling": (heads.Pooling, lambda: nodes.pairs(4), "headed"),
    "forests": (heads.Forests, lambda: ([nodes.pairs(), nodes.pairs()],), "headed"),
    "up_and_down": (heads.UpAndDown, nodes.pairs, "calls"),
    "bidirectional": (heads.Bidirectional, nodes.nary, "calls"),
    "accumulated": (heads.Accumulated, nodes.pairs, "calls"),
}
EXAMPLES, STRUCTURES = (24, 100) if nodes.LONG else (12, 8)


def tensors(result: Any) -> list[torch.Tensor]:
    """The tensors of a result, in order."""
    if isinstance(result, torch.Tensor):
        return [result]
    if dataclasses.is_dataclass(result):
        return [t for f in dataclasses.fields(result) for t in tensors(getattr(result, f.name))]
    return [t for part in (result.values() if isinstance(result, dict) else result) for t in tensors(part)]


def same(got: Any, want: Any) -> None:
    """The same form, and tensors of the same shapes that agree as far as single precision does."""
    assert type(got) is type(want)
    for a, b in zip(tensors(got), tensors(want), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def arguments(example: Any) -> tuple[Any, ...]:
    return example if type(example) is tuple else (example,)


@pytest.mark.parametrize("name", CASES)
def test_a_compiled_module_computes_what_the_module_does(name: str) -> None:
    random.seed(3)
    torch.manual_seed(3)
    kind, make, mode = CASES[name]
    module = kind().eval()
    examples = [make() for _ in range(EXAMPLES)]
    fast = cortex.compile(module, examples=examples)
    with torch.no_grad():
        for example in [*examples[:4], *(make() for _ in range(STRUCTURES))]:
            same(fast(*arguments(example)), module(*arguments(example)))
    assert fast.executable(*arguments(examples[0]))._trace._model.mode == mode

"""Results that have a row for each node: as the module returns them, for any number of nodes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import per_node
import pytest
import structures
import torch
from per_node import Phrase

import cortex


def phrase(size: int | None = None) -> Phrase:
    """A random one."""
    size = random.randint(1, 12) if size is None else size
    if size == 1:
        return Phrase(random.randrange(per_node.V))
    sizes = [1] * random.randint(1, min(4, size - 1))
    for _ in range(size - 1 - len(sizes)):
        sizes[random.randrange(len(sizes))] += 1
    return Phrase(random.randrange(per_node.V), [phrase(each) for each in sizes])


def chain(size: int) -> Phrase:
    found = Phrase(1)
    for i in range(size - 1):
        found = Phrase(i % per_node.V, [found])
    return found


def star(size: int) -> Phrase:
    return Phrase(2, [Phrase(i % per_node.V) for i in range(size)])


def shared() -> Phrase:
    """A phrase of which two others have the same part: recursive calls append for it twice."""
    part = Phrase(3, [Phrase(4)])
    return Phrase(5, [part, Phrase(6, [part])])


def same(got: Any, want: Any) -> None:
    """Of the same form, with the same numbers."""
    if isinstance(want, torch.Tensor):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
        return
    assert type(got) is type(want)
    assert len(got) == len(want)
    keys = list(want) if isinstance(want, dict) else range(len(want))
    for key in keys:
        same(got[key], want[key])


def together(results: list[Any]) -> Any:
    """What a list of structures gives: a tensor has a row for each, and what has rows is a list."""
    first = results[0]
    if isinstance(first, tuple):
        return tuple(together(list(parts)) for parts in zip(*results, strict=True))
    if isinstance(first, dict):
        return {key: together([result[key] for result in results]) for key in first}
    if isinstance(first, torch.Tensor) and len({result.shape for result in results}) == 1:
        return torch.stack(results)
    return results


@pytest.mark.parametrize("kind", per_node.MODULES, ids=lambda kind: kind.__name__)
def test_rows_are_those_of_the_module(kind: Any, tmp_path: Path) -> None:
    random.seed(5)
    torch.manual_seed(5)
    module = kind().eval()
    fast = cortex.compile(module, examples=[phrase() for _ in range(8)])
    trees = [Phrase(3), chain(30), star(42), *(phrase() for _ in range(100 if structures.LONG else 12))]
    trees += [shared()] if kind is not per_node.StoredStates else []
    with torch.no_grad():
        for tree in trees:
            same(fast(tree), module(tree))
        same(fast(trees[:10]), together([module(tree) for tree in trees[:10]]))
        fast.save(tmp_path / "rows.cortex")
        again = cortex.load(tmp_path / "rows.cortex", as_torch=True)
        for tree in trees[:6]:
            same(again(tree), module(tree))


def test_rows_are_found_when_a_request_first_has_another_number() -> None:
    module = per_node.PhraseSentiment().eval()
    fast = cortex.compile(module, examples=[star(2)])
    with torch.no_grad():
        for size in (2, 5, 1):
            same(fast(star(size)), module(star(size)))


def test_rows_of_pairs_of_nodes_are_refused() -> None:
    with pytest.raises(cortex.ModelError, match="a row of the result is not computed from one item of a list"):
        cortex.compile(per_node.PairsOfRows().eval(), examples=[star(2), star(3)])

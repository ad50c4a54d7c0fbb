"""Every operator against torch."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from cases import CASES
from torch_meaning import agrees, traced

from cortex.frontend.torch import dispatch
from cortex.frontend.torch.operators import recurrent, table


def drawn(inputs: dict[str, Any], seed: int) -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return {
        name: given(rng) if callable(given) else torch.randn(given, generator=rng) for name, given in inputs.items()
    }


def shapes(r: random.Random, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that broadcast."""
    whole = [r.choice([1, 2, 3, 5]) for _ in range(rank)]
    kept = r.randint(0, rank)
    return tuple(whole), tuple(1 if r.random() < 0.3 else n for n in whole[kept:])


BINARY = (torch.add, torch.sub, torch.mul, torch.maximum, torch.lt, torch.eq, lambda x, y: torch.where(x > y, x, y))


@pytest.mark.parametrize("seed", range(40))
def test_random_shapes(seed: int) -> None:
    r = random.Random(seed)
    x, y = shapes(r, r.randint(0, 4))
    fn = r.choice(BINARY)
    agrees(lambda a, b: (fn(a, b), fn(b, a)), drawn({"a": x, "b": y}, seed))


@pytest.mark.parametrize("seed", range(60))
def test_random_dimensions(seed: int) -> None:
    """Reductions, joins and movement along random dimensions, counted from either end."""
    r = random.Random(seed)
    shape = tuple(r.randint(2, 4) for _ in range(r.randint(1, 4)))
    dim, other = r.randrange(-len(shape), len(shape)), r.randrange(-len(shape), len(shape))
    keep = r.random() < 0.5
    choices = (
        lambda x: (x.sum(dim, keepdim=keep), x.mean(dim, keep), x.amax((dim,), keep), x.argmax(dim, keep)),
        lambda x: (x.softmax(dim), x.log_softmax(dim), x.logsumexp(dim, keep), x.norm(dim=dim, keepdim=keep)),
        lambda x: (x.max(dim, keepdim=keep), x.min(dim), x.var(dim, keepdim=keep), x.std(dim=dim, unbiased=False)),
        lambda x: (torch.cat([x, x], dim), torch.stack([x, x + 1], dim), x.chunk(2, dim), x.split(1, dim)),
        lambda x: (x.transpose(dim, other), x.movedim(dim, other), x.unsqueeze(dim), x.flip(dim), x.roll(1, dim)),
        lambda x: (x.narrow(dim, 1, 1), x.select(dim, -1), x.unbind(dim), x.unsqueeze(dim).squeeze(dim)),
    )
    agrees(r.choice(choices), drawn({"x": shape}, seed))


@pytest.mark.parametrize("seed", range(60))
def test_random_indices(seed: int) -> None:
    r = random.Random(seed)
    shape = tuple(r.randint(2, 4) for _ in range(r.randint(1, 3)))

    index: list[Any] = []
    for n in shape[: r.randint(1, len(shape))]:
        start, stop = r.randint(-n, n), r.randint(-n, n)
        index += [None] * r.choice([0, 0, 0, 1])
        index.append(r.choice([r.randrange(-n, n), slice(start, stop), slice(None, None, 2), slice(None), [0, -1]]))
    index += [...] * r.choice([0, 1])
    agrees(lambda x: x[tuple(index)], drawn({"x": shape}, seed))


def test_every_entry_of_the_table_is_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    """By name in its family: some function or method of that name is called by some case."""
    called: set[Any] = set()
    lookup = dispatch.table()

    class Watched(dict[Any, Any]):
        def get(self, key: Any, default: Any = None) -> Any:
            called.add(key)
            return lookup.get(key, default)

    monkeypatch.setattr(dispatch, "table", Watched)
    for function, inputs in CASES.values():
        traced(function, drawn(inputs, 1))
    families = [family.FUNCTIONS for family in table.FAMILIES] + list(table.UNCHECKED)
    names = [name for family in families if family is not recurrent.FUNCTIONS for name in family]
    missed = [name for name in names if not called & {*table.functions(name), *table.functions(table.changing(name))}]
    assert not missed, f"not tested: {missed}"  # recurrent layers are tested as modules


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_as_torch(name: str, seed: int) -> None:
    function, inputs = CASES[name]
    agrees(function, drawn(inputs, seed))

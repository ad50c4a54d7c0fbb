"""Every operator against torch."""

from __future__ import annotations

import inspect
import random
from typing import Any

import pytest
import torch
from cases import CASES
from torch_meaning import agrees, traced

from cortex.frontend.torch import aten, dispatch
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


def test_every_rule_is_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rule for an ATen operator, and every function that is not broken down, is used by some case."""
    used: set[Any] = set()

    class Watched(dict[Any, Any]):
        def get(self, key: Any, default: Any = None) -> Any:
            if key in self:
                used.add(key)
            return super().get(key, default)

    rules, functions = Watched(table.rules()), Watched(table.functions())
    monkeypatch.setattr(aten, "rules", lambda: rules)
    monkeypatch.setattr(dispatch, "functions", lambda: functions)
    aten.operator.cache_clear()
    for function, inputs in CASES.values():
        traced(function, drawn(inputs, 1))
    aten.operator.cache_clear()
    named = {name for name in rules if name not in recurrent.RULES}  # recurrent layers are tested as modules
    assert sorted(named - used - ONLY_REFUSED) == [], "rules that no case uses"
    assert not set(functions) - used, "functions that no case uses"


ONLY_REFUSED = {"as_strided", "view.dtype", "embedding_renorm", "where.default"}
"""Rules that say why not: `test_refusals` has them."""


@pytest.mark.parametrize("name", sorted(table.rules()))
def test_a_rule_takes_the_arguments_of_its_operator(name: str) -> None:
    """All of the schema's, in its order, for every overload that the rule serves."""
    packet, _, overload = name.partition(".")
    overloads = [overload] if overload else getattr(torch.ops.aten, packet).overloads()
    for each in overloads:
        try:
            schema = getattr(getattr(torch.ops.aten, packet), each)._schema
        except (AttributeError, RuntimeError):
            continue  # of TorchScript alone
        is_own = f"{packet}.{each}" not in table.rules() or bool(overload)
        if not is_own or any(a.alias_info and a.alias_info.is_write for a in schema.arguments):
            continue
        if ("Tensor" not in str(schema.arguments[0].type) and packet != "pow") or "str dim" in str(schema):
            continue  # of TorchScript, or with names of dimensions
        positional = [a.name for a in schema.arguments if not a.kwarg_only]
        keywords = {a.name: None for a in schema.arguments if a.kwarg_only}
        inspect.signature(table.rules()[name].run).bind(*positional, **keywords)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_as_torch(name: str, seed: int) -> None:
    function, inputs = CASES[name]
    agrees(function, drawn(inputs, seed))

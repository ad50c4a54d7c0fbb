"""Values of nodes that Python takes for equal, 1, 1.0 and True, 0.0 and -0.0: each is what it is to a model."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex
from cortex.ra.ir import Fact, IsLeaf, Value

W = {"b": np.ones(2, np.float32)}
ONES, ZEROS = (True, 1, 1.0), (0.0, -0.0, 0, False)
VALUES: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "truth": (lambda x: 2 if x else 3, (*ONES, *ZEROS)),
    "dictionary": (lambda x: {1: 3, 2: 4, 0: 7}.get(x, 5), (*ONES, *ZEROS, 2.0)),
    "function": (math.sqrt, (4, 4.0, *ONES)),
    "text": (lambda x: len(str(x)), (*ONES, *ZEROS)),
    "sign": (lambda x: math.copysign(1, x), ZEROS),
    "class": (lambda x: 2 if isinstance(x, bool) else 3 if isinstance(x, int) else 4, (*ONES, *ZEROS)),
    "angle": (lambda x: math.atan2(x, -1.0), ZEROS),
}


def node(x: Any, *children: Any) -> Any:
    return SimpleNamespace(x=x, children=list(children))


def model_of(number: Callable[[Any], Any]) -> Any:
    @cortex.model
    def valued(node: Any, w: Any) -> Any:
        return w.b * number(node.x) + sum(valued(k, w) for k in node.children)

    return valued


@pytest.mark.parametrize("met", [1, None], ids=["first", "all"])
@pytest.mark.parametrize("name", VALUES)
def test_each_value_is_itself(name: str, met: int | None) -> None:
    number, values = VALUES[name]
    single = [node(x) for x in values]
    together = node(values[0], *single, *(node(x, node(values[0])) for x in reversed(values)))
    model = model_of(number)
    for _ in range(2):  # what was compiled before is found in the cache
        fast = cortex.compile(model, W, examples=single[:met])
        for tree in (*single, together):
            np.testing.assert_allclose(fast(tree).out, model(tree, W), rtol=1e-6)


def test_saved_models_tell_them_apart(tmp_path: Path) -> None:
    trees = [node(x) for x in (1, 1.0, True, 0.0, -0.0)]
    model = model_of(lambda x: len(str(x)))
    cortex.compile(model, W, examples=trees).save(tmp_path / "m.cortex")
    loaded = cortex.load(tmp_path / "m.cortex")
    for tree in trees:
        assert np.array_equal(loaded(tree).out, model(tree, W))
    with pytest.raises(cortex.StructureError, match=r"node\.x is 0, and known is 1, 1\.0, True, 0\.0, -0\.0"):
        loaded(node(0))


def test_facts() -> None:
    facts = [Fact(Value("x"), answer) for answer in (1, 1.0, True, 0, 0.0, -0.0, False, None, "1")]
    assert len(set(facts)) == len(facts)
    assert Fact(Value("x"), 1.0) == Fact(Value("x"), 1.0) != Fact(Value("y"), 1.0)
    assert Fact(Value("x"), True) != Fact(IsLeaf(), True)


@pytest.mark.parametrize("function", [lambda x: x == math.nan, lambda x: x in (1, math.nan), lambda x: math.nan == x])
def test_nan_is_no_constant(function: Callable[[Any], Any]) -> None:
    """`in` would find the very same NaN, `==` would not, and both ask the same."""
    with pytest.raises(cortex.ModelError, match=r"compared with NaN.*`node\.x != node\.x`"):
        cortex.compile(model_of(function), W, examples=[node(2.0)])


def test_nothing_is_not_unlike_nan() -> None:
    model = model_of(lambda x: 2 if x != math.nan else 3)
    fast = cortex.compile(model, W, examples=[node(2.0)])
    for x in (2.0, math.nan, 1):
        assert np.array_equal(fast(node(x)).out, model(node(x), W))

"""The functions of `cortex` at special values, compiled, against NumPy in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frontend_meaning import Node

import cortex

inf, nan = math.inf, math.nan
SPECIAL = np.array([
    0.0, -0.0, 1e-45, -1e-40, 1.2e-38, 1e-20, -1e-8, 1e-8, 3e-5, -1e-4, 1e-4, 1e-3, 0.1, -0.3, 0.5, -0.5, 1.0, -1.0,
    1.5, 2.5, -3.0, 9.0, -10.0, 20.5, -20.0, 64.0, 88.0, -88.0, 88.8, 89.0, 104.0, -104.0, 1e10, -1e10, 3e38, -3e38,
    inf, -inf, nan,
], np.float32)  # fmt: skip
COUNT = len(SPECIAL)


def _sigmoid(x: Any) -> Any:
    decay = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, decay) / (1 + decay)


def _elu(x: Any) -> Any:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max())
    return powers / powers.sum()


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sigmoid": (cortex.sigmoid, _sigmoid), "tanh": (cortex.tanh, np.tanh), "exp": (cortex.exp, np.exp),
    "log": (cortex.log, np.log), "sqrt": (cortex.sqrt, np.sqrt), "abs": (cortex.abs, np.abs),
    "relu": (cortex.relu, lambda x: np.maximum(x, 0)), "elu": (cortex.elu, _elu),
    "elu(0.5)": (lambda x: cortex.elu(x, 0.5), lambda x: np.where(x > 0, x, 0.5 * _elu(x))),
    "leaky_relu": (lambda x: cortex.leaky_relu(x, 0.25), lambda x: np.where(x > 0, x, 0.25 * x)),
    "maximum": (lambda x: cortex.maximum(x, 1), lambda x: np.maximum(x, 1)),
    "minimum": (lambda x: cortex.minimum(1, x), lambda x: np.minimum(1, x)),
    "where": (lambda x: cortex.where(x > 0, x, -x), lambda x: np.where(x > 0, x, -x)),
    "x * 0": (lambda x: x * 0, lambda x: x * 0), "zeros * x": (lambda x: cortex.zeros(COUNT) * x, lambda x: 0 * x),
    "x / 0": (lambda x: x / 0.0, lambda x: x / 0.0), "1 / x": (lambda x: 1 / x, lambda x: 1 / x),
    "x - x": (lambda x: x - x, lambda x: x - x), "x / x": (lambda x: x / x, lambda x: x / x),
    "x @ 0": (lambda x: x @ cortex.zeros(COUNT), lambda x: x @ np.zeros(COUNT)),
    "sum": (cortex.sum, np.sum), "mean": (cortex.mean, np.mean),
    "max": (cortex.max, np.max), "min": (cortex.min, np.min),
    "softmax": (lambda x: cortex.softmax(x[:6]), lambda x: _softmax(x[:6])),
    "of -inf": (lambda x: cortex.softmax(cortex.where(x[:6] > 0, x[:6], -inf)),
                lambda x: _softmax(np.where(x[:6] > 0, x[:6], -inf))),
    "is NaN": (lambda x: cortex.where(x != x, 1.0, 0.0), np.isnan),
    **{f"x ** {p}": (lambda x, p=p: x**p, lambda x, p=p: np.power(x, float(np.float32(p))))
       for p in (0, 2, 3, -1, -3, 65, 1.5, -0.3, 1e9, inf)},
}  # fmt: skip


def test_functions_at_special_values() -> None:
    node = Node(x=SPECIAL)

    def every(node: Any) -> Any:
        return tuple(ours(node.x) for ours, _ in FUNCTIONS.values())

    found = cortex.compile(cortex.model(every), {}, examples=[node])(node)
    for i, (name, (_, right)) in enumerate(FUNCTIONS.items()):
        with np.errstate(all="ignore"):
            expected = np.asarray(right(SPECIAL.astype(np.float64))).astype(np.float32)
        np.testing.assert_allclose(found[i], expected, rtol=1.3e-6, atol=2e-44, err_msg=name)


def test_joined_truth_values_are_truth_values() -> None:
    """Beside floats they become 0 and 1."""
    x = np.array([1.0, -2.0, 0.5], np.float32)
    node = Node(x=x)

    def joined(node: Any) -> Any:
        high, low = node.x > 0.7, node.x < 0
        every = cortex.concat([high, low])
        stacked = cortex.stack([high, low, high | low])
        mixed = cortex.concat([high, node.x, low])
        return cortex.where(~every, 2.0, 3.0), cortex.where(stacked, node.x, 0.0), mixed, cortex.sum(stacked, axis=0)

    found = cortex.compile(cortex.model(joined), {}, examples=[node])(node)
    high, low = x > 0.7, x < 0
    every, stacked = np.concatenate([high, low]), np.stack([high, low, high | low])
    expected = (np.where(~every, 2.0, 3.0), np.where(stacked, x, 0.0), np.concatenate([high, x, low]), stacked.sum(0))
    for i, right in enumerate(expected):
        np.testing.assert_array_equal(found[i], right)


@cortex.model
def family(node: Any) -> Any:
    if not node.kids:
        return cortex.state(most=node.x, least=node.x)
    states = [family(kid) for kid in node.kids]
    return cortex.state(most=cortex.max(s.most for s in states), least=cortex.min(s.least for s in states))


@cortex.model
def counted(node: Any) -> Any:
    return cortex.state(own=cortex.sum(node.x for _ in node.kids) + cortex.sum(counted(k).own for k in node.kids))


def _one(x: float, *kids: Node) -> Node:
    return Node(x=np.full(3, x, np.float32), kids=list(kids))


def test_nan_goes_through_reductions_over_children() -> None:
    fast = cortex.compile(family, {}, examples=[_one(1, _one(2), _one(3), _one(4))])
    for values in ((nan, 1, 2), (1, nan, 2), (1, 2, nan), (inf, -inf, 1), (-inf, -inf, -inf)):
        found = fast(_one(2, *map(_one, values)))
        np.testing.assert_array_equal(found["most"], np.full(3, np.max(values)))
        np.testing.assert_array_equal(found["least"], np.full(3, np.min(values)))


def test_a_sum_over_no_children_is_0_whatever_would_be_summed() -> None:
    fast = cortex.compile(counted, {}, examples=[_one(1, _one(2), _one(3)), _one(1)])
    for x in (inf, -inf, nan):
        np.testing.assert_array_equal(fast(_one(x))["own"], np.zeros(3))
        np.testing.assert_array_equal(fast(_one(1, _one(x), _one(x)))["own"], np.full(3, 2.0))


@cortex.model
def products(node: Any, w: Any) -> Any:
    return cortex.tanh(node.x) + cortex.sum(w.W @ products(k, w) for k in node.kids)


@cortex.model
def products_and_more(node: Any, w: Any) -> Any:
    return w.b + cortex.sum(w.W @ products_and_more(k, w) + w.b * node.x for k in node.kids)


@cortex.model
def product_of_the_sum(node: Any, w: Any) -> Any:
    return w.b + w.W @ cortex.sum(product_of_the_sum(k, w) for k in node.kids)


FINITE = {"W": np.array([[1, 2, 0], [2, 1, -1], [0, 0, 1]], np.float32), "b": np.array([1, -2, 3], np.float32)}
INFINITE = {**FINITE, "W": np.array([[1, inf, 0], [2, 1, -1], [0, 0, nan]], np.float32)}
FAMILIES = (lambda: _one(0.5), lambda: _one(1, _one(2), _one(0)), lambda: _one(1, _one(0, _one(1))))


@pytest.mark.parametrize("model", [products, products_and_more, product_of_the_sum], ids=lambda m: m.name)
def test_infinite_weights(model: Any) -> None:
    """0 times infinity is NaN: a factor may be taken out of a sum over children only if it is finite."""
    fast = cortex.compile(model, INFINITE, examples=[FAMILIES[1]()], check=False)
    for family in FAMILIES:
        np.testing.assert_allclose(fast(family())[0], model(family(), INFINITE), rtol=1e-6)


def test_weights_become_infinite(tmp_path: Path) -> None:
    fast = cortex.compile(products, FINITE, examples=[FAMILIES[1]()], check=False)
    bound = fast.bind(FAMILIES[0]())
    fast.save(tmp_path / "m.cortex")
    for run in (fast, cortex.load(tmp_path / "m.cortex")):
        compilations = run.compilations
        run.update(FINITE)
        assert run.compilations == compilations
        run.update(INFINITE)
        for family in FAMILIES:
            np.testing.assert_allclose(run(family())[0], products(family(), INFINITE), rtol=1e-6)
    with pytest.raises(cortex.ModelError, match="bind it again"):
        bound()

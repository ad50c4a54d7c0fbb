"""Every tensor function against NumPy, through the interpreter of RA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from frontend_meaning import compute, sigmoid, weights
from numpy.testing import assert_allclose

import cortex

X = weights(1, x=(3, 4), y=(3, 4), v=(4,), u=(4,), m=(4, 4), t=(2, 3, 4), p=(4,))
X["p"] = np.abs(X["p"]) + 0.1


def softmax(x: Any, axis: int) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def layer_norm(w: Any) -> Any:
    x = w["x"]
    scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return scaled * w["v"] + w["u"]


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "add": (lambda w: w.x + w.v, lambda w: w["x"] + w["v"]),
    "radd": (lambda w: 1 + w.x, lambda w: 1 + w["x"]),
    "sub": (lambda w: w.x - w.v, lambda w: w["x"] - w["v"]),
    "rsub": (lambda w: 1 - w.x, lambda w: 1 - w["x"]),
    "mul": (lambda w: 2 * w.x * w.v, lambda w: 2 * w["x"] * w["v"]),
    "div": (lambda w: w.x / w.p, lambda w: w["x"] / w["p"]),
    "rdiv": (lambda w: 1 / w.p, lambda w: 1 / w["p"]),
    "neg": (lambda w: -w.x, lambda w: -w["x"]),
    "cube": (lambda w: w.x**3, lambda w: w["x"] ** 3),
    "seventh": (lambda w: w.x**7.0, lambda w: w["x"] ** 7),
    "power_0": (lambda w: w.x**0, lambda w: np.ones((3, 4))),
    "power_-2": (lambda w: w.p**-2, lambda w: w["p"] ** -2),
    "power_-0.5": (lambda w: w.p**-0.5, lambda w: w["p"] ** -0.5),
    "abs": (lambda w: abs(w.x) + cortex.abs(w.x), lambda w: 2 * abs(w["x"])),
    "exp_log_sqrt": (lambda w: cortex.exp(cortex.log(cortex.sqrt(w.p))), lambda w: np.sqrt(w["p"])),
    "sigmoid": (lambda w: cortex.sigmoid(w.x), lambda w: sigmoid(w["x"])),
    "tanh": (lambda w: cortex.tanh(w.x), lambda w: np.tanh(w["x"])),
    "relu": (lambda w: cortex.relu(w.x), lambda w: np.maximum(w["x"], 0)),
    "elu": (lambda w: cortex.elu(w.x, 0.5), lambda w: np.where(w["x"] > 0, w["x"], 0.5 * np.expm1(w["x"]))),
    "leaky_relu": (lambda w: cortex.leaky_relu(w.x, 0.2), lambda w: np.where(w["x"] > 0, w["x"], 0.2 * w["x"])),
    "maximum": (lambda w: cortex.maximum(w.x, w.v), lambda w: np.maximum(w["x"], w["v"])),
    "minimum": (lambda w: cortex.minimum(w.x, 0.1), lambda w: np.minimum(w["x"], 0.1)),
    "where": (lambda w: cortex.where(w.x >= w.y, w.x, 0), lambda w: np.where(w["x"] >= w["y"], w["x"], 0)),
    "where_logic": (
        lambda w: cortex.where((w.x > 0) & ~(w.y < 0) | (w.x == w.y), w.x, w.y),
        lambda w: np.where((w["x"] > 0) & ~(w["y"] < 0), w["x"], w["y"]),
    ),
    "where_constant": (lambda w: cortex.where(False, w.x, w.v), lambda w: np.broadcast_to(w["v"], (3, 4))),
    "bool_as_number": (lambda w: (w.x > 0) * 2 + (w.x <= 0), lambda w: (w["x"] > 0) * 2 + (w["x"] <= 0)),
    "concat": (lambda w: cortex.concat([w.x, w.y], axis=-1), lambda w: np.concatenate([w["x"], w["y"]], -1)),
    "stack": (lambda w: cortex.stack([w.x, w.y], axis=1), lambda w: np.stack([w["x"], w["y"]], 1)),
    "split": (lambda w: cortex.split(w.x, 2, axis=1)[1], lambda w: w["x"][:, 2:]),
    "split_sizes": (lambda w: cortex.split(w.v, [1, 3])[1], lambda w: w["v"][1:]),
    "reshape": (lambda w: w.x.reshape(2, -1), lambda w: w["x"].reshape(2, 6)),
    "transpose": (lambda w: cortex.transpose(w.t, (1, 0, 2)), lambda w: w["t"].transpose(1, 0, 2)),
    "T": (lambda w: w.t.T, lambda w: w["t"].T),
    "softmax": (lambda w: cortex.softmax(w.x, axis=0), lambda w: softmax(w["x"], 0)),
    "softmax_list": (lambda w: cortex.softmax([w.v, w.u])[0], lambda w: softmax(np.stack([w["v"], w["u"]]), 0)[0]),
    "layer_norm": (lambda w: cortex.layer_norm(w.x, w.v, w.u), layer_norm),
    "sum": (lambda w: cortex.sum(w.t, axis=(0, -1)), lambda w: w["t"].sum((0, 2))),
    "sum_list": (lambda w: cortex.sum([w.v, w.u, w.v]), lambda w: 2 * w["v"] + w["u"]),
    "mean": (lambda w: w.x.mean(axis=0, keepdims=True), lambda w: w["x"].mean(0, keepdims=True)),
    "mean_list": (lambda w: cortex.mean([w.v, w.u]), lambda w: (w["v"] + w["u"]) / 2),
    "max_min": (lambda w: cortex.max(w.x, axis=1) - w.x.min(1), lambda w: w["x"].max(1) - w["x"].min(1)),
    "matmul": (lambda w: w.x @ w.m @ w.v, lambda w: w["x"] @ w["m"] @ w["v"]),
    "vector_matrix": (lambda w: w.v @ w.m, lambda w: w["v"] @ w["m"]),
    "dot": (lambda w: cortex.dot(w.v, w.u) * cortex.dot(2, w.u), lambda w: (w["v"] @ w["u"]) * 2 * w["u"]),
    "outer": (lambda w: cortex.outer(w.v, w.u), lambda w: np.outer(w["v"], w["u"])),
    "bilinear": (
        lambda w: cortex.einsum("a,iab,b->i", w.x[:, 0], w.t, w.v),
        lambda w: np.einsum("a,iab,b->i", w["x"][:, 0], w["t"], w["v"]),
    ),
    "einsum_one": (lambda w: cortex.einsum("iab->bi", w.t), lambda w: np.einsum("iab->bi", w["t"])),
    "einsum_implicit": (lambda w: cortex.einsum("ba,a", w.x, w.v), lambda w: np.einsum("ba,a", w["x"], w["v"])),
    "einsum_four": (
        lambda w: cortex.einsum("ij,ij,j,jk->ki", w.x, w.y, w.v, w.m),
        lambda w: np.einsum("ij,ij,j,jk->ki", w["x"], w["y"], w["v"], w["m"]),
    ),
    "zeros_ones_full": (
        lambda w: cortex.zeros(2, 3) + cortex.ones((3,)) + cortex.full((2, 3), 2.5),
        lambda w: np.full((2, 3), 3.5),
    ),
    "index": (lambda w: w.t[1, ..., -1], lambda w: w["t"][1, ..., -1]),
    "slice": (lambda w: w.x[1:, ::2], lambda w: w["x"][1:, ::2]),
    "newaxis": (lambda w: w.v[None, :, None], lambda w: w["v"][None, :, None]),
    "empty_slice": (lambda w: w.v[3:1], lambda w: w["v"][3:1]),
    "iterate": (lambda w: sum(row * (i + 1) for i, row in enumerate(w.x)), lambda w: np.array([1, 2, 3]) @ w["x"]),
    "len": (lambda w: w.v * len(w.x) * w.x.ndim * w.x.size, lambda w: w["v"] * 3 * 2 * 12),
}


@pytest.mark.parametrize("name", CASES)
def test_function(name: str) -> None:
    traced, expected = CASES[name]
    exact = {key: value.astype(np.float64) for key, value in X.items()}
    found = compute(traced, **X)
    assert found.shape == np.shape(expected(exact))
    assert_allclose(found, expected(exact), rtol=1e-6, atol=1e-9)


def test_arrays_on_the_left() -> None:
    eye = np.eye(4, dtype=np.float32) * 3
    assert_allclose(
        compute(lambda w: eye @ w.v + np.float32(1) - eye[0] * w.v, **X), eye @ X["v"] + 1 - eye[0] * X["v"]
    )


@pytest.mark.parametrize("name", CASES)
def test_function_uncompiled(name: str) -> None:
    """The same code, called outside of tracing, computes on NumPy arrays."""
    code, expected = CASES[name]

    @cortex.model
    def alone(node: Any, w: Any) -> Any:
        return code(w)

    found = alone(object(), X)
    assert isinstance(found, np.ndarray) and found.dtype == np.float32
    exact = expected({key: value.astype(np.float64) for key, value in X.items()})
    assert found.shape == np.shape(exact)
    assert_allclose(found, exact, rtol=2e-6, atol=1e-6)

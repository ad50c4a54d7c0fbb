"""cortex.matmul computes x @ weight, and more."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import cortex
from cortex.codegen.target import Target
from cortex.primitives.choose import Ranking
from cortex.primitives.compiled import machine_of
from cortex.primitives.product import lower
from cortex.schedule.parallel import Parallel

SHAPES = [(1, 1, 1), (1, 256, 300), (3, 17, 5), (13, 33, 64), (49, 48, 20), (32, 100, 7), (196, 64, 33)]


def reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.matmul(x.astype(np.float64), w.astype(np.float64))


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_products(shape: tuple[int, int, int], threads: int) -> None:
    rows, columns, depth = shape
    x, w, b = numbers(rows, depth), numbers(depth, columns), numbers(columns)
    found = cortex.matmul(w, bias=b, activation="relu", threads=threads)(x)
    np.testing.assert_allclose(found, np.maximum(reference(x, w) + b, 0), rtol=1e-4, atol=1e-5 * depth**0.5)


@pytest.mark.parametrize("transpose_x", [False, True])
@pytest.mark.parametrize("transpose_weight", [False, True])
def test_transposes(transpose_x: bool, transpose_weight: bool) -> None:
    x, w = numbers(21, 40), numbers(40, 19)
    multiply = cortex.matmul(w.T if transpose_weight else w, transpose_weight=transpose_weight, transpose_x=transpose_x)
    np.testing.assert_allclose(multiply(x.T if transpose_x else x), reference(x, w), atol=1e-4)


def test_many_products_at_once() -> None:
    x, w, residual = numbers(5, 7, 12), numbers(5, 12, 20), numbers(5, 7, 20)
    found = cortex.matmul(w, threads=2)(x, residual=residual)
    np.testing.assert_allclose(found, reference(x, w) + residual, atol=1e-4)


def test_any_axes_before_the_last() -> None:
    multiply, x = cortex.matmul(numbers(6, 9)), numbers(2, 3, 4, 6)
    assert multiply(x).shape == (2, 3, 4, 9)
    assert multiply(x[0, 0, 0]).shape == (9,)
    assert multiply(x[:0]).shape == (0, 3, 4, 9)
    np.testing.assert_array_equal(multiply(x)[1, 2], multiply(x[1, 2]))


@pytest.mark.parametrize(("rows", "threads"), [(1, 1), (256, 2)])
def test_what_is_small_is_left_to_one_thread(rows: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cortex.primitives.compiled.SHARING_NS", 4000.0)
    multiply, x = cortex.matmul(numbers(256, 128)), numbers(rows, 256)
    np.testing.assert_array_equal(multiply(x, threads=2), multiply(x))
    found = multiply.compiled(multiply.shape_of(x)[0], 2)
    assert found.threads == threads
    assert any(isinstance(step, Parallel) for step in found.schedule) == (threads == 2)


def test_so_many_ways_are_timed_and_the_fastest_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = machine_of(Target.host())
    monkeypatch.setattr("cortex.primitives.compiled.machine_of", lambda _: machine)
    monkeypatch.setattr("cortex.primitives.compiled._times", lambda f, built, threads: [3.0, 1.0, 2.0][: len(built)])
    monkeypatch.setenv("CORTEX_CACHE", str(tmp_path))
    w, x = numbers(40, 96), numbers(33, 40)
    tuned, chosen = cortex.matmul(w, tune=3), cortex.matmul(w)
    np.testing.assert_array_equal(tuned(x), chosen(x))
    product, _ = tuned.shape_of(x)
    best = Ranking(lower(product), machine).choices
    assert [m.compiled(product).variant for m in (chosen, tuned)] == [best[0].variant, best[1].variant]


def test_the_published_cost_can_be_asked_for() -> None:
    w, x = numbers(256, 512), numbers(196, 256)
    default, published = cortex.matmul(w), cortex.matmul(w, cost="working sets")
    np.testing.assert_array_equal(published(x), default(x))
    product, _ = default.shape_of(x)
    ranking = Ranking(lower(product), machine_of(Target.host()), "working sets")
    assert published.compiled(product).variant == ranking.choices[0].variant != default.compiled(product).variant


@pytest.mark.parametrize("level", ["avx2", "sse2"])
def test_other_instruction_sets(level: Literal["avx2", "sse2"]) -> None:
    w, x = numbers(40, 96), numbers(33, 40)
    multiply = cortex.matmul(w, target=Target.x86(level))
    np.testing.assert_allclose(multiply(x), reference(x, w), atol=1e-4)


def test_out_is_written() -> None:
    multiply, x = cortex.matmul(numbers(6, 9)), numbers(3, 6)
    out = np.empty((3, 9), np.float32)
    assert multiply(x, out=out) is out
    np.testing.assert_array_equal(out, multiply(x))


def test_a_linear_module() -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(24, 33).eval()
    x = torch.randn(5, 24)
    torch.testing.assert_close(cortex.matmul(module, activation="tanh")(x), torch.tanh(module(x)).detach())


def test_in_a_model_it_is_symbolic() -> None:
    @cortex.model
    def one(node, w):  # type: ignore[no-untyped-def]
        return cortex.matmul(w.W, w.emb[node.word])

    class Node:
        word = 2

    weights = {"W": numbers(4, 3), "emb": numbers(5, 3)}
    found = cortex.compile(one, weights)(Node()).out
    np.testing.assert_allclose(found, weights["W"] @ weights["emb"][2], rtol=1e-4)

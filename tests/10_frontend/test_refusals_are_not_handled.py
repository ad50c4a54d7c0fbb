"""What is refused stays refused, though the user's code handles all exceptions; `match` tries the patterns of lists."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex

WEIGHTS = {"x": np.ones(2, np.float32)}


def read_as_bytes(n: Any, w: Any) -> Any:
    try:
        return w.x * len(bytes(n.word, "ascii"))
    except Exception:
        return w.x * 100.0


def read_with_a_base(n: Any, w: Any) -> Any:
    try:
        return w.x * int(n.word, 16)
    except (TypeError, ValueError):
        return w.x * 100.0


def _length(n: Any) -> int:
    return len(bytes(n.word, "ascii"))


def raised_in_a_helper(n: Any, w: Any) -> Any:
    try:
        return w.x * _length(n)
    except TypeError:
        return w.x * 100.0


def raised_in_a_library(n: Any, w: Any) -> Any:
    try:
        return w.x * float(Fraction(n.size, 4))
    except TypeError:
        return w.x * 100.0


@pytest.mark.parametrize(
    "function", [read_as_bytes, read_with_a_base, raised_in_a_helper, raised_in_a_library], ids=lambda f: f.__name__
)
def test_errors_of_functions_that_take_real_values_only(function: Any) -> None:
    given = SimpleNamespace(word="ab", size=3, children=[])
    with pytest.raises(cortex.ModelError, match="take real values only") as error:
        cortex.compile(cortex.model(function), WEIGHTS, examples=[given], check=False)
    assert Path(__file__).name in str(error.value)


def what_python_refuses(n: Any, w: Any) -> Any:
    try:
        return w.x * float(n.nothing)
    except TypeError:
        return w.x * 100.0


def what_python_cannot_add_up(n: Any, w: Any) -> Any:
    try:
        return w.x * sum(n.nothing)
    except TypeError:
        return w.x * 100.0


@pytest.mark.parametrize("function", [what_python_refuses, what_python_cannot_add_up], ids=lambda f: f.__name__)
def test_errors_that_python_raises_for_the_value_are_handled(function: Any) -> None:
    given = SimpleNamespace(nothing=None, size=3, children=[])
    fast = cortex.compile(cortex.model(function), WEIGHTS, examples=[given], check=False)
    np.testing.assert_array_equal(fast(given).out, WEIGHTS["x"] * 100)


def node(*children: Any, t: float = 2.0) -> Any:
    return SimpleNamespace(t=t, children=list(children))


def method(n: Any, w: Any) -> Any:
    try:
        size = n.size()
    except Exception:
        size = 100.0
    return w.x * size


def number_of_a_tensor(n: Any, w: Any) -> Any:
    try:
        size = float(w.x[0])
    except Exception:
        size = 100.0
    return w.x * size


def branch(n: Any, w: Any) -> Any:
    try:
        if cortex.sum(w.x) > 1:
            return w.x
    except Exception:
        pass
    return w.x * 100.0


def number_of_a_state(n: Any, w: Any) -> Any:
    try:
        return w.x * int(cortex.max(w.x * n.t))
    except Exception:
        return w.x * 100.0


@pytest.mark.parametrize("function", [number_of_a_tensor, branch, number_of_a_state], ids=lambda f: f.__name__)
def test_refusals(function: Any) -> None:
    with pytest.raises(cortex.ModelError):
        cortex.compile(cortex.model(function), WEIGHTS, examples=[node()], check=False)(node())


def test_a_method_that_a_node_lacks_raises_as_in_python() -> None:
    fast = cortex.compile(cortex.model(method), WEIGHTS, examples=[node()], check=False)
    assert fast(node())[0].tolist() == [100.0, 100.0]


def division(n: Any, w: Any) -> Any:
    try:
        return w.x * (1 / n.t)
    except ZeroDivisionError:
        return w.x * 7.0


def test_what_python_raises_is_handled() -> None:
    fast = cortex.compile(cortex.model(division), WEIGHTS, examples=[node()])
    assert [fast(node(t=t))[0][0] for t in (2.0, 0.0, 4.0)] == [0.5, 7.0, 0.25]


@cortex.model
def matched(n: Any, w: Any) -> Any:
    match n.children:
        case []:
            return w.x
        case [only]:
            return matched(only, w) * 2.0
        case [first, *_, last]:
            return matched(first, w) + matched(last, w) * 10.0


@pytest.mark.parametrize(
    "tree, right",
    [(node(), 1), (node(node()), 2), (node(node(), node(node())), 21), (node(node(), node(), node()), 11)],
)
def test_patterns_of_lists(tree: Any, right: float) -> None:
    fast = cortex.compile(matched, WEIGHTS, examples=[node(node()), node(), node(node(), node())])
    assert fast(tree)[0][0] == right

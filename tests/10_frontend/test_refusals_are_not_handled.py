"""What is refused stays refused, though the user's code handles all exceptions; `match` tries the patterns of lists."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex

WEIGHTS = {"x": np.ones(2, np.float32)}


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

"""Models that make kinds of node without end: they are refused after some time, and the question is told."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest
from frontend_meaning import Node

import cortex
from cortex import compiler
from cortex.frontend import clock
from cortex.frontend.signals import OutOfTime


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """`hurried(n)`: a clock that has run for a second whenever it is looked at, and `n` seconds for tracing."""
    passed = count()
    monkeypatch.setattr(clock, "thread_time", lambda: float(next(passed)))

    def seconds(most: int) -> None:
        monkeypatch.setenv("CORTEX_TRACING_SECONDS", str(most))

    return seconds


@cortex.model
def by_value(node: Any, w: Any) -> Any:
    x = w.b * float(node.value)
    return x + cortex.sum(by_value(k, w) for k in node.children)


@cortex.model
def by_text(node: Any, w: Any) -> Any:
    x = w.b * len(node.text)
    return x + cortex.sum(by_text(k, w) for k in node.children)


@cortex.model
def by_child(node: Any, w: Any) -> Any:
    x = w.b
    for k in node.children:
        x = x + by_child(k, w) * float(k.value)
    return x


def numbered(most: int) -> Node:
    return Node(value=0.5, text="", children=[Node(value=i + 0.5, text="x" * i, children=[]) for i in range(most)])


@pytest.mark.parametrize("model", [by_value, by_text], ids=lambda model: model.name)
def test_tracing_ends(model: Any, hurried: Any, golden: Callable[[str, str], None]) -> None:
    hurried(5000)
    with pytest.raises(cortex.ModelError) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cortex.compile(model, {"b": np.ones(3)}, examples=[numbered(5), numbered(1000)])
    message = re.sub(r"\d+ (kinds|so far)|are \d+", r"N \1", caught.value.message)
    golden(f"errors/model/endless_{model.name}", message)


def test_numbers_of_children_are_data() -> None:
    fast = cortex.compile(by_child, {"b": np.ones(3)}, examples=[numbered(5)], check=False)
    for most in (0, 1, 7, 300):
        tree = numbered(most)
        np.testing.assert_allclose(np.asarray(fast(tree)), np.asarray(by_child(tree, {"b": np.ones(3)})), rtol=1e-5)


def test_tracing_in_a_request_ends(hurried: Any) -> None:
    hurried(5000)
    fast = cortex.compile(by_value, {"b": np.ones(3)}, examples=[numbered(0)])
    with pytest.raises(cortex.ModelError, match=r"takes longer than 5000 s; .* the value of node\.value"):
        fast(numbered(1000))


def test_compiling_many_kinds_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_time() -> None:
        raise OutOfTime

    monkeypatch.setattr(compiler, "tick", out_of_time)
    with (
        pytest.warns(UserWarning, match="kinds of node"),
        pytest.raises(cortex.ModelError, match=r"compiling 'by_value'"),
    ):
        cortex.compile(by_value, {"b": np.ones(3)}, examples=[numbered(40)])


def test_walks_over_many_nodes_have_time_of_their_own() -> None:
    timer = clock.Clock(0.0)
    with timer.running(), pytest.raises(OutOfTime):
        timer.tick()
    with timer.running():
        timer.reached(10**9)
        timer.tick()
    timer.tick()  # nothing is under way

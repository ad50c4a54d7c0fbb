"""`is` in models: a stand-in is never the object that it stands for, so who compares one asks the real node."""

from __future__ import annotations

import importlib.util
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex


class Color(Enum):
    RED = 1
    BLUE = 2


MODE, OTHER = "fast", object()
WEIGHTS = {"x": np.ones(2, np.float32)}


def of_an_enum(n: Any, w: Any) -> Any:
    return w.x * 2 if n.color is Color.RED else w.x


def of_a_text(n: Any, w: Any) -> Any:
    return w.x * 2 if n.mode is MODE else w.x


def of_a_variable(n: Any, w: Any) -> Any:
    color = n.color
    return w.x * 2 if color is not Color.RED else w.x


def turned_round(n: Any, w: Any) -> Any:
    return w.x * 2 if Color.RED is n.color else w.x


@pytest.mark.parametrize("function", [of_an_enum, of_a_text, of_a_variable, turned_round], ids=lambda f: f.__name__)
@pytest.mark.parametrize("check", [True, False])
def test_values_of_nodes_are_asked_for(function: Any, check: bool) -> None:
    nodes = [SimpleNamespace(color=color, mode=mode) for color in Color for mode in (MODE, "slow")]
    model = cortex.model(function)
    fast = cortex.compile(model, WEIGHTS, examples=nodes[:1], check=check)
    for each in nodes:
        np.testing.assert_array_equal(fast(each)[0], np.asarray(model.uncompiled(each, WEIGHTS)))


TAGGED = """
def of_a_literal(n, w):
    return w.x * 2 if n.tag is 'a' else w.x

def of_another(n, w):
    return w.x * 2 if n.tag is not 'a' or n.k is 3 else w.x

def of_a_filter(n, w):
    return w.x * len([c for c in (n, n) if c.k is 3])

def of_a_long_text(n, w):
    return w.x * 2 if n.tag is 'a text' else w.x

def of_a_large_number(n, w):
    return w.x * 2 if 1000 is n.k else w.x

def of_a_float(n, w):
    return w.x * 2 if n.k is not 1.5 else w.x
"""


def _tagged(folder: Path, name: str) -> Any:
    """A function of the source above: literals after `is` give a SyntaxWarning."""
    file = folder / "tagged.py"
    file.write_text(TAGGED)
    spec = importlib.util.spec_from_file_location("tagged", file)
    assert spec is not None and spec.loader is not None
    code = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(code)
    return cortex.model(getattr(code, name))


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("name", ["of_a_literal", "of_another", "of_a_filter"])
def test_literals(tmp_path: Path, name: str) -> None:
    model = _tagged(tmp_path, name)
    nodes = [SimpleNamespace(tag=tag, k=k) for tag in ("b", "a") for k in (2, 3)]
    fast = cortex.compile(model, WEIGHTS, examples=nodes[:1], check=False)
    for each in nodes:
        np.testing.assert_array_equal(fast(each)[0], np.asarray(model.uncompiled(each, WEIGHTS)))


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("name", ["of_a_long_text", "of_a_large_number", "of_a_float"])
def test_literals_that_need_not_be_one_object_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(cortex.ModelError, match="Compare them by"):
        cortex.compile(_tagged(tmp_path, name), WEIGHTS, examples=[SimpleNamespace(tag="b", k=2)], check=False)


def of_nothing(n: Any, w: Any) -> Any:
    return w.x * 2 if n.left is None else w.x


def of_truth(n: Any, w: Any) -> Any:
    return w.x * 2 if n.flag is True else w.x


def of_what_is_outside(n: Any, w: Any) -> Any:
    return w.x * 2 if MODE is OTHER else w.x * n.t


@pytest.mark.parametrize("function", [of_nothing, of_truth, of_what_is_outside], ids=lambda f: f.__name__)
def test_what_python_can_answer_is_answered(function: Any) -> None:
    nodes = [SimpleNamespace(left=None, flag=flag, t=3.0) for flag in (True, 1, False)]
    model = cortex.model(function)
    fast = cortex.compile(model, WEIGHTS, examples=nodes[:1])
    for each in nodes:
        np.testing.assert_array_equal(fast(each)[0], np.asarray(model.uncompiled(each, WEIGHTS)))

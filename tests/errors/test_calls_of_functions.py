"""Model functions that are compiled by their calls: what is refused, with golden messages."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex

WEIGHTS = {"b": np.ones(2, np.float32)}
NODE = SimpleNamespace(left=SimpleNamespace(left=None))


def define(name: str, source: str) -> Any:
    """A model function as if it stood in a file."""
    text, file = f"@cortex.model\n{source}\n", f"calls_{name}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"cortex": cortex}
    exec(compile(text, file, "exec"), names)
    return names["f"]


BY_CLASS = "def f(node, w):\n    return w.b if isinstance(node, int) or node.left is None else f(node.left, w) + w.b"

WRONG: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "array_beside": ("def f(node, w, x):\n    return w.b + x", lambda f: cortex.compile(f, WEIGHTS)(NODE, np.ones(2))),
    "argument_missing": ("def f(node, w, x):\n    return w.b", lambda f: cortex.compile(f, WEIGHTS)(NODE)),
    "nothing_returned": (
        "def f(node, w):\n    isinstance(node, int)",
        lambda f: cortex.compile(f, WEIGHTS, examples=[NODE]),
    ),
    "list_filled": (
        "def f(node, w, seen=None):\n    seen = [] if seen is None else seen\n    seen.append(node)\n"
        "    return w.b if node.left is None else f(node.left, w, seen)",
        lambda f: cortex.compile(f, WEIGHTS, examples=[NODE]),
    ),
    "saved_early": (BY_CLASS, lambda f: cortex.compile(f, WEIGHTS).save("nowhere.cortex")),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls(name: str, golden: Callable[[str, str], None]) -> None:
    source, run = WRONG[name]
    with pytest.raises(cortex.CortexError) as caught:
        run(define(name, source))
    golden(f"errors/calls/{name}", f"{type(caught.value).__name__}: {caught.value}")


@pytest.mark.parametrize("what", ["out", "bind"])
def test_what_calls_cannot_do_once_they_are_seen(what: str, golden: Callable[[str, str], None]) -> None:
    fast: Any = cortex.compile(
        define("late", "def f(node, w):\n    return w.b if node.left is None else f(node.left, w)"), WEIGHTS
    )
    fast(NODE)
    fast.by_calls = cortex.compile(define("by_class", BY_CLASS), WEIGHTS, examples=[NODE])
    fast._loaded = None
    with pytest.raises(cortex.ModelError) as caught:
        fast(NODE, out={"out": np.empty(2, np.float32)}) if what == "out" else fast.bind(NODE)
    golden(f"errors/calls/{what}", f"{type(caught.value).__name__}: {caught.value}")

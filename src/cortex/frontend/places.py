"""Where in the user's structures a node is, as the linearizer says it: `root.left`, `structures[3].children[1]`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cortex.frontend.knowledge import Knowledge


def place_of(target: Any, roots: Sequence[Any], names: Sequence[str], k: Knowledge) -> str:
    """The path to `target` from one of the roots, which are called `names`; "" where none leads there."""
    visited: dict[int, Any] = {}
    for root, name in zip(roots, names, strict=True):
        stack = [(root, name)]
        while stack:
            node, path = stack.pop()
            if node is target:
                return path
            if id(node) not in visited:
                visited[id(node)] = node
                stack.extend((child, path + step) for step, child in reversed(list(_steps(node, k))))
    return ""


def _steps(node: Any, k: Knowledge) -> Iterator[tuple[str, Any]]:
    """The children of a node with the step to each; nothing more after an attribute that cannot be read."""
    try:
        for name in sorted(k.slots):
            child = k.accessors.read(node, name, None)
            if child is not None:
                yield f".{name}", child
        for name in sorted(k.lists):
            for i, child in enumerate(k.accessors.items(node, name)):
                yield f".{name}[{i}]", child
    except Exception:
        return

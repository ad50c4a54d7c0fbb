"""Walking real structures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


def postorder(roots: Iterable[Any], children: Callable[[Any], list[Any]]) -> Iterator[Any]:
    """Every node once, by identity, after the nodes below it. Iterative, so depth does not matter.

    A cycle does not hang the walk; the linearizer rejects it.
    """
    visited: dict[int, Any] = {}  # holding the nodes keeps their ids from being reused
    for root in roots:
        stack: list[tuple[Any, bool]] = [(root, False)]
        while stack:
            node, below_done = stack.pop()
            if below_done:
                yield node
            elif id(node) not in visited:
                visited[id(node)] = node
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(children(node)))

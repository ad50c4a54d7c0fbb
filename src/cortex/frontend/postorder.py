"""Walking real structures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cortex.errors import StructureError

MAX_OBJECTS = 10_000_000
"""Nodes of one request as Python objects. Reading an attribute may make new nodes without end, and such a walk has to
end before the memory does."""


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
                if len(visited) > MAX_OBJECTS:
                    raise StructureError(
                        f"the structures have more than {MAX_OBJECTS} nodes, the limit of one request; split it into "
                        "smaller batches, give it as arrays (Forest), or, if it should be small, see whether reading "
                        "its children makes new nodes without end"
                    )
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(children(node)))

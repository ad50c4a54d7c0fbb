"""The check that user code does the same again: every kind is traced once more, when all of them are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import zip_longest

from cortex.errors import ModelError
from cortex.frontend.facts import Seen
from cortex.ra.ir import Let

Once = tuple[Seen, list[Let]]
"""A node, and what its trace has computed."""


def confirm(model: str, traced: Iterable[Once], trace: Callable[[Seen], list[Let]]) -> None:
    """Refuse a model that computes something else for the same node.

    Where more is known than when a node was traced first, its trace may differ; two traces in a row must not.
    """
    for oracle, lets in traced:
        once = trace(oracle)
        again = once if once == lets else trace(oracle)
        if again != once:
            differs = (new for new, old in zip_longest(again, once) if new != old)
            raise ModelError(
                f"'{model}' computes something else when it is run for the same node once more: it draws random "
                "numbers, reads a clock, or keeps something between calls. Make it a field of the node, or an "
                "argument.",
                next((let.span for let in differs if let is not None), None),
            )

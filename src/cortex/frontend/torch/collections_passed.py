"""Collections that calls pass along: of constants, or empty ones to remember results in. Without torch."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

FRESH = (dict, list, set)
"""Collections that code passes along to remember results in."""


@dataclass(frozen=True)
class Content:
    """An argument that is a collection of constants, always the same ones."""

    text: str
    value: Any = field(compare=False)

    @classmethod
    def of(cls, value: Any) -> Content | None:
        """The content of a collection, unless it is empty or holds something else than constants."""
        return cls(repr(value), deepcopy(value)) if value and _is_constant(value) else None


def _is_constant(x: Any) -> bool:
    if isinstance(x, dict):
        return all(_is_constant(part) for pair in x.items() for part in pair)
    if isinstance(x, list | tuple | set):
        return all(map(_is_constant, x))
    return type(x) in (str, int, float, bool, type(None))

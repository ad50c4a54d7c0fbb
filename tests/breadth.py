"""How much of a product of cases `make test` tries: every one of each side; CORTEX_FUZZ=long tries all of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")

LONG = os.environ.get("CORTEX_FUZZ") == "long"


def pairs(names: Iterable[A], values: Sequence[B], each: int = 1, whole: Iterable[A] = ()) -> list[tuple[A, B]]:
    """Every name with `each` of the values, in turn, and those of `whole` with all of them; in the long run all are."""
    kept, found = set(whole), []
    for i, name in enumerate(names):
        chosen = {(i * each + k) % len(values) for k in range(each)}
        found += [(name, v) for j, v in enumerate(values) if LONG or name in kept or j in chosen]
    return found


def some(names: Iterable[A], few: Sequence[A]) -> Sequence[A]:
    """`few` of the names, which stand for the others, or in the long run all."""
    return list(names) if LONG else few

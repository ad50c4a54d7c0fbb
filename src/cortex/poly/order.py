"""How two runs inside the same loops lie to each other: what a legality question asks about.

    run before    s at i = 3, j = 1
    run after     t at i = 3, j = 2           the first is earlier in the loops (i, j), and later in none

An order is a choice of cases; a case compares the first run with the second in some loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Literal

Sign = Literal["<", "=", ">"]
Case = tuple[tuple[str, Sign], ...]
Order = tuple[Case, ...]

ANY: Order = ((),)


def earlier(loops: Sequence[str]) -> Order:
    """The first run is in an earlier iteration of a nest, whose outermost loop is named first."""
    return _lexicographic(loops, "<")


def later(loops: Sequence[str]) -> Order:
    """The first run is in a later iteration of a nest, whose outermost loop is named first."""
    return _lexicographic(loops, ">")


def different(loops: Sequence[str]) -> Order:
    """The runs are in different iterations of a nest."""
    return (*earlier(loops), *later(loops))


def both(x: Order, y: Order) -> Order:
    """Two orders at once; cases that contradict each other are left out."""
    merged = (tuple(dict.fromkeys((*a, *b))) for a, b in product(x, y))
    return tuple(dict.fromkeys(case for case in merged if len({loop for loop, _ in case}) == len(case)))


def _lexicographic(loops: Sequence[str], sign: Sign) -> Order:
    same: list[Case] = [tuple((loop, "=") for loop in loops[:depth]) for depth in range(len(loops))]
    return tuple((*case, (loop, sign)) for case, loop in zip(same, loops, strict=True))

"""Schedules to measure when a model is tuned: the automatic one, and what it is one decision away from."""

from __future__ import annotations

from collections.abc import Iterator

from cortex.cost.choose import Considered, Recursion
from cortex.schedule.default import Choices
from cortex.schedule.registers import TileChoice

TILES = (
    TileChoice(rows_first=True),
    *(
        TileChoice(wide, tallest, unroll)
        for wide, tallest in ((4, 9), (4, 4), (4, 2), (2, 12), (2, 6), (1, 14))
        for unroll in (None, 4)
    ),
)


def neighbours(recursion: Recursion, considered: tuple[Considered, ...]) -> Iterator[tuple[Recursion, Choices | None]]:
    """Pairs of steps on the recursion and choices for the loops (None: tiles by cost), the automatic pair first."""
    yield recursion, None
    for tile in TILES:
        yield recursion, Choices(tile=tile)
    yield recursion, Choices(fuse=False)
    for c in considered:
        if c.step is not None:
            rest = tuple(s for s in recursion if s != c.step)
            yield (rest if c.taken else (*recursion, c.step)), None

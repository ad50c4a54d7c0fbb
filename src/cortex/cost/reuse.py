"""What a nest of loops around a register tile costs, without building it: the tile's own cycles and its data's way.

The loops are given outermost first, each a step along one variable of the program's sums; inside them is the tile.
Whenever the tile is run it touches the lines of every array that its box covers. Going outwards, a loop touches data
again that its previous iteration touched: that comes from as far as one iteration of the loop reaches. The
exact numbers of lines say how much is touched again: all of it by a loop that an array does not depend on, the overlap
of neighbouring boxes by one that it does.

    for k in panels: for p in rows:      rows of w are touched again by every p, after the lines of one p's iteration;
      x[p + r, c] * w[k, r, c]           two of three rows of x by the next p; all of x by the next k, after all of x

What is left comes from the previous call, as far as everything the nest touches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod

from cortex.cost.machine import Machine
from cortex.cost.register_tile import step_limits
from cortex.ilir.ir import Func
from cortex.ir.scalar import Expr
from cortex.ir.simplify import free_vars

LINE, PAGE = 64, 4096
OVERLAP = 0.12
"""The share of the shorter of computing and moving that is not hidden behind the longer."""
READS = 0.02
"""The share of a tile's loads, or of its sums, that is not hidden behind the other."""
FULL = 0.25
"""Lines that are read again in every step where rows take all of a place in the nearest cache."""
TILE_NS = 6.0
"""Entering a tile: clearing its sums, and the first steps, which wait for their data."""


@dataclass(frozen=True)
class Loop:
    """A loop that moves along a variable in steps; `trips` of them."""

    var: str
    step: int
    trips: int


@dataclass(frozen=True, eq=False)
class Use:
    """An array that a nest touches, at an index of the program's own variables; equal to nothing but itself."""

    name: str
    index: tuple[Expr, ...]

    @cached_property
    def variables(self) -> frozenset[str]:
        """What the index depends on."""
        return frozenset(free_vars(self.index))


@dataclass(frozen=True)
class Moved:
    """Bytes of an array that come from `distance` bytes away."""

    name: str
    bytes: float
    distance: float


Lines = Callable[[Use, tuple[tuple[str, int], ...]], int]


def exact_lines(f: Func) -> Lines:
    """Counts lines of the arrays of a program by isl, each box once."""
    from cortex.poly.footprint import lines

    @cache
    def counted(use: Use, box: tuple[tuple[str, int], ...]) -> int:
        return lines(f, use.index, dict(box), LINE // 4)

    def count(use: Use, box: tuple[tuple[str, int], ...]) -> int:
        needed = use.variables
        return counted(use, tuple((v, e) for v, e in box if v in needed))

    return count


def movement(
    loops: tuple[Loop, ...], tile: Mapping[str, int], extents: Mapping[str, int], uses: tuple[Use, ...], lines: Lines
) -> list[Moved]:
    """Where the data of a nest comes from. `tile` is the box of the register tile, `extents` that of everything."""
    boxes = [dict(tile)]
    for loop in reversed(loops):
        covered = min(extents[loop.var], max(boxes[-1][loop.var], loop.step) * loop.trips)
        boxes.append({**boxes[-1], loop.var: covered})
    counts = [{u: lines(u, tuple(sorted(box.items()))) for u in uses} for box in boxes]
    reach = [LINE * sum(each.values()) for each in counts]
    runs = prod(loop.trips for loop in loops)
    found: list[Moved] = []
    for use in uses:
        left = float(runs * counts[0][use] * LINE)
        for level, loop in enumerate(reversed(loops)):
            new = counts[level + 1][use] / (loop.trips * counts[level][use])
            if loop.trips > 1 and new < 1:
                found.append(Moved(use.name, left * (1 - new), reach[level]))
                left *= new
        found.append(Moved(use.name, left, reach[-1]))
    return found


def moving_ns(moved: list[Moved], m: Machine) -> float:
    """Nanoseconds to bring what is not in the nearest cache."""
    return sum(each.bytes / m.rate(each.distance) for each in moved if each.distance > m.l1)


def streaming_pays(size: int, m: Machine) -> bool:
    """Is a result of `size` bytes better written past the caches?

    A store that goes through them reads its line first and writes it back later, and whoever uses the result reads
    it: three times its size, at the rate of so much data. Without them it is written and read once, in memory.
    """
    far = m.reads[-1][1]
    return 3 / m.rate(size) > 2 / far


def tile_ns(m: Machine, height: int, vectors: int, steps: float, crowding: float = 0.0) -> float:
    """Nanoseconds of a register tile's sums, with all data near but for `crowding` lines.

    Every step reads an element of each row. Rows that lie a multiple of a page apart share a few places of the nearest
    cache: those that it cannot hold at once (`crowded`) come from the next one, again and again.
    """
    sums, issue, chain = step_limits(m, float(height), vectors)
    far = crowding * LINE / m.rate(m.l2 / 2)
    step = max(sums, issue, chain) + READS * min(sums, issue) + far
    return steps * step + 2 * height * vectors * m.load + TILE_NS


def crowded(rows: Sequence[int], size: int) -> float:
    """Lines in excess of what a cache of `size` bytes holds at the place of each, of one line at each of `rows`.

    A place is decided by the address within a page; there are as many lines in each as pages in the cache. Where rows
    take all of a place, the weights that pass through it drive out some.
    """
    ways = size // PAGE
    places = Counter(row % PAGE // LINE for row in rows)
    return sum(float(lines - ways) if lines > ways else FULL if lines == ways else 0.0 for lines in places.values())


def total_ns(computing: float, moving: float) -> float:
    """Computing and moving together: the longer hides most of the shorter."""
    return max(computing, moving) + OVERLAP * min(computing, moving)

"""The ways to run a primitive: register tiles, tiles at two levels of caches, orders of the loops around them.

    for panels of columns, for bands of rows               either outermost
      for blocks of columns, for the rows of a band        either outside
        a register tile: `height` rows by `vectors` vectors of columns, summed over the whole reduction

Rows are points of one row of an image, or of all of them (`spans`). Threads share one of these loops. Every variant
is a schedule of the usual steps, which refuse what would change the result. Pruned are: register tiles that do not fit
the registers or have too few sums to hide the latency of an addition where more would fit, and those that need no fewer
tiles than a lower one; bands and panels that do not divide the loop they tile; loop orders that are another variant's
because a loop has one iteration; shared loops that keep threads waiting for longer than another one would.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import isqrt, prod

from cortex.cost.reuse import Loop
from cortex.ilir.ir import For, Func
from cortex.ir.node import walk
from cortex.ir.scalar import Load
from cortex.ir.simplify import free_vars
from cortex.ir.step import Step, apply
from cortex.schedule.around import loops_around
from cortex.schedule.flatten import Flatten
from cortex.schedule.locate import constant_extent, loop_names
from cortex.schedule.pack import Pack
from cortex.schedule.registers import Registers
from cortex.schedule.reorder import Reorder
from cortex.schedule.split import Split
from cortex.schedule.surround import Surround
from cortex.schedule.tile import Tile
from cortex.schedule.vectorize import Vectorize

LEAST_SUMS = 8
"""Vectors of sums that hide the latency of an addition on two units."""
ADDRESSES = 12
"""Rows of a tile that do not lie at equal distances and still have a register each for where they begin."""
UNEVEN = 1.1
"""A shared loop may keep the busiest thread so many times as long as the loop that shares most evenly."""


@dataclass(frozen=True)
class Variant:
    """One way to run a primitive.

    The register tile is `height` by `vectors`. `band` rows (of an image, or of a matrix) and `panel` columns are a tile
    of a cache; 0 stands for all. `panels_first` puts the loop over panels outside that over bands, `blocks_first` that
    over the blocks of a panel outside the rows of a band. With `spans`, the rows of a tile are points of several rows
    of an image. Threads share the loop `shared`, one of `levels`; "" if none.
    """

    height: int
    vectors: int
    band: int = 0
    panel: int = 0
    panels_first: bool = False
    blocks_first: bool = True
    spans: bool = False
    shared: str = ""


@dataclass(frozen=True)
class Shape:
    """The loops of a primitive's sums: those around rows and columns, the rows of register tiles, the columns.

    `bands` is the loop that is cut into bands: the rows themselves, or one around them. `steps` counts those of a sum.
    """

    around: tuple[str, ...]
    bands: str
    rows: str
    columns: str
    extents: dict[str, int]
    steps: int

    @staticmethod
    def of(f: Func) -> Shape:
        """The loops of a lowered primitive."""
        around = loops_around(f, "k")
        names = [loop.var for loop in around]
        rows = names[-2]
        extents = {loop.var: constant_extent(loop) or 0 for loop in around}
        bands = "p" if extents.get("p", 1) > 1 else rows
        outer = tuple(name for name in names[:-2] if name != bands)
        inside = [n for n in walk(around[-1]) if isinstance(n, For) and n is not around[-1]]
        return Shape(outer, bands, rows, "k", extents, prod(constant_extent(n) or 3 for n in inside))


def spanning(f: Func) -> tuple[Step[Func], ...]:
    """The steps that make the points of an image one loop, for register tiles of several of its rows; () if it is one.

    Where it depends on the row of the image which rows of a filter meet it, zeros above and below are read as well.
    """
    around = {loop.var: loop for loop in loops_around(f, "k")}
    if tuple(around)[-3:] != ("p", "q", "k") or min(constant_extent(around[name]) or 0 for name in "pq") < 2:
        return ()
    terms = next(n for n in walk(around["k"]) if isinstance(n, For) and n.var == "r")
    flat = Flatten(("p", "q"))
    if constant_extent(terms) is not None:
        return (flat,)
    reads = next((n for n in walk(terms) if isinstance(n, Load) and n.buffer == "image"), None)
    return () if reads is None else (Surround("image", len(reads.index) - 2, "r"), flat)


def program_of(f: Func, v: Variant) -> Func:
    """The program that the loops of a variant are those of."""
    return apply(f, spanning(f)) if v.spans else f


def steps(f: Func, v: Variant, registers: Registers, long_epilogue: bool = False) -> tuple[Step[Func], ...]:
    """The schedule of a variant, on one thread."""
    found: list[Step[Func]] = list(spanning(f)) if v.spans else []
    f = apply(f, found)
    shape = Shape.of(f)
    found += _copies(f, registers.lanes)
    columns, bands, rows = shape.columns, shape.bands, shape.rows
    outer, inside = list(shape.around), list[str]()
    if 0 < v.panel < shape.extents[columns]:
        found.append(Split(columns, v.panel, "none"))
        columns = f"{shape.columns}_i"
    if 0 < v.band < shape.extents[bands]:
        found.append(Split(bands, v.band, "none"))
        outer.append(f"{bands}_o")
        rows = f"{bands}_i" if bands == rows else rows
        inside += [] if bands == shape.rows else [f"{bands}_i"]
    elif bands != rows:
        inside.append(bands)
    if columns != shape.columns:
        panel = f"{shape.columns}_o"
        outer = [panel, *outer] if v.panels_first else [*outer, panel]
    order = (*outer, *inside, rows, columns)
    if order != tuple(shape.extents):
        found.append(Reorder(order))
    width = v.vectors * registers.lanes
    tall = rows_of_band(shape, v) > 1
    unroll = tuple(registers.unroll(r * v.vectors) for r in range(1, v.height + 1))
    if _has_weights_by_column(f, shape.columns):
        found.append(Pack(columns, width))
    found.append(
        Tile(
            order[0],
            columns,
            rows if tall else None,
            v.height if tall else 1,
            v.vectors,
            registers.lanes,
            unroll,
            tuple(inside) if v.blocks_first else (),
            "rows" if long_epilogue else "registers",
        )
    )
    return tuple(found)


def rows_of_band(shape: Shape, v: Variant) -> int:
    """The rows that register tiles are formed of."""
    return v.band or shape.extents[shape.rows] if shape.bands == shape.rows else shape.extents[shape.rows]


def levels(shape: Shape, v: Variant, lanes: int) -> dict[str, Loop]:
    """The loops around the register tile, outermost first: around everything by their own names, then by what they do.

    "panels", "bands", "blocks" of columns, the "lines" of a band that has several rows of an image, tiles of "rows".
    """
    e = shape.extents
    panel, band = v.panel or e[shape.columns], v.band or e[shape.bands]
    width = v.vectors * lanes
    panels = {"panels": Loop(shape.columns, panel, e[shape.columns] // panel)}
    bands = {name: Loop(name, 1, e[name]) for name in shape.around}
    bands["bands"] = Loop(shape.bands, band, e[shape.bands] // band)
    blocks = {"blocks": Loop(shape.columns, width, -(-panel // width))}
    lines = {} if shape.bands == shape.rows else {"lines": Loop(shape.bands, 1, band)}
    rows = {"rows": Loop(shape.rows, v.height, -(-rows_of_band(shape, v) // v.height))}
    far = panels | bands if v.panels_first else bands | panels
    near = blocks | lines if v.blocks_first else lines | blocks
    return {name: loop for name, loop in (far | near | rows).items() if loop.trips > 1}


def name_in_program(shape: Shape, v: Variant) -> str:
    """The loop that threads share, as the steps of a variant call it; further copies of it have a number behind."""
    columns = f"{shape.columns}_i" if v.panel else shape.columns
    cut = f"{shape.bands}_i" if v.band else shape.bands
    rows = cut if shape.bands == shape.rows else shape.rows
    names = {
        "panels": f"{shape.columns}_o",
        "bands": f"{shape.bands}_o",
        "blocks": f"{columns}_o",
        "lines": f"{cut}_in" if v.blocks_first else cut,
        "rows": f"{rows}_o",
    }
    return names.get(v.shared, v.shared)


def with_shared_loops(shape: Shape, v: Variant, lanes: int, threads: int) -> Iterator[Variant]:
    """A variant for every loop that so many threads may share."""
    if threads == 1:
        yield v
        return
    uneven = {name: -(-loop.trips // threads) / loop.trips for name, loop in levels(shape, v, lanes).items()}
    least = min(uneven.values(), default=1.0)
    yield from (replace(v, shared=name) for name, share in uneven.items() if share <= UNEVEN * least)
    if not uneven:
        yield v


def _has_weights_by_column(f: Func, columns: str) -> bool:
    """Are there weights to pack?"""
    return any(isinstance(n, Load) and n.buffer == "w" and columns in free_vars(n.index) for n in walk(f))


def _copies(f: Func, lanes: int) -> list[Step[Func]]:
    """Vectors for the copies of an image and of its result."""
    names = loop_names(f)
    found: list[Step[Func]] = [Vectorize(n, lanes) for n in ("copy_left", "copy_right", "copy_e") if n in names]
    if "copy_c" in names:
        found.append(Vectorize("copy_c", lanes))
    if "back_q" in names:
        found.append(Vectorize("back_q", lanes))
    zeros = f"zero_{max((len(b.shape) for b in f.buffers if b.name == 'image'), default=0) - 1}"
    found += [Vectorize(n, lanes) for n in names if n in (zeros, f"{zeros}_1")]
    return found


def candidates(f: Func, registers: Registers) -> Iterator[Variant]:
    """All variants for one thread that are worth a thought."""
    yield from _candidates(Shape.of(f), registers, 0)
    if (joined := spanning(f)) and (wide := constant_extent(loops_around(f, "k")[-2]) or 0) < registers.count:
        yield from _candidates(Shape.of(apply(f, joined)), registers, wide)


def _candidates(shape: Shape, registers: Registers, wide: int) -> Iterator[Variant]:
    """The variants of a program; `wide` is the width of the image where tiles span its rows, else 0."""
    rows, columns, bands = (shape.extents[name] for name in (shape.rows, shape.columns, shape.bands))
    for height, vectors in register_tiles(rows, columns, registers, wide):
        width = vectors * registers.lanes
        band_sizes = [b for b in divisors(bands) if b < bands and (shape.bands != shape.rows or b % height == 0)]
        panel_sizes = [p for p in divisors(columns) if p < columns and p % width == 0]
        for band, panel in product([*band_sizes, 0], [*panel_sizes, 0]):
            for panels_first in (False, True) if panel and (band or bands > 1) else (False,):
                for blocks_first in (False, True) if shape.bands != shape.rows and band != 1 else (True,):
                    yield Variant(height, vectors, band, panel, panels_first, blocks_first, bool(wide))


def register_tiles(rows: int, columns: int, registers: Registers, wide: int = 0) -> list[tuple[int, int]]:
    """Heights and widths of tiles that fit the registers.

    Of each width: the tallest, and of those that need equally many tiles for all rows the one that leaves least to the
    last of them. Tiles that span rows of an image `wide` points across are of whole rows, or have an address for each.
    """
    widest = -(-columns // registers.lanes)
    found: list[tuple[int, int]] = []
    for vectors in range(1, min(widest, registers.count // 4) + 1):
        most = min(rows, (registers.count - registers.broadcasts - vectors) // vectors)
        even = [h for h in range(1, most + 1) if h == most or -(-rows // -(-rows // h)) == h]
        if wide:
            even = [h for h in even if wide % h and (h <= ADDRESSES or h % wide == 0)]
            even += [h for h in range(2 * wide, most + 1, wide) if h not in even]
        found += [(h, vectors) for h in even if h * vectors >= min(LEAST_SUMS, most * vectors)]
    full = [t for t in found if t[0] * t[1] >= LEAST_SUMS]
    return full or found


def divisors(n: int) -> list[int]:
    """The numbers that divide n, in order."""
    small = [d for d in range(1, isqrt(n) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})

"""The measured variants of PolyScientist's authors: which loops each has, and what it reached.

ResNet-50's layers on one core, and on 28 with an image each (Cascade Lake 8280). All variants call a kernel that
multiplies 64 by 64 channels at `T_oi` points of a row; they differ in the loops around it. Channels are in blocks of
64, k of the filters and c of the image; p and q are rows and columns of the result, r and s those of a filter.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

from cortex.cost.machine import KIB, MIB, Machine
from cortex.cost.reuse import Lines, Loop, Use, exact_lines, movement, moving_ns, tile_ns, total_ns
from cortex.cost.working_sets import Hierarchy, published_cost
from cortex.ilir.ir import Func
from cortex.ir.scalar import Binary, Var

FILE = Path("polyscientist") / "clx8280_resnet50_variants.csv"
BLOCK = 64

# Loops outermost first; a capital letter is a loop over tiles, whose size a column of the table gives.
ORDERS = {
    0: ("K", "C", "P", "k", "c", "p", "Q", "r", "s"),
    1: ("K", "P", "p", "Q", "k", "C", "c", "r", "s"),
    2: ("k", "c", "p", "r", "s"),
    3: ("p", "r", "s", "k", "c"),
    4: ("k", "r", "s", "c", "p"),
    5: ("c", "r", "s", "p", "k"),
}

# What the vendor and the literature say of the machine; nothing here comes from the table.
CASCADE_LAKE = Machine(
    "cascadelake", 16, 32, 0.21, 1.67, 0.21, 0.21,
    ((16 * KIB, 300.0), (32 * KIB, 300.0), (64 * KIB, 100.0), (MIB, 100.0), (2 * MIB, 25.0), (38 * MIB, 25.0),
     (64 * MIB, 12.0)),
    32 * KIB, MIB,
)  # fmt: skip
ALL_CORES = replace(
    CASCADE_LAKE,
    reads=((16 * KIB, 250.0), (32 * KIB, 250.0), (64 * KIB, 80.0), (MIB, 80.0), (2 * MIB, 15.0), (4 * MIB, 4.0)),
)
"""With all cores busy a core has its share of the last cache, 1.4 MB, and of the memory's rate."""

_P, _Q, _R, _S = Var("p"), Var("q"), Var("r"), Var("s")
USES = (
    Use("filter", (Var("k"), Var("c"), _R, _S, Var("c0"), Var("k0"))),
    Use("image", (Var("c"), Binary("add", _P, _R), Binary("add", _Q, _S), Var("c0"))),
    Use("result", (Var("k"), _P, _Q, Var("k0"))),
)


@dataclass(frozen=True)
class Measured:
    """One row of the table. `working_sets` are the bytes the authors' analysis puts into L1, L2, L3 and memory."""

    layer: int
    threads: int
    version: int
    extents: tuple[tuple[str, int], ...]
    tiles: tuple[tuple[str, int], ...]
    gflops: float
    working_sets: tuple[int, int, int, int]

    @property
    def width(self) -> int:
        """Points of a row that one call of the kernel computes."""
        return dict(self.tiles).get("Q", dict(self.extents)["q"])

    def loops(self) -> tuple[Loop, ...]:
        """The loops around the kernel that have more than one iteration."""
        extents, tiles = dict(self.extents), dict(self.tiles)
        found = []
        for name in ORDERS[self.version]:
            var = name.lower()
            tile = min(tiles.get(var.upper(), extents[var]), extents[var])
            if name.isupper():
                found.append(Loop(var, tile, -(-extents[var] // tile)))
            else:
                found.append(Loop(var, 1, tile if var.upper() in ORDERS[self.version] else extents[var]))
        return tuple(loop for loop in found if loop.trips > 1)


def read(folder: Path) -> list[Measured]:
    """All rows."""
    with (folder / FILE).open(encoding="utf-8", newline="") as file:
        return [_row(row) for row in csv.DictReader(file)]


def _row(row: Mapping[str, str]) -> Measured:
    extents = {
        "k": int(row["K"]) // BLOCK, "c": int(row["C"]) // BLOCK, "p": int(row["H"]), "q": int(row["W"]),
        "r": int(row["R"]), "s": int(row["S"]), "c0": BLOCK, "k0": BLOCK,
    }  # fmt: skip
    columns = {"K": "T_ofm_tile", "C": "T_ifm_tile", "P": "T_oj", "Q": "T_oi"}
    tiles = {name: int(row[column]) for name, column in columns.items() if row[column]}
    sets = (int(row["pessi_L1"]), int(row["pessi_L2"]), int(row["pessi_L3"]), int(row["pessi_mem"]))
    return Measured(
        int(row["layer"]), int(row["threads_eq_batch"]), int(row["version"]), tuple(extents.items()),
        tuple(tiles.items()), float(row["gflops"]), sets,
    )  # fmt: skip


CACHES = Hierarchy((32 * KIB, MIB, 38 * MIB))


def published(v: Measured) -> tuple[float, float]:
    """The paper's cost, of the working sets that its authors computed."""
    return published_cost(v.working_sets, CACHES)


class Movement:
    """The default cost, for the authors' variants."""

    def __init__(self) -> None:
        self.lines: Lines = exact_lines(Func("authors", (), (), (), ()))

    def __call__(self, v: Measured) -> float:
        """Predicted nanoseconds."""
        m = CASCADE_LAKE if v.threads == 1 else ALL_CORES
        extents, loops = dict(v.extents), v.loops()
        calls = prod(loop.trips for loop in loops)
        tile = dict.fromkeys(extents, 1) | {"q": v.width, "c0": BLOCK, "k0": BLOCK}
        moved = movement(loops, tile, extents, USES, self.lines)
        rows, vectors = v.width, BLOCK // m.lanes
        tall = (m.registers - 1 - vectors) // vectors
        tiles = -(-rows // tall)
        kernel = sum(tile_ns(m, rows // tiles + (i < rows % tiles), vectors, BLOCK) for i in range(tiles))
        return total_ns(calls * kernel, moving_ns(moved, m))

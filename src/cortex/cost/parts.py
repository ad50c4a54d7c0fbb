"""What the nests of a lowered program are made of, as far as their time depends on it; see `estimate`."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from cortex.cost.count import BYTES
from cortex.cost.issue import slots
from cortex.cost.movement import Access, accesses
from cortex.cost.sites import Phase, Site, Sites
from cortex.ilir.ir import For, Scope
from cortex.ir.scalar import Int
from cortex.schedule.locate import constant_extent
from cortex.schedule.nest import Nest, nest_of
from cortex.schedule.registers import Registers


@dataclass(frozen=True)
class Rows:
    """Rows that the nodes of a nest read or write: bytes per run of a site, and the bytes of all there are to choose
    from (0 for those of the request itself)."""

    site: int
    bytes: float
    chosen_from: int


@dataclass(frozen=True)
class Part:
    """One nest.

    `rows_site` runs once per row. `work` are (site, vector operations per run). `weights` are the bytes read by every
    tile of `height` rows, a `panel` of them at a time; `links` the sums in a chain per tile. `level` is the number of
    products in a row in its group, itself included, that need all columns of one before; 0 outside the groups.
    """

    phase: Phase
    rows_site: int
    work: tuple[tuple[int, float], ...]
    height: int
    weights: int
    panel: int
    links: int
    rows: tuple[Rows, ...]
    level: int


def parts_of(sites: Sites, registers: Registers) -> list[Part]:
    """The nests of a program in order."""
    by_phase: dict[int, list[Access]] = {}
    for a in accesses(sites):
        by_phase.setdefault(a.site.phase, []).append(a)
    inside: dict[int, list[Site]] = {}
    for site in sites.sites:
        inside.setdefault(site.phase, []).append(site)
    parts: list[Part] = []
    levels: dict[str, int] = {}
    for phase in sites.phases[1:]:
        first = inside[phase.number][0]
        assert first.loop is not None
        nest = nest_of(sites.func, first.loop)
        part = _part(phase, nest, first, inside[phase.number], by_phase.get(phase.number, []), registers, levels)
        parts.append(part)
    return parts


def _part(
    phase: Phase,
    nest: Nest,
    first: Site,
    inside: list[Site],
    found: list[Access],
    registers: Registers,
    levels: dict[str, int],
) -> Part:
    vectorized = _summed(nest) if nest.kind == "dot" else constant_extent(nest.columns[-1]) if nest.columns else 1
    elements = vectorized or 1
    lanes = elements / ceil(elements / registers.lanes)
    work = tuple((s.number, busy / lanes) for s in inside if (busy := sum(map(slots, s.body))))
    weights = [a for a in found if a.buffer.scope is Scope.PARAM and not _by_row(a)]
    rows = tuple(_rows(a) for a in found if _by_row(a) and a.buffer.scope is not Scope.SCRATCH)
    size = sum(_distinct(a) for a in weights)
    height, panel, links = 1, 0, 0
    if nest.kind == "product":
        height, vectors = registers.tile(max(1, len(nest.targets)), max(1, len(weights)), elements)
        columns = vectors * registers.lanes
        blocks = ceil(elements / columns)
        panel = size // blocks
        links = blocks * (_summed(nest) or 1) * prod(constant_extent(c) or 1 for c in nest.columns[:-1])
    level = 0
    if phase.in_groups:
        before = max((levels.get(a.buffer.name, 0) for a in found if not a.writes), default=0)
        # Columns of a row are their owner's, so only a sum over them needs those of others.
        level = max(1, before + (nest.kind in ("product", "dot") and before > 0))
        for a in found:
            if a.writes and a.buffer.scope is Scope.SCRATCH:
                levels[a.buffer.name] = max(level, levels.get(a.buffer.name, 0))
    return Part(phase, first.number, work, height, size, panel, links, rows, level)


def _summed(nest: Nest) -> int | None:
    """The number of terms of the sums of a nest."""
    total = 1
    body = nest.body
    while loops := [s for s in body if isinstance(s, For)]:
        total *= constant_extent(loops[0]) or 1
        body = loops[0].body
    return total


def _by_row(a: Access) -> bool:
    """Does an access depend on the row, or on a loop whose length does?"""
    loops = [(c.loop, uses) for c, uses in zip(a.chain, a.depends, strict=True) if c.loop is not None]
    return a.indirect or any(uses and (i == 0 or constant_extent(loop) is None) for i, (loop, uses) in enumerate(loops))


def _distinct(a: Access) -> int:
    """Bytes of the elements that an access touches in all iterations of its nest."""
    used = [c.loop for c, uses in zip(a.chain, a.depends, strict=True) if c.loop is not None and uses]
    return BYTES[a.buffer.dtype] * prod(constant_extent(loop) or 1 for loop in used)


def _rows(a: Access) -> Rows:
    """The bytes of an access per run of its list: loops it does not depend on read the same again."""
    again = [c.loop for c, uses in zip(a.chain, a.depends, strict=True) if c.loop is not None and not uses]
    share = prod(constant_extent(loop) or 1 for loop in again)
    table = a.is_table or a.is_input
    whole = BYTES[a.buffer.dtype] * prod(e.value for e in a.buffer.shape if isinstance(e, Int))
    return Rows(a.site.number, BYTES[a.buffer.dtype] / share, whole if table else 0)

"""What a program does on a GPU, counted, and the time that a description of the GPU predicts for it.

It is a model: nothing here has been measured. Counts are those of the scheduled program, so equal programs cost the
same whatever they are called.

    launches   1 for a persistent kernel; else one for every stretch of statements between two barriers that is run
    barriers   of all work-groups, which only a persistent kernel has
    bytes      from and to global memory (beyond a multiprocessor, be it the L2 cache or the memory behind it): a
               work-group fetches an element once in every run of a loop nest, and what does not depend on the loop
               that is shared among work-groups is fetched by each of them. Weights in local memory are fetched once.
    time       of each group of nodes, what takes longer: moving its bytes, or the item that has most to do, which
               waits for its loads, `in_flight` of them at once
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from cortex.cost.count import BYTES, Counter, Runs
from cortex.cost.gpu_machine import GpuMachine
from cortex.cost.movement import Access, accesses
from cortex.cost.sites import Block, Site
from cortex.ilir.ir import Barrier, Buffer, Func, Let, LoopKind, Scope
from cortex.ir.node import walk
from cortex.ir.scalar import Int
from cortex.lower.linear_form import LinearForm
from cortex.schedule.gpu_default import Grid

Array = npt.NDArray[Any]

ON_CHIP = frozenset({Scope.REGISTER, Scope.PRIVATE, Scope.LOCAL, Scope.RESIDENT})
IN_LOCAL_MEMORY = frozenset({Scope.LOCAL, Scope.RESIDENT})
WEIGHTS = frozenset({Scope.PARAM, Scope.PACKED})


@dataclass(frozen=True)
class GpuPrediction:
    """A request: counts, and predicted microseconds by what they go to."""

    launches: int
    barriers: int
    operations: int
    weight_bytes: int  # from global memory
    other_bytes: int  # from and to global memory
    parts: dict[str, float]

    @property
    def us(self) -> float:
        """Microseconds in all, from the host's call to its return; without linearizing and copies."""
        return sum(self.parts.values())


class GpuPredictor:
    """Predicts requests for one program; reading the program is done once."""

    def __init__(self, f: Func, grid: Grid, machine: GpuMachine, persistent: bool) -> None:
        self.f, self.grid, self.machine, self.persistent = f, grid, machine, persistent
        self.counter = Counter(f)
        sites = self.counter.sites
        self.accesses = [a for a in accesses(sites) if a.buffer.scope not in ON_CHIP]
        self.scopes = {b.name: b.scope for b in f.buffers}
        self.stretches = [_stretches(site.body) for site in sites.sites]
        self.walked = np.array([_has_barrier(site.body) for site in sites.sites])
        self.walked[0] = True  # the host's own list, whether it has barriers or not
        self.loads = self._loads()

    def __call__(self, form: LinearForm) -> GpuPrediction:
        """What a request costs."""
        m = self.machine
        runs = self.counter(form)
        barriers = sum(w.barriers for w in runs.work())
        moved = np.array([self._bytes(a, runs) for a in self.accesses]).reshape(len(self.accesses), -1)
        busy = self._busy_us(runs)
        move = self._move_us(moved)
        launches = 1 if self.persistent else self._launches(runs)
        is_weight = np.array([a.buffer.scope in WEIGHTS for a in self.accesses], bool)
        longer = np.maximum(busy, move)
        return GpuPrediction(
            launches,
            barriers if self.persistent else 0,
            sum(w.operations for w in runs.work()),
            round(moved[is_weight].sum()),
            round(moved[~is_weight].sum()),
            {
                "call": m.call,
                "launches": m.launch * launches,
                "barriers": m.barrier * barriers if self.persistent else 0.0,
                "moving": float(longer[move >= busy].sum()),
                "items": float(longer[move < busy].sum()),
            },
        )

    def _launches(self, runs: Runs) -> int:
        """Stretches without a barrier in the lists that the host walks."""
        each = np.where(self.walked, self.stretches, 0)
        return int(each @ runs.runs.sum(axis=1))

    def _bytes(self, a: Access, runs: Runs) -> Array:
        """Bytes that all work-groups fetch or write for an access, by group of nodes."""
        entered = runs.runs[max(a.chain[0].parent, 0)].astype(float)
        elements, copies = np.ones(len(entered)), np.full(len(entered), float(self.grid.groups))
        for site, depends in zip(a.chain, a.depends, strict=True):
            extent = _extent(site, runs)
            if site.loop is None or depends:
                elements *= extent
            if site.loop is not None and site.loop.kind is LoopKind.PARALLEL:
                copies = np.ones(len(entered)) if depends else np.minimum(extent, self.grid.groups)
        writers = np.ones(len(entered)) if a.writes else copies
        moved: Array = entered * elements * writers * BYTES[a.buffer.dtype]
        return moved

    def _busy_us(self, runs: Runs) -> Array:
        """Microseconds of the item, or of the multiprocessor, that has most to do, by group of nodes."""
        m = self.machine
        total = np.zeros(runs.runs.shape[1])
        of_item: dict[int, Array] = {-1: np.ones(runs.runs.shape[1])}
        of_group: dict[int, Array] = {-1: np.ones(runs.runs.shape[1])}
        for site in runs.sites.sites:
            share, mine = of_item[site.parent], of_group[site.parent]
            if site.loop is not None and (size := self._sharers(site.loop.kind)) > 1:
                extent = np.maximum(_extent(site, runs), 1.0)
                part = np.ceil(extent / size) / extent
                share = share * part
                mine = mine * part if site.loop.kind is LoopKind.PARALLEL else mine
            of_item[site.number], of_group[site.number] = share, mine
            n = runs.runs[site.number]
            operations, loads = sum(site.counts.flops.values()), self.loads[site.number]
            latency = float(loads @ (m.local_latency, m.l1_latency, m.l2_latency)) / m.in_flight
            waits = max(operations, m.fma_latency if operations else 0, latency)
            issued = max(operations / m.lanes, loads.sum() / m.l1_lanes)
            total += np.maximum(n * share * waits, n * mine * issued)
        return total / (m.clock * 1e3)

    def _sharers(self, kind: LoopKind) -> int:
        match kind:
            case LoopKind.PARALLEL:
                return self.grid.groups
            case LoopKind.ITEMS_X:
                return self.grid.items[0]
            case LoopKind.ITEMS_Y:
                return self.grid.items[1]
            case _:
                return 1

    def _loads(self) -> Array:
        """Loads of one run of each list: from local memory, of what other items have fetched, and from L2.

        Items along x that read the same element fetch it once.
        """
        sites = self.counter.sites.sites
        loads = np.zeros((len(sites), 3))
        for site in sites:
            loads[site.number, 0] = sum(n for b, n in site.counts.loads.items() if self.scopes[b] in IN_LOCAL_MEMORY)
        for a in self.accesses:
            along = [d for s, d in zip(a.chain, a.depends, strict=True) if s.loop and s.loop.kind is LoopKind.ITEMS_X]
            if not a.writes:
                loads[a.site.number, 1 if along and not any(along) else 2] += 1
        return loads

    def _move_us(self, moved: Array) -> Array:
        """Microseconds to move the bytes of each group: from L2 if all weights fit there, rows of tables never."""
        m = self.machine
        weights = sum(_size(b) for b in self.f.buffers if b.scope in WEIGHTS and b.name in self._read_whole())
        rates = [
            m.bandwidth if a.is_table or (a.buffer.scope in WEIGHTS and weights > m.l2_bytes) else m.l2_bandwidth
            for a in self.accesses
        ]
        us: Array = (moved / (np.array(rates).reshape(-1, 1) * 1e3)).sum(axis=0)
        return us

    def _read_whole(self) -> set[str]:
        return {a.buffer.name for a in self.accesses if not a.is_table}


def _extent(site: Site, runs: Runs) -> Array:
    """Iterations of a loop each time it is entered, or the part of the runs that take a branch: averages by group."""
    inner, outer = runs.runs[site.number], runs.runs[max(site.parent, 0)]
    extent: Array = np.divide(inner, outer, out=np.zeros(len(inner)), where=outer > 0)
    return extent


def _has_barrier(body: Block) -> bool:
    return any(isinstance(n, Barrier) and n.among == "team" for s in body for n in walk(s))


def _stretches(body: Block) -> int:
    """Kernels that a list needs, one for each run of statements that have no barrier inside and are no lets."""
    count, is_open = 0, False
    for s in body:
        if _has_barrier((s,)):
            is_open = False
        elif not isinstance(s, Let):
            count += not is_open
            is_open = True
    return count


def _size(b: Buffer) -> int:
    return BYTES[b.dtype] * prod(e.value for e in b.shape if isinstance(e, Int))

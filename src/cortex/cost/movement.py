"""Which bytes a request moves, and from how far: line by line, with the distance of every reuse.

Data that is touched again is as near as what was touched in between is little. For an access inside loops, the
iterations of a loop that its index does not mention touch the same lines again; in between lies what one iteration
of that loop touches. The first touch in a phase reuses what an earlier group, or an earlier call, left behind.

    for j: for t: for k: acc += w[j, k] * x[t, k]
      w   first touched once per j                                   far: since the last group, everything
          again for each t > 0, after one iteration of t: w[j, :], x[t, :]           near
      x   first touched in j = 0; again for each j > 0, after one iteration of j: w[j, :] and all of x

Loops that are unrolled or vectorized reuse registers, and so does the innermost other loop: no line moves there.
Lengths that differ between iterations enter with their average within a group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cortex.cost.count import BYTES, Runs
from cortex.cost.sites import Site, Sites
from cortex.ilir.ir import Accumulate, Buffer, For, Let, LoopKind, Scope, Store
from cortex.ir.node import Node, walk
from cortex.ir.scalar import Expr, Index, Int, Load, dtype_of
from cortex.ir.simplify import affine, free_vars, substitute

Array = npt.NDArray[Any]
LINE = 64


@dataclass(frozen=True)
class Access:
    """One access in the text: where, of what, and which loops of its phase its index depends on (outermost first)."""

    site: Site
    buffer: Buffer
    index: tuple[Expr, ...]
    writes: bool
    chain: tuple[Site, ...]
    depends: tuple[bool, ...]  # for each site of the chain
    strides: tuple[int | None, ...]  # in the last dimension, for each site of the chain; None: by rows
    indirect: bool  # reads through an index function

    @property
    def is_weight(self) -> bool:
        """The same data for every node."""
        return self.buffer.scope in (Scope.PARAM, Scope.PACKED) and not self.indirect


@dataclass(frozen=True)
class Traffic:
    """Bytes an access moves, by group, and the bytes touched since the same data was touched before."""

    access: Access
    bytes: Array
    distance: Array


def accesses(sites: Sites) -> list[Access]:
    """The accesses of a program to memory. Those of one list that are equal count once."""
    buffers = {b.name: b for b in sites.func.buffers}
    found: list[Access] = []
    bound: dict[str, Expr] = {}
    for site in sites.sites:
        chain = tuple(sites.chain(site))
        seen: set[tuple[str, tuple[Expr, ...], bool]] = set()
        for s in site.body:
            if isinstance(s, Let) and dtype_of(s.value) == "i64":
                bound[s.var.name] = substitute(s.value, bound)
            for n in _own(s):
                if not isinstance(n, Load | Store | Accumulate) or buffers[n.buffer].scope is Scope.REGISTER:
                    continue
                index = tuple(substitute(i, bound) for i in n.index)
                key = (n.buffer, index, not isinstance(n, Load))
                if site.phase and key not in seen:
                    seen.add(key)
                    found.append(_access(site, buffers[n.buffer], index, key[2], chain))
    return found


def _own(s: Any) -> list[Node]:
    """The nodes of a statement without the lists inside it."""
    match s:
        case For(_, lo, hi, _, _):
            return [*walk(lo), *walk(hi)]
        case Store() | Accumulate() | Let():
            return list(walk(s))
        case _:
            return []


def _access(site: Site, b: Buffer, index: tuple[Expr, ...], writes: bool, chain: tuple[Site, ...]) -> Access:
    names = free_vars(index)
    depends = tuple(c.loop is not None and c.loop.var in names for c in chain)
    last = index[-1] if index else Int(0)
    strides: list[int | None] = []
    for c, is_used in zip(chain, depends, strict=True):
        form = affine(last, c.loop.var) if is_used and c.loop is not None else None
        rows = is_used and c.loop is not None and c.loop.var in free_vars(index[:-1])
        strides.append(None if form is None or not form[0] or rows else form[0])
    indirect = any(isinstance(n, Index) for i in index for n in walk(i))
    return Access(site, b, index, writes, chain, depends, tuple(strides), indirect)


class Movement:
    """Finds the traffic of requests for one program."""

    def __init__(self, sites: Sites) -> None:
        self.sites = sites
        self.accesses = accesses(sites)

    def __call__(self, runs: Runs, sizes: dict[str, int]) -> list[Traffic]:
        """Where the bytes of a request come from."""
        counts = runs.runs
        columns = counts.shape[1]
        ratio = self._ratios(counts)
        near: dict[int, Array] = {}  # bytes touched by one iteration of the loop whose body is this site
        phases = [np.zeros(columns) for _ in self.sites.phases]
        touched: list[tuple[Access, list[Array], list[Array]]] = []
        for a in self.accesses:
            if not counts[a.site.number].any():
                continue
            below, likely = _footprints(a, ratio, columns)
            touched.append((a, below, likely))
            for i, c in enumerate(a.chain):
                near[c.number] = near.get(c.number, 0.0) + below[i + 1] * likely[i]
            phases[a.site.phase] += below[0] * likely[0] * ratio[a.chain[0].number].astype(bool)
        group, call = self._working_sets(phases, counts)
        traffic: list[Traffic] = []
        for a, below, likely in touched:
            outside = counts[self.sites.sites[a.chain[0].number].parent]
            far = np.full(columns, call) if a.buffer.scope in (Scope.PARAM, Scope.FIELD) and a.indirect else group
            if a.indirect and a.buffer.scope is Scope.PARAM:
                far = np.full(columns, max(call, _size(a.buffer, sizes)))
            started = outside * (ratio[a.chain[0].number] > 0)
            traffic.append(Traffic(a, started * below[0] * likely[0], far))
            reused = [i for i, c in enumerate(a.chain) if c.loop is not None and c.loop.kind is LoopKind.SERIAL]
            for i in reused[:-1] if reused and reused[-1] == _innermost(a.chain) else reused:
                c = a.chain[i]
                if a.depends[i]:
                    continue
                again = counts[c.number] - counts[c.parent] * (ratio[c.number] > 0)
                traffic.append(Traffic(a, np.maximum(again, 0) * below[i + 1] * likely[i], near[c.number]))
        return traffic

    def _ratios(self, counts: Array) -> Array:
        """How often each site runs per run of the list it is in, by group."""
        parents = np.array([s.parent for s in self.sites.sites])
        above = counts[np.maximum(parents, 0)]
        return np.divide(counts, above, out=np.zeros(counts.shape), where=above > 0)

    def _working_sets(self, phases: list[Array], counts: Array) -> tuple[Array, float]:
        """Bytes touched between two groups of a kind, for each group, and between two calls."""
        inside = np.zeros(counts.shape[1])
        for phase, size in zip(self.sites.phases, phases, strict=True):
            inside += size if phase.in_groups else 0.0
        call = sum(float(p[-1]) for p in phases) + float(inside[:-1].max(initial=0.0))
        group = inside.copy()
        group[-1] = call
        return group, call


def _innermost(chain: tuple[Site, ...]) -> int:
    """The position of the last loop that is neither unrolled nor vectorized."""
    return max((i for i, c in enumerate(chain) if c.loop is not None and c.loop.kind is LoopKind.SERIAL), default=-1)


def _footprints(a: Access, ratio: Array, columns: int) -> tuple[list[Array], list[Array]]:
    """For each depth i: bytes that the loops from i on touch, and how likely the access is reached from depth i."""
    span, rows, likely = np.ones(columns), np.ones(columns), np.ones(columns)
    size = BYTES[a.buffer.dtype]
    bytes_ = [np.full(columns, float(LINE))]
    chances = []
    for i in range(len(a.chain) - 1, -1, -1):
        extent = ratio[a.chain[i].number]
        chances.append(likely)
        stride = a.strides[i]
        if a.chain[i].loop is None:
            likely = likely * extent
        elif a.depends[i]:
            if stride is None:
                rows = rows * np.maximum(extent, 1.0)
            else:
                span = span + abs(stride) * np.maximum(extent - 1.0, 0.0)
        bytes_.append(rows * np.maximum(LINE, span * size))
    return bytes_[::-1], chances[::-1]


def _size(b: Buffer, sizes: dict[str, int]) -> float:
    total = float(BYTES[b.dtype])
    for e in b.shape:
        total *= e.value if isinstance(e, Int) else 1
    return total

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
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from cortex.cost.count import BYTES, Runs
from cortex.cost.sites import Site, Sites
from cortex.ilir.ir import NARROW, Accumulate, Buffer, For, Let, LoopKind, Scope, Store
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
    def is_table(self) -> bool:
        """Rows of a weight chosen by the request: whatever other rows earlier requests left in the caches."""
        return self.buffer.scope is Scope.PARAM and self.indirect

    @property
    def is_input(self) -> bool:
        """Data of the request, written once before it starts."""
        return self.buffer.scope is Scope.FIELD


@dataclass(frozen=True)
class Traffic:
    """Bytes moved (touches, groups), by whom, and the bytes touched since the same data was touched before."""

    access: list[Access]
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
    if b.dtype == "bf16" and b.scope is Scope.PACKED:  # the last index says which half of a word; words are read
        index = index[:-1]
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
        depth = max((len(a.chain) for a in self.accesses), default=0)
        shape = (len(self.accesses), depth)
        # A row per access, a column per site of its chain. What a shorter chain lacks runs once and changes nothing.
        self.chain = np.full(shape, len(sites.sites))
        self.is_branch, self.by_row = np.zeros(shape, bool), np.zeros(shape, bool)
        self.stride = np.zeros(shape)
        again: list[tuple[int, int]] = []  # (access, depth) of the loops that touch the same data again
        for n, a in enumerate(self.accesses):
            innermost = _innermost(a.chain)
            for d, site in enumerate(a.chain):
                self.chain[n, d] = site.number
                self.is_branch[n, d] = site.loop is None
                self.by_row[n, d] = a.depends[d] and a.strides[d] is None
                self.stride[n, d] = abs(a.strides[d] or 0)
                serial = site.loop is not None and site.loop.kind is LoopKind.SERIAL
                if serial and not a.depends[d] and d != innermost:
                    again.append((n, d))
        self.again = np.array(again, int).reshape(-1, 2).T
        self.touched_by = [*self.accesses, *(self.accesses[n] for n, _ in again)]
        self.parent = np.array([max(s.parent, 0) for s in sites.sites])
        self.phase = np.array([a.site.phase for a in self.accesses], int)
        self.in_groups = np.array([p.in_groups for p in sites.phases])
        self.size = np.array([BYTES[a.buffer.dtype] for a in self.accesses]).reshape(-1, 1)
        # Narrow vectors are parts of a line, but what lies beside them is read too: panels are dense.
        self.least = np.array([0 if a.buffer.dtype in NARROW else LINE for a in self.accesses]).reshape(-1, 1)
        # Tables and inputs are as far as the last call at least; everything else as far as the last group of its kind.
        least = [_size(a.buffer) if a.is_table else 0 if a.is_input else -1 for a in self.accesses]
        self.at_least = np.array(least, float).reshape(-1, 1)

    def __call__(self, runs: Runs) -> Traffic:
        """Where the bytes of a request come from."""
        counts = runs.runs
        above = counts[self.parent]
        ratio = np.ones((len(counts) + 1, counts.shape[1]))
        ratio[:-1] = np.divide(counts, above, out=np.zeros(counts.shape), where=above > 0)
        below, likely = self._footprints(ratio)

        near = np.zeros_like(ratio)  # bytes touched by one iteration of the loop whose body is this site
        np.add.at(near, self.chain, below[:, 1:] * likely)
        started = above[self.chain[:, 0]] * (ratio[self.chain[:, 0]] > 0)
        first = below[:, 0] * likely[:, 0]
        in_phase = np.zeros((len(self.sites.phases), counts.shape[1]))
        np.add.at(in_phase, self.phase, first * (started > 0))
        inside = in_phase[self.in_groups].sum(axis=0)
        call = float(in_phase[:, -1].sum() + inside[:-1].max(initial=0.0))
        inside[-1] = call
        distance = np.maximum(np.where(self.at_least < 0, inside, np.maximum(call, self.at_least)), inside)

        who, where = self.again
        site = self.chain[who, where]
        repeated = (
            np.maximum(counts[site] - above[site] * (ratio[site] > 0), 0) * below[who, where + 1] * likely[who, where]
        )
        return Traffic(
            self.touched_by,
            np.concatenate([started * first, repeated]),
            np.concatenate([distance, near[site]]),
        )

    def _footprints(self, ratio: Array) -> tuple[Array, Array]:
        """For each access and depth: bytes that the loops from there on touch, and how likely it is reached from there.

        Shapes (accesses, depth + 1, groups) and (accesses, depth, groups).
        """
        n, depth = self.chain.shape
        span, rows, chance = (np.ones((n, ratio.shape[1])) for _ in range(3))
        below = np.empty((n, depth + 1, ratio.shape[1]))
        likely = np.empty((n, depth, ratio.shape[1]))
        below[:, depth] = np.maximum(self.least, self.size)
        for d in range(depth - 1, -1, -1):
            extent = ratio[self.chain[:, d]]
            likely[:, d] = chance
            chance = np.where(self.is_branch[:, d, None], chance * extent, chance)
            rows = np.where(self.by_row[:, d, None], rows * np.maximum(extent, 1.0), rows)
            span = span + self.stride[:, d, None] * np.maximum(extent - 1.0, 0.0)
            below[:, d] = rows * np.maximum(self.least, span * self.size)
        return below, likely


def _innermost(chain: tuple[Site, ...]) -> int:
    """The position of the last loop that is neither unrolled nor vectorized."""
    return max((i for i, c in enumerate(chain) if c.loop is not None and c.loop.kind is LoopKind.SERIAL), default=-1)


def _size(b: Buffer) -> int:
    """Bytes of a buffer; extents that depend on the request count as one."""
    return BYTES[b.dtype] * prod(e.value for e in b.shape if isinstance(e, Int))

"""When each phase of a request ran on each thread: the same program with the clock read around every phase.

    for g: { inner: h }     ->     for g: { stamps[g, 1, 0] = clock(); inner: h; stamps[g, 1, 1] = clock() }

The measured program is a build of its own, so the one in use stays as it is; reading the clock costs some tens of
nanoseconds per phase and group, and those are in the measured times. Every thread has stamps of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cortex import _native
from cortex.codegen.target import Target
from cortex.cost.sites import Block, Sites
from cortex.ilir.ir import Buffer, Case, For, Func, If, Mark, Scope, Stmt, Switch
from cortex.ir.scalar import Binary, Expr, Index, Int, Var
from cortex.lower.linear_form import NUM_GROUPS, NUM_WINDOWS, WINDOW_GROUP, LinearForm
from cortex.lower.places import GROUP
from cortex.runtime.storage import Array

STAMPS = "stamps"
CALLS, SECONDS = 5, 0.15


@dataclass(frozen=True)
class Timeline:
    """Microseconds since the start of the request: begin and end of each phase in each group on each thread.

    Shape (threads, groups + 1, phases, 2), the last row being what runs outside the loop over groups; what runs ahead
    of a window is in the row of its first group. NaN where a thread does not run a phase. These are from the fastest
    run, which took `us` as a whole. `spent` (threads, groups + 1, phases) is the least time that each phase took in any
    run: where other programs interrupt every run, they rarely hit the same phase.
    """

    times: Array
    us: float
    spent: Array


def instrument(f: Func) -> Func:
    """`f` with the clock stored around every phase."""
    sites = Sites.of(f)
    phase_of = {id(s.body): s.phase for s in sites.sites}
    inside = {p.number: p.in_groups for p in sites.phases}

    def block(body: Block, outside: Expr) -> Block:
        return tuple(new for s in body for new in statement(s, outside))

    def statement(s: Stmt, outside: Expr) -> tuple[Stmt, ...]:
        match s:
            case For():
                phase = phase_of[id(s.body)]
                if phase == 0:
                    first = Index(WINDOW_GROUP.name, (Var(s.var),)) if s.hi == NUM_WINDOWS else outside
                    return (replace(s, body=block(s.body, first)),)
                row: Expr = GROUP if inside[phase] else outside
                begin, end = (Mark(STAMPS, (row, Int(phase), Int(which))) for which in (0, 1))
                return begin, s, end
            case If(cond, then, orelse):
                return (If(cond, block(then, outside), block(orelse, outside)),)
            case Switch(value, cases):
                return (Switch(value, tuple(Case(c.value, block(c.body, outside)) for c in cases)),)
            case _:
                return (s,)

    shape = (Binary("add", NUM_GROUPS, Int(1)), Int(len(sites.phases)), Int(2))
    return replace(f, buffers=(*f.buffers, Buffer(STAMPS, "i64", shape, Scope.SCRATCH)), body=block(f.body, NUM_GROUPS))


def timeline(f: Func, target: Target, form: LinearForm, params: Mapping[str, Any], threads: int = 1) -> Timeline:
    """Run a request with the clock on, on so many threads: the fastest of many runs."""
    from cortex.codegen.llvm.run import prepare

    fields = {name if name.startswith("field_") else f"field_{name}": x for name, x in form.fields.items()}
    prepared = prepare(instrument(f), target, form.sizes, form.arrays, {**params, **fields}, threads)
    stamps = np.zeros((threads, *prepared.buffers[STAMPS].shape), np.int64)
    tables = [prepared.addresses.copy() for _ in range(threads)]
    for table, mine in zip(tables, stamps, strict=True):
        table[-1] = mine.ctypes.data  # the buffer that `instrument` adds is the last

    def call() -> None:
        addresses = [table.ctypes.data for table in tables]
        _native.run_entry(prepared.code.address, addresses, prepared.sizes.ctypes.data)

    ticks_per_us = _ticks_per_us(call, stamps)
    best = least = None
    calls, end = 0, time.perf_counter() + SECONDS
    while calls < CALLS or time.perf_counter() < end:
        stamps[:] = 0
        call()
        calls += 1
        ran = stamps[stamps > 0]
        taken = stamps[..., 1] - stamps[..., 0]
        least = taken if least is None else np.minimum(least, taken)
        if best is None or (ran.size and np.ptp(ran) < np.ptp(best[best > 0])):
            best = stamps.copy()
    assert best is not None and least is not None
    if not best.any():
        return Timeline(np.full(best.shape, np.nan), 0.0, np.zeros(least.shape))
    first = best[best > 0].min()
    times = np.where(best > 0, (best - first) / ticks_per_us, np.nan)
    return Timeline(times, float(np.nanmax(times)), least / ticks_per_us)


def _ticks_per_us(call: Callable[[], None], stamps: Array) -> float:
    """The rate of the clock that `Mark` stores, against the system's: from a first call to one 30 ms later."""
    call()
    if not stamps.any():
        return 1.0
    first, start = int(stamps.max()), time.perf_counter()
    time.sleep(0.03)
    call()
    return (int(stamps.max()) - first) / (1e6 * (time.perf_counter() - start))

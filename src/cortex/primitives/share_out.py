"""Share the loops of a scheduled primitive out to threads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from cortex.ilir.ir import Accumulate, For, Func
from cortex.ir.node import walk
from cortex.ir.step import Step, attempt
from cortex.schedule.barrier import PlaceBarriers
from cortex.schedule.locate import constant_extent
from cortex.schedule.parallel import Alone, Parallel

EVEN = 0.02
"""A loop further inside must share the work out so much more evenly to be preferred."""


def share_out(f: Func, threads: int, loop: str) -> tuple[Step[Func], ...]:
    """The steps that share `loop` out, in every text that has a copy of it.

    In texts without (columns or rows that do not fill a tile, copies of images) it is the outermost loop that keeps all
    threads busy.
    """
    found: list[Step[Func]] = []
    for nest in [s for s in f.body if isinstance(s, For)]:
        for step in _steps(f, nest, threads, re.compile(rf"{loop}(_\d+)?" if loop else "(?!)")):
            if (new := attempt(f, step)) is not None:
                f = new
                found.append(step)
    return (*found, Alone(), PlaceBarriers()) if found else ()


def _steps(f: Func, nest: For, threads: int, wanted: re.Pattern[str]) -> Iterator[Parallel]:
    """The loops to share in one nest."""
    if wanted.fullmatch(nest.var):
        yield Parallel(nest.var)
    elif any(isinstance(n, For) and wanted.fullmatch(n.var) for n in walk(nest)):
        for inner in (s for s in nest.body if isinstance(s, For)):
            yield from _steps(f, inner, threads, wanted)
    elif (step := _most_even(f, nest, threads)) is not None:
        yield step


def _most_even(f: Func, nest: For, threads: int) -> Parallel | None:
    """The loop of a nest whose iterations are shared out most evenly; the outermost of those.

    A copy is shared in the outermost loop that has an iteration for every thread.
    """
    best: tuple[float, Parallel] | None = None
    loop: For | None = nest
    while loop is not None and (trips := constant_extent(loop)) is not None:
        uneven = -(-trips // threads) * threads / max(1, trips)
        if trips > 1 and (best is None or uneven < best[0] - EVEN) and attempt(f, Parallel(loop.var)) is not None:
            best = (uneven, Parallel(loop.var))
            if trips >= threads and not _has_sums(loop):
                break
        loop = max((s for s in loop.body if isinstance(s, For)), key=_work, default=None)
    return best[1] if best else None


def _has_sums(loop: For) -> bool:
    return any(isinstance(n, Accumulate) for n in walk(loop))


def _work(loop: For) -> int:
    """Iterations of the text of a loop; none for a loop without sums."""
    return prod(constant_extent(n) or 1 for n in walk(loop) if isinstance(n, For)) if _has_sums(loop) else 0

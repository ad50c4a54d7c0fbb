"""Which loops of a scheduled primitive threads share."""

from __future__ import annotations

from math import prod

from cortex.errors import ScheduleError
from cortex.ilir.ir import Accumulate, For, Func
from cortex.ir.node import walk
from cortex.ir.step import Step
from cortex.schedule.barrier import PlaceBarriers
from cortex.schedule.locate import constant_extent
from cortex.schedule.parallel import Alone, Parallel

EVEN = 0.02
"""A loop further inside must share the work out so much more evenly to be preferred."""


def share_out(f: Func, threads: int) -> tuple[Step[Func], ...]:
    """The steps that share a primitive out: in each nest the outermost loop that keeps all threads busy."""
    found: list[Step[Func]] = []
    for nest in [s for s in f.body if isinstance(s, For)]:
        step = _parallel(f, nest, threads)
        if step is not None:
            f = step.apply(f)
            found.append(step)
    return (*found, Alone(), PlaceBarriers()) if found else ()


def _parallel(f: Func, nest: For, threads: int) -> Parallel | None:
    """The loop of a nest whose iterations are shared out most evenly; the outermost of those."""
    best: tuple[float, Parallel] | None = None
    loop: For | None = nest
    while loop is not None and (trips := constant_extent(loop)) is not None:
        uneven = -(-trips // threads) * threads / max(1, trips)
        if trips > 1 and (best is None or uneven < best[0] - EVEN) and _accepts(f, Parallel(loop.var)):
            best = (uneven, Parallel(loop.var))
        loop = max((s for s in loop.body if isinstance(s, For)), key=_work, default=None)
    return best[1] if best else None


def _work(loop: For) -> int:
    """Iterations of the text of a loop; none for a loop without sums."""
    has_sums = any(isinstance(n, Accumulate) for n in walk(loop))
    return prod(constant_extent(n) or 1 for n in walk(loop) if isinstance(n, For)) if has_sums else 0


def _accepts(f: Func, step: Step[Func]) -> bool:
    try:
        step.apply(f)
    except ScheduleError:
        return False
    return True

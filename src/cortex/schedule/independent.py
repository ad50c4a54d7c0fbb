"""May the iterations of a loop run in any order, or at once?"""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import For, Func, LoopKind
from cortex.ilir.verify import PER_THREAD
from cortex.poly.legal import why_not_any_order
from cortex.poly.quick import QuickRules
from cortex.schedule.carried import carried
from cortex.schedule.locate import refuse
from cortex.schedule.ownership import clash, context_of, touches, use_of


def refuse_dependent(asked: object, f: Func, loop: For, shared_out: For | None = None) -> None:
    """Refuse the step `asked` where iterations of a serial loop depend on each other.

    `shared_out` is the loop as threads would run it, if not as it is.
    """
    if name := carried(f, loop):
        refuse(asked, f"{name!r}, of which every thread has its own, passes values on.", f, loop.var)
    at, known = context_of(f, loop.var), QuickRules.of(f)
    around = replace(at, loops=tuple(replace(each, kind=LoopKind.SERIAL) for each in at.loops))
    found = list(touches(f, (shared_out or replace(loop, kind=LoopKind.PARALLEL),), around))
    written = {t.buffer for t in found if t.writes}
    uses = {use_of(known, t) for t in found if t.buffer in written}
    if any(clash(x, y) for x in uses for y in uses):
        own = frozenset(b.name for b in f.buffers if b.scope in PER_THREAD)
        if conflict := why_not_any_order(f, (loop,), own):
            refuse(asked, f"iterations of {loop.var!r} depend on each other.", f, loop.var, conflict)

"""Do panels of weights pay for being read in alternating directions from group to group?

Read in one direction, a thread's share of the weights comes from as far as the share is large. What was read last is
found in the second cache if it is read first the next time:

    saved = (part of the share that the cache keeps) * (1 - rate from afar / rate in the cache)

Nothing is saved where the share fits, and little where it is many times larger. Groups turn as they are numbered: where
two kinds follow each other strictly, each has all its groups in one direction, and nothing is gained or lost.
"""

from __future__ import annotations

from math import prod

from cortex.cost.choose import Considered
from cortex.cost.count import BYTES
from cortex.cost.machine import Machine
from cortex.ilir.ir import Buffer, Func, LoopKind, Scope
from cortex.ir.node import walk
from cortex.ir.scalar import Int, Load
from cortex.schedule.alternate import Alternate, groups_of, panel_loops

KEPT = 0.75
"""The part of the second cache that keeps weights; states and inputs need the rest."""
LEAST = 0.04
"""The part of reading that must be saved: going back to the start of a panel costs some of it."""


def alternating(f: Func, machine: Machine, threads: int) -> tuple[tuple[Alternate, ...], tuple[Considered, ...]]:
    """The steps that turn the panels of a scheduled function where that pays, and why."""
    groups, panels = groups_of(f), panel_loops(f)
    if groups is None or not panels:
        return (), ()
    packed = {b.name: b for b in f.buffers if b.scope is Scope.PACKED}
    share = 0.0
    for panel in panels:
        read = {n.buffer for n in walk(panel) if isinstance(n, Load)} & packed.keys()
        weights = sum(_bytes(packed[name]) for name in read)
        share += weights / (threads if panel.kind is LoopKind.PARALLEL else 1)
    saved = saving(share, machine)
    what = f"panels of weights in alternating directions ({share / 1e6:.1f} MB for a thread)"
    if share <= machine.l2 / 2:
        why = "they stay in the cache anyway"
    else:
        why = f"what was read last is still in the cache: reading takes {1 - saved:.2f} of the time"
    steps = tuple(Alternate(p.var, groups.var) for p in panels) if saved > LEAST else ()
    return steps, (Considered(what, None, bool(steps), why),)


def _bytes(b: Buffer) -> int:
    return BYTES[b.dtype] * prod(e.value for e in b.shape if isinstance(e, Int))


def saving(share: float, m: Machine) -> float:
    """The part of the time of reading `share` bytes again and again that turning saves."""
    return min(1.0, KEPT * m.l2 / max(share, 1)) * max(0.0, 1 - m.rate(share) / m.rate(m.l2 / 2))

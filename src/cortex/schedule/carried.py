"""What a thread's own buffers hold from one iteration of a loop to another, or from the loop to what follows it.

for p: { acc = 0; for k: acc += x[k]; h[p] = acc }        nothing: every iteration stores before it reads
for p: r[p] = x[p]                                        r, if it is read after the loop
for j: h[j] = r[j]
for p: h[p] = r * x[p]                                    r, which was stored before the loop
"""

from __future__ import annotations

from collections.abc import Iterator

from cortex.ilir.ir import Accumulate, For, Func, If, Stmt, Store, Switch
from cortex.ilir.verify import PER_THREAD
from cortex.ir.node import walk
from cortex.ir.scalar import Load
from cortex.ir.simplify import free_vars
from cortex.schedule.around import bodies, path_to
from cortex.schedule.locate import Block, is_loop


def carried(f: Func, loop: For) -> str | None:
    """A private buffer or register through which values pass into iterations of `loop`, or out of them."""
    own = frozenset(b.name for b in f.buffers if b.scope in PER_THREAD)
    used = [n for n in walk(loop) if isinstance(n, Load | Store | Accumulate) and n.buffer in own]
    indexed = {n.buffer for n in used if loop.var in free_vars(n.index)}
    if not used:
        return None
    inside = opened(loop.body, own)
    after = [opened(block, own) for block in _afterwards(f, loop)]
    for name in dict.fromkeys(n.buffer for n in used):
        out = next((first[name] for first in after if name in first), True)
        if name in indexed or not inside[name] or not out:
            return name
    return None


def opened(body: Block, buffers: frozenset[str]) -> dict[str, bool]:
    """Those of `buffers` that `body` uses: is the first thing it does with them to store to them?"""
    found: dict[str, bool] = {}
    for s in body:
        for name, stores in _opened(s, buffers).items():
            found.setdefault(name, stores)
    return found


def _opened(s: Stmt, buffers: frozenset[str]) -> dict[str, bool]:
    found: dict[str, bool] = {}
    if isinstance(s, For | If | Switch):
        for block in bodies(s):
            for name, stores in opened(block, buffers).items():
                found[name] = found.get(name, True) and stores
        return found
    for n in walk(s):
        if isinstance(n, Load) and n.buffer in buffers:
            found[n.buffer] = False
    if isinstance(s, Store | Accumulate) and s.buffer in buffers:
        found.setdefault(s.buffer, isinstance(s, Store))
    return found


def _afterwards(f: Func, loop: For) -> Iterator[Block]:
    """What may run after a loop: the rest of its list, the next iteration of the loop around it, and so on outwards."""
    path = path_to(f.body, is_loop(loop.var)) or ()
    for depth in range(len(path) - 1, -1, -1):
        around = path[depth - 1] if depth else None
        lists = (f.body,) if around is None else bodies(around)
        for block in lists:
            at = next((i for i, s in enumerate(block) if s is path[depth]), None)
            if at is not None:
                yield block[at + 1 :]
                if isinstance(around, For):
                    yield block

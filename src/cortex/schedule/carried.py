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
    own = {b.name for b in f.buffers if b.scope in PER_THREAD}
    used = [n for n in walk(loop) if isinstance(n, Load | Store | Accumulate) and n.buffer in own]
    indexed = {n.buffer for n in used if loop.var in free_vars(n.index)}
    for name in dict.fromkeys(n.buffer for n in used):
        after = (opens(block, name) for block in _afterwards(f, loop))
        out = next((first for first in after if first is not None), True)
        if name in indexed or not opens(loop.body, name) or not out:
            return name
    return None


def opens(body: Block, buffer: str) -> bool | None:
    """Is the first thing that `body` does with a buffer to store to it? None if it does nothing with it."""
    for s in body:
        found = _opens(s, buffer)
        if found is not None:
            return found
    return None


def _opens(s: Stmt, buffer: str) -> bool | None:
    inner = [first for block in bodies(s) if (first := opens(block, buffer)) is not None]
    if isinstance(s, For | If | Switch):
        return all(inner) if inner else None
    if any(isinstance(n, Load) and n.buffer == buffer for n in walk(s)):
        return False
    match s:
        case Store(name) | Accumulate(name) if name == buffer:
            return isinstance(s, Store)
        case _:
            return None


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

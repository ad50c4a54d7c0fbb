"""What stands around a statement."""

from __future__ import annotations

from collections.abc import Callable

from cortex.ilir.ir import For, Func, If, Stmt, Switch
from cortex.ir.polynomial import Bounds
from cortex.ir.scalar import Int
from cortex.schedule.locate import Block, is_loop


def path_to(body: Block, holds: Callable[[Stmt], bool]) -> tuple[Stmt, ...] | None:
    """The first statement for which `holds`, after all statements around it, outermost first; None without one."""
    for s in body:
        if holds(s):
            return (s,)
        for inner in bodies(s):
            below = path_to(inner, holds)
            if below is not None:
                return (s, *below)
    return None


def bodies(s: Stmt) -> tuple[Block, ...]:
    """The statement lists directly inside a statement."""
    match s:
        case For(body=body):
            return (body,)
        case If(then=then, orelse=orelse):
            return (then, orelse)
        case Switch(cases=cases):
            return tuple(case.body for case in cases)
        case _:
            return ()


def loops_around(f: Func, name: str) -> tuple[For, ...]:
    """The loops around the loop `name`, outermost first, and that loop itself."""
    return tuple(s for s in path_to(f.body, is_loop(name)) or () if isinstance(s, For))


def constant_bounds(loops: tuple[For, ...]) -> Bounds:
    """Inclusive limits of the variables of loops with constant bounds."""
    return {
        loop.var: (loop.lo.value, loop.hi.value - 1)
        for loop in loops
        if isinstance(loop.lo, Int) and isinstance(loop.hi, Int)
    }

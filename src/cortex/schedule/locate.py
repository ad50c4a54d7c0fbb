"""Finding and replacing loops by name, and refusing with the place marked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from math import isinf
from typing import NoReturn

from cortex.errors import ScheduleError
from cortex.ilir.ir import Accumulate, Buffer, Case, For, Func, If, Let, Stmt, Store, Switch
from cortex.ilir.show import show_stmts
from cortex.ir.node import walk
from cortex.ir.polynomial import interval_of
from cortex.ir.scalar import Int, Load
from cortex.ir.simplify import simplify
from cortex.poly.conflict import Conflict

Block = tuple[Stmt, ...]


def blocks(body: Block) -> Iterator[Block]:
    """All statement lists, outer before inner."""
    waiting = [body]
    while waiting:
        block = waiting.pop()
        yield block
        inner: list[Block] = []
        for s in block:
            match s:
                case For(body=within):
                    inner.append(within)
                case If(then=then, orelse=orelse):
                    inner += (then, orelse)
                case Switch(cases=cases):
                    inner += (case.body for case in cases)
                case _:
                    pass
        waiting += reversed(inner)


def edit_block(body: Block, holds: Callable[[Stmt], bool], edit: Callable[[Block], Block]) -> Block:
    """`body` with the outermost statement list that has a statement satisfying `holds` replaced by `edit` of it."""
    if any(holds(s) for s in body):
        return edit(body)

    def visit(s: Stmt) -> Stmt:
        match s:
            case For(body=inner):
                new = edit_block(inner, holds, edit)
                return s if new is inner else replace(s, body=new)
            case If(then=then, orelse=orelse):
                new_then, new_else = edit_block(then, holds, edit), edit_block(orelse, holds, edit)
                return s if new_then is then and new_else is orelse else replace(s, then=new_then, orelse=new_else)
            case Switch(cases=cases):
                new_cases = tuple(Case(c.value, edit_block(c.body, holds, edit)) for c in cases)
                return s if new_cases == cases else replace(s, cases=new_cases)
            case _:
                return s

    new = tuple(visit(s) for s in body)
    return body if all(a is b for a, b in zip(new, body, strict=True)) else new


def is_loop(name: str) -> Callable[[Stmt], bool]:
    """Does a statement run the loop `name`?"""
    return lambda s: isinstance(s, For) and s.var == name


def find_loop(f: Func, name: str, asked: object) -> For:
    """The loop called `name`; a ScheduleError naming the step `asked` when there is none."""
    for block in blocks(f.body):
        for s in block:
            if isinstance(s, For) and s.var == name:
                return s
    raise ScheduleError(f"{asked}: {f.name} has no loop {name!r}. Its loops: {', '.join(loop_names(f))}.")


def loop_names(f: Func) -> list[str]:
    """Names of all loops, in order."""
    return [s.var for block in blocks(f.body) for s in block if isinstance(s, For)]


def replace_loop(f: Func, name: str, new: Block) -> Func:
    """`f` with the loop `name` replaced by statements."""

    def edit(block: Block) -> Block:
        at = next(i for i, s in enumerate(block) if is_loop(name)(s))
        return (*block[:at], *new, *block[at + 1 :])

    return replace(f, body=edit_block(f.body, is_loop(name), edit))


def refuse(asked: object, reason: str, f: Func, loop: str, conflict: Conflict | None = None) -> NoReturn:
    """Raise the refusal of a step, showing the accesses that stand against it and the loop it is about."""
    against = "" if conflict is None else f"\n  {conflict}"
    raise ScheduleError(f"{asked}: {reason}{against}\n\n  in {f.name}:\n{show_stmts(f.body, marked=loop)}")


def perfect_chain(loop: For, last: str) -> tuple[For, ...] | None:
    """The loops from `loop` down to the one called `last`, if each holds only the next."""
    chain = [loop]
    while chain[-1].var != last:
        body = chain[-1].body
        if len(body) != 1 or not isinstance(body[0], For):
            return None
        chain.append(body[0])
    return tuple(chain)


def constant_extent(loop: For) -> int | None:
    """The number of iterations of a loop from 0 to a constant."""
    return loop.hi.value if loop.lo == Int(0) and isinstance(loop.hi, Int) else None


def reach(loop: For, extents: Mapping[str, int]) -> int | None:
    """The constant that a loop's variable stays below, if it is never negative; the loops around are below `extents`.

    A loop over the rows of an image that a filter meets, max(0, 1 - p)..min(3, 57 - p), stays below 3.
    """
    bounds = {name: (0, extent - 1) for name, extent in extents.items()}
    lo, hi = (interval_of(simplify(e, bounds), bounds) for e in (loop.lo, loop.hi))
    return int(hi[1]) if lo[0] >= 0 and not isinf(hi[1]) else None


class Names:
    """Fresh names for loops, lets and buffers: `base`, then `base_1`, `base_2`, ..."""

    def __init__(self, f: Func) -> None:
        self.used = {b.name for b in f.buffers} | {i.name for i in f.index_functions} | set(f.sizes)
        for block in blocks(f.body):
            self.used |= {s.var if isinstance(s, For) else s.var.name for s in block if isinstance(s, For | Let)}

    def fresh(self, base: str) -> str:
        """A name nobody has."""
        name, number = base, 0
        while name in self.used:
            number += 1
            name = f"{base}_{number}"
        self.used.add(name)
        return name


def row_stride(b: Buffer, axis: int) -> int | None:
    """Distance in elements between neighbours along `axis`; None when a later extent is not constant."""
    stride = 1
    for later in range(len(b.shape) - 1, axis, -1):
        extent = b.shape[later]
        if not isinstance(extent, Int):
            return None
        stride *= -(-extent.value // b.align) * b.align if later == len(b.shape) - 1 else extent.value
    return stride


def buffers_of(stmts: Iterable[Stmt]) -> set[str]:
    """The buffers that statements mention."""
    return {n.buffer for s in stmts for n in walk(s) if isinstance(n, Load | Store | Accumulate)}

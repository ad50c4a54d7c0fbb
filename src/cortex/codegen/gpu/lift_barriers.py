"""Lift barriers out of conditions, where compilers that run many items on one thread go wrong with them (PoCL does).

    before:  for g: { if kind(g) == 1: { A; barrier; B }; if kind(g) == 2: { C; barrier; D; barrier; E } }
    after:   for g: { if kind(g) == 1: A; if kind(g) == 2: C; barrier; if kind(g) == 1: B; if kind(g) == 2: D; barrier;
                      if kind(g) == 2: E }

Conditions around barriers are the same for all who meet there, so a barrier more changes nothing. Arms of which at most
one runs meet at the same barriers. A loop with barriers inside has no iterations where its condition does not hold.
"""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import Barrier, For, If, Let, Stmt, Switch
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Expr, Int, Select, Unary
from cortex.ir.simplify import free_vars, substitute

Block = tuple[Stmt, ...]
Arm = tuple[Expr, Block]
Slot = list[Stmt]


def lift_barriers(body: Block) -> Block:
    """`body` with no barrier inside a condition."""
    new: list[Stmt] = []
    arms: list[Arm] = []  # of neighbouring conditions, of which at most one holds

    def close() -> None:
        new.extend(_together([_slots(cond, lift_barriers(arm)) for cond, arm in arms]))
        arms.clear()

    for s in body:
        more = _arms(s) if isinstance(s, If | Switch) and _waits(s) else []
        if not more or not all(_exclusive(one, cond) for one, _ in arms for cond, _ in more):
            close()
        arms += more
        if not more:
            new.append(replace(s, body=lift_barriers(s.body)) if isinstance(s, For) and _waits(s) else s)
    close()
    return tuple(new)


def _waits(s: Stmt) -> bool:
    return any(isinstance(n, Barrier) for n in walk(s))


def _arms(s: If | Switch) -> list[Arm]:
    match s:
        case If(cond, then, orelse):
            return [(cond, then), (Unary("not", cond), orelse)] if orelse else [(cond, then)]
        case Switch(value, cases):
            return [(Binary("eq", value, Int(c.value)), c.body) for c in cases]


def _exclusive(a: Expr, b: Expr) -> bool:
    """Can only one of two conditions hold, by their form?"""
    match a, b:
        case Binary("eq", x, Int(i)), Binary("eq", y, Int(j)):
            return x == y and i != j
        case _:
            return a == Unary("not", b) or b == Unary("not", a)


def _slots(cond: Expr, body: Block) -> tuple[list[Slot], list[Barrier]]:
    """What an arm runs between its barriers, each under the condition, and the barriers."""
    slots: list[Slot] = [[]]
    barriers: list[Barrier] = []
    lets: list[Let] = []
    run: list[Stmt] = []

    def close() -> None:
        if run:
            slots[-1].append(If(cond, (*_used(lets, tuple(run)), *run)))
            lets.extend(s for s in run if isinstance(s, Let))
            run.clear()

    for s in body:
        match s:
            case Barrier():
                close()
                barriers.append(s)
                slots.append([])
            case For() if _waits(s):
                close()
                slots[-1].append(_where(cond, s, lets))
            case _:
                run.append(s)
    close()
    return slots, barriers


def _where(cond: Expr, loop: For, lets: list[Let]) -> For:
    """A loop that has no iterations where `cond` does not hold. Its bounds need no let."""
    lo, hi = loop.lo, loop.hi
    for let in reversed(lets):
        lo, hi = (substitute(e, {let.var.name: let.value}) for e in (lo, hi))
    body = (*_used(lets, loop.body), *loop.body)
    return replace(loop, lo=Select(cond, lo, Int(0)), hi=Select(cond, hi, Int(0)), body=body)


def _used(lets: list[Let], body: Block) -> Block:
    """The lets that statements need, in order."""
    wanted, used = free_vars(body), list[Stmt]()
    for let in reversed(lets):
        if let.var.name in wanted:
            used.insert(0, let)
            wanted = wanted | free_vars(let.value)
    return tuple(used)


def _together(arms: list[tuple[list[Slot], list[Barrier]]]) -> Block:
    """Arms of which at most one runs, meeting at the same barriers; where they differ, all threads meet."""
    new: list[Stmt] = []
    for number in range(max((len(slots) for slots, _ in arms), default=0)):
        met = [barriers[number - 1] for _, barriers in arms if 0 < number <= len(barriers)]
        if met:
            new.append(next((b for b in met if b.among == "team"), met[0]))
        new += (s for slots, _ in arms if number < len(slots) for s in slots[number])
    return tuple(new)

"""Stopping a function before it has finished.

`%stop` points to the word behind the sizes. Another thread may set this word to anything but 0: the function then
returns within about a millisecond, and its results mean nothing. A loop looks at the word in every iteration if an
iteration is long, else after pieces of many iterations. A loop that is short for every request does not look, nor does
one around a loop that looks in every iteration: each look costs the loops over sums a register.
"""

from __future__ import annotations

from typing import NamedTuple

from cortex.codegen.llvm.writer import Writer
from cortex.ilir.ir import For, If, LoopKind, Stmt, Switch
from cortex.ir.node import walk
from cortex.ir.scalar import Int

STOP = "%stop"
STOPPED = "stopped"
SELDOM = 3
"""The number of the metadata that say how often a branch is taken; see `module`."""
SHORT = 1 << 20
"""Instructions that may run between two looks: about a millisecond, where they wait for memory."""
LONG = 1 << 11
"""Instructions of an iteration that hide a look, which takes two."""
HOLDS_LOOPS = 1 << 8
"""The same for an iteration that holds loops of unknown length, each counted as one iteration."""
CHEAP = 1 << 5
"""Instructions of an iteration that need no look if the loop is inside of one that looks: millions take no time."""


def look(w: Writer) -> None:
    """Return from the function if it was stopped."""
    word = w.instruction(f"load atomic i64, ptr {STOP} monotonic, align 8")
    stopped, go_on = w.instruction(f"icmp ne i64 {word}, 0"), w.label("going")
    w.effect(f"br i1 {stopped}, label %{STOPPED}, label %{go_on}, !prof !{SELDOM}")
    w.start(go_on)


def end(w: Writer) -> None:
    """Write the block in which a function that was stopped ends."""
    w.start(STOPPED)
    w.effect("ret void")


def looks(body: tuple[Stmt, ...], lanes: int) -> dict[int, int]:
    """By identity of the loop, how many iterations run from one look to the next; loops that need none are left out.

    An instruction computes `lanes` elements of a vectorized loop.
    """
    found: dict[int, int] = {}
    _Estimate(found, lanes).of_list(body, inner=False)
    return found


class _Work(NamedTuple):
    """About how many instructions run, each loop of unknown length once; whether there is such a loop, or a look."""

    instructions: int
    has_loops: bool
    looks: bool = False


class _Estimate(NamedTuple):
    found: dict[int, int]
    lanes: int

    def of_list(self, body: tuple[Stmt, ...], inner: bool) -> _Work:
        parts = [self.of(s, inner) for s in body]
        return _Work(sum(p.instructions for p in parts), any(p.has_loops for p in parts), any(p.looks for p in parts))

    def of(self, s: Stmt, inner: bool) -> _Work:
        match s:
            case For():
                return self.of_loop(s, inner)
            case If(_, then, orelse):
                return self.of_branches([then, orelse], inner)
            case Switch(_, cases):
                return self.of_branches([c.body for c in cases], inner)
            case _:
                return _Work(sum(1 for _ in walk(s)) // 2 + 1, has_loops=False)

    def of_branches(self, bodies: list[tuple[Stmt, ...]], inner: bool) -> _Work:
        parts = [self.of_list(body, inner) for body in bodies]
        longest = max(parts, key=lambda p: p.instructions, default=_Work(0, False))
        return _Work(1 + longest.instructions, any(p.has_loops for p in parts), longest.looks)

    def of_loop(self, s: For, inner: bool) -> _Work:
        is_known = isinstance(s.lo, Int) and isinstance(s.hi, Int)
        each = self.of_list(s.body, inner or not is_known)
        cost = max(1, each.instructions)
        if isinstance(s.lo, Int) and isinstance(s.hi, Int):
            count = max(0, s.hi.value - s.lo.value)
            count = -(-count // self.lanes) if s.kind is LoopKind.VECTORIZED else count
            if count * cost >= SHORT and not each.looks:
                self.found[id(s)] = 1 if cost >= LONG else SHORT // cost
            return _Work(count * cost, each.has_loops, each.looks)
        if each.looks:
            return _Work(cost, has_loops=True, looks=True)
        if cost >= (HOLDS_LOOPS if each.has_loops else LONG):
            self.found[id(s)] = 1
            return _Work(cost, has_loops=True, looks=True)
        if cost >= CHEAP or each.has_loops or not inner:
            self.found[id(s)] = SHORT // (LONG if each.has_loops else cost)
        return _Work(cost, has_loops=True)

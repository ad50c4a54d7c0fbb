"""The statements of a program, without its expressions: to look at, and to replace list by list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from cortex.ilir.ir import Case, For, If, Stmt, Switch


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """All statements of a list and inside them, outer before inner: what `walk` gives, at a fraction of its time."""
    stack = list(body[::-1])
    while stack:
        s = stack.pop()
        yield s
        match s:
            case For(body=inside):
                stack += inside[::-1]
            case If(then=then, orelse=orelse):
                stack += orelse[::-1]
                stack += then[::-1]
            case Switch(cases=cases):
                stack += [each for case in cases[::-1] for each in case.body[::-1]]
            case _:
                pass


def with_lists(s: Stmt, new: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]) -> Stmt:
    """`s` with `new` of every statement list directly inside it; a statement that has none as it is."""
    match s:
        case For():
            return replace(s, body=new(s.body))
        case If(cond, then, orelse):
            return If(cond, new(then), new(orelse))
        case Switch(value, cases):
            return Switch(value, tuple(Case(c.value, new(c.body)) for c in cases))
        case _:
            return s

"""The statements of a program, without its expressions."""

from __future__ import annotations

from collections.abc import Iterator

from cortex.ilir.ir import For, If, Stmt, Switch


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

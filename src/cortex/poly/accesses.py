"""The accesses of a text: every read and write of a buffer, with the loops and conditions of that text around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from cortex.ilir.ir import Accumulate, For, If, Let, Stmt, Store, Switch
from cortex.ilir.show import show_expr
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Expr, Int, Load, Unary
from cortex.ir.simplify import substitute

Exprs = tuple[Expr, ...]


@dataclass(frozen=True)
class Access:
    """One read or write in the text of a program. An accumulation is a write.

    Names that the text binds by `Let` are replaced by their values, so that only variables of loops and what is
    known outside the text is left in `index`, in the bounds of `loops` and in `conditions`, all of which hold.
    """

    buffer: str
    index: Exprs
    writes: bool
    loops: tuple[For, ...]
    conditions: Exprs = ()

    def __str__(self) -> str:
        return f"{'write' if self.writes else 'read'} of {self.buffer}[{', '.join(map(show_expr, self.index))}]"


def accesses(
    stmts: tuple[Stmt, ...],
    loops: tuple[For, ...] = (),
    conditions: Exprs = (),
    lets: Mapping[str, Expr] | None = None,
) -> Iterator[Access]:
    """All accesses of a statement list that stands inside `loops` and under `conditions`."""
    known = dict(lets or {})

    def reads(*es: Expr) -> Iterator[Access]:
        for n in (n for e in es for n in walk(e)):
            if isinstance(n, Load):
                yield Access(n.buffer, _resolved(n.index, known), False, loops, conditions)

    def under(*more: Expr) -> Exprs:
        return (*conditions, *_resolved(more, known))

    for s in stmts:
        match s:
            case For(lo=lo, hi=hi, body=body):
                yield from reads(lo, hi)
                resolved = replace(s, lo=substitute(lo, known), hi=substitute(hi, known)) if known else s
                yield from accesses(body, (*loops, resolved), conditions, known)
            case If(cond=cond, then=then, orelse=orelse):
                yield from reads(cond)
                yield from accesses(then, loops, under(cond), known)
                yield from accesses(orelse, loops, under(Unary("not", cond)), known)
            case Switch(value=value, cases=cases):
                yield from reads(value)
                for case in cases:
                    yield from accesses(case.body, loops, under(Binary("eq", value, Int(case.value))), known)
            case Let(var=var, value=value):
                yield from reads(value)
                known[var.name] = substitute(value, known)
            case Store(buffer, index, value) | Accumulate(buffer, index, _, value):
                yield from reads(*index, value)
                yield Access(buffer, _resolved(index, known), True, loops, conditions)
            case _:
                pass


def _resolved(es: Exprs, lets: Mapping[str, Expr]) -> Exprs:
    return tuple(substitute(e, lets) for e in es) if lets else es

"""Forward stored values to the loads that follow."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import NARROW, Accumulate, Case, For, Func, If, Let, Stmt, Store, Switch
from cortex.ir.node import Node, rewrite, walk
from cortex.ir.scalar import Expr, Load, Var
from cortex.schedule.locate import Names


def forward_stores(f: Func) -> Func:
    """Read a value just stored from a register instead of from memory.

    before:  t[n, j] = a + b; h[n, j] = tanh(t[n, j])
    after:   let v = a + b; t[n, j] = v; h[n, j] = tanh(v)

    Within one statement list; a store to the same buffer at another index, or a loop or branch that writes the
    buffer, ends the value's life. A narrow buffer rounds what is stored: its values are read from memory.
    """
    names = Names(f)
    rounds = {b.name for b in f.buffers if b.dtype in NARROW}

    def block(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        known: dict[tuple[str, tuple[Expr, ...]], Var] = {}
        new: list[Stmt] = []

        def read(n: Node) -> Node:
            return known.get((n.buffer, n.index), n) if isinstance(n, Load) else n

        for s in body:
            match s:
                case Store(buffer, index, value):
                    index = tuple(rewrite(i, read) for i in index)
                    value = rewrite(value, read)
                    _forget(known, {buffer})
                    if buffer in rounds:
                        new.append(Store(buffer, index, value))
                    elif isinstance(value, Var):
                        known[buffer, index] = value
                        new.append(Store(buffer, index, value))
                    else:
                        var = Var(names.fresh(f"{buffer}_v"), "f32")
                        known[buffer, index] = var
                        new += (Let(var, value), Store(buffer, index, var))
                case Accumulate(buffer, index, fn, value):
                    new.append(Accumulate(buffer, tuple(rewrite(i, read) for i in index), fn, rewrite(value, read)))
                    _forget(known, {buffer})
                case Let(var, value):
                    new.append(Let(var, rewrite(value, read)))
                case For():
                    _forget_written(known, s)
                    new.append(replace(s, lo=rewrite(s.lo, read), hi=rewrite(s.hi, read), body=block(s.body)))
                case If(cond, then, orelse):
                    _forget_written(known, s)
                    new.append(If(rewrite(cond, read), block(then), block(orelse)))
                case Switch(value, cases):
                    _forget_written(known, s)
                    new.append(Switch(rewrite(value, read), tuple(Case(c.value, block(c.body)) for c in cases)))
                case _:
                    new.append(s)
        return tuple(new)

    return replace(f, body=block(f.body))


def _forget_written(known: dict[tuple[str, tuple[Expr, ...]], Var], s: Stmt) -> None:
    if known:  # else there is no need to look through the whole statement
        _forget(known, {n.buffer for n in walk(s) if isinstance(n, Store | Accumulate)})


def _forget(known: dict[tuple[str, tuple[Expr, ...]], Var], buffers: set[str]) -> None:
    for key in [k for k in known if k[0] in buffers or any(_mentions(i, buffers) for i in k[1])]:
        del known[key]


def _mentions(e: Expr, buffers: set[str]) -> bool:
    return any(isinstance(n, Load) and n.buffer in buffers for n in walk(e))

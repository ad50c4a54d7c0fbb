"""exp, sigmoid and tanh as arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from cortex.ilir.ir import Accumulate, Barrier, Case, For, Func, If, Let, Stmt, Store, Switch
from cortex.ilir.statements import statements
from cortex.ir.node import map_operands, walk
from cortex.ir.scalar import Expr, Float, Unary, Var
from cortex.passes.math_functions import Bind, exp, sigmoid, tanh

_EXPANSIONS = {"exp": exp, "sigmoid": sigmoid, "tanh": tanh}


def expand_math(f: Func) -> Func:
    """Replace exp, sigmoid and tanh by additions, multiplications, divisions, `round` and `ldexp`.

    Each is bound by a `Let` before the statement that uses it, so nothing is computed twice. `log` stays: it needs
    the bits of its argument, and the code generator writes it.

    before:  y[i] = x[i] * sigmoid(x[i])
    after:   let m1 = x[i]; let m2 = max(min(m1, 104), -89); ...; let m5 = 1 / (1 + ldexp(..., m3)); y[i] = x[i] * m5
    """
    taken = {x.name for x in walk(f) if isinstance(x, Var)} | {x.var for x in statements(f.body) if isinstance(x, For)}
    fresh = (name for name in (f"m{i}" for i in count(1)) if name not in taken and name not in f.sizes)
    return map_operands(f, lambda x: _expand(x, fresh) if isinstance(x, _STATEMENTS) else x)


_STATEMENTS = (For, If, Switch, Let, Store, Accumulate, Barrier)


def _expand(s: Stmt, fresh: Iterator[str]) -> Stmt | tuple[Stmt, ...]:
    """`s`, and all statements inside it, after the bindings that its own expressions need."""
    lets: list[Stmt] = []
    done: dict[Unary, Expr] = {}

    def bind(value: Expr) -> Expr:
        if isinstance(value, Var | Float):
            return value
        var = Var(next(fresh), "f32")
        lets.append(Let(var, value))
        return var

    def part(x: Any) -> Any:
        match x:
            case For() | If() | Switch() | Let() | Store() | Accumulate() | Barrier():
                return _expand(x, fresh)
            case Case():
                return map_operands(x, part)
            case _:
                return _arithmetic(x, bind, done)

    rebuilt = map_operands(s, part)
    return (*lets, rebuilt) if lets else rebuilt


def _arithmetic(e: Expr, bind: Bind, done: dict[Unary, Expr]) -> Expr:
    rebuilt = map_operands(e, lambda x: _arithmetic(x, bind, done))
    if not isinstance(rebuilt, Unary) or rebuilt.fn not in _EXPANSIONS:
        return rebuilt
    if rebuilt not in done:
        done[rebuilt] = bind(_EXPANSIONS[rebuilt.fn](bind(rebuilt.x), bind))
    return done[rebuilt]

"""Ask for what follows a sum before the sum begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from cortex.ilir.ir import Accumulate, Case, For, Func, If, Let, LoopKind, Prefetch, Scope, Stmt, Store, Switch
from cortex.ir.node import walk
from cortex.ir.scalar import Expr, Int, Load, Var, dtype_of
from cortex.ir.simplify import free_vars, substitute
from cortex.schedule.locate import Names

FAR = frozenset({Scope.STATE, Scope.SCRATCH, Scope.FIELD})
"""What is as large as the request. Weights come in the order they lie, and registers and private buffers are near."""

Env = dict[str, Expr]


def prefetch(f: Func) -> Func:
    """Ask for the elements that the rows of a tile read after their sums, so that they come while sums are computed.

    before:  switch rows: ...sums over k...;  for r in 0..rows: h[n + r, j] = f(tile[r], t[n + r, j], c[child(n + r), j])
    after:   for q in 0..rows: prefetch t[n + q, j]; prefetch c[child(n + q), j]
             switch rows: ...; for r in 0..rows: ...

    Rows of a request lie far apart, and each is read a few vectors at a time: no processor guesses these addresses.
    """
    names, far = Names(f), {b.name for b in f.buffers if b.scope in FAR}

    def block(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        new = [_inside(s, block) for s in body]
        first = next((i for i, s in enumerate(body) if _sums(s)), None)
        if first is None:
            return tuple(new)
        ahead: list[Stmt] = []
        for number, s in enumerate(body[first + 1 :], first + 1):
            if isinstance(s, For) and s.kind is LoopKind.SERIAL and not _sums(s):
                defined = {v.var.name for v in body[first:number] if isinstance(v, Let)}
                if defined & free_vars((s.lo, s.hi)):
                    continue
                written = {n.buffer for before in body[first:number] for n in walk(before) if isinstance(n, Store)}
                row = Var(names.fresh(f"{s.var}_ahead"))
                wanted = dict.fromkeys(
                    Prefetch(load.buffer, substitute(index, {s.var: row}))
                    for load, index in _loads(s.body, {})
                    if load.buffer in far - written and s.var in free_vars(index) and not defined & free_vars(index)
                )
                if wanted:
                    ahead.append(For(row.name, s.lo, s.hi, tuple(wanted)))
        return (*new[:first], *ahead, *new[first:])

    return replace(f, body=block(f.body))


def _inside(s: Stmt, block: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]) -> Stmt:
    """`s` with the statement lists inside it replaced."""
    match s:
        case For():
            return replace(s, body=block(s.body))
        case If(cond, then, orelse):
            return If(cond, block(then), block(orelse))
        case Switch(value, cases):
            return Switch(value, tuple(Case(c.value, block(c.body)) for c in cases))
        case _:
            return s


def _sums(s: Stmt) -> bool:
    """Does `s` compute the sums of a tile: a loop that does nothing else, or a choice of such loops by height?"""
    match s:
        case For(body=body, kind=LoopKind.SERIAL):
            return _only_adds(body)
        case Switch(_, cases):
            return any(_sums(inner) for c in cases for inner in c.body)
        case _:
            return False


def _only_adds(body: tuple[Stmt, ...]) -> bool:
    return all(isinstance(s, Accumulate) or (isinstance(s, For) and _only_adds(s.body)) for s in body)


def _loads(body: tuple[Stmt, ...], env: Env) -> Iterator[tuple[Load, tuple[Expr, ...]]]:
    """What a loop of vectors loads at its first lane, with indices in terms of what is known outside."""
    env = dict(env)
    for s in body:
        match s:
            case For(var, Int(lo), Int(hi), inner, LoopKind.UNROLLED):
                for value in range(lo, hi):
                    yield from _loads(inner, {**env, var: Int(value)})
            case For(var, lo, _, inner, LoopKind.VECTORIZED):
                yield from _loads(inner, {**env, var: lo})
            case Let(var, value) if dtype_of(value) == "i64":
                yield from _loads_of(value, env)
                env[var.name] = substitute(value, env)
            case Let(_, value) | Store(_, _, value):
                yield from _loads_of(value, env)
            case _:
                pass


def _loads_of(e: Expr, env: Env) -> Iterator[tuple[Load, tuple[Expr, ...]]]:
    for n in walk(e):
        if isinstance(n, Load):
            yield n, substitute(n.index, env)

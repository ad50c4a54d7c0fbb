"""Ask for what follows a sum before the sum begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cortex.ilir.ir import Accumulate, For, Func, Let, LoopKind, Prefetch, Scope, Stmt, Store, Switch
from cortex.ilir.statements import with_lists
from cortex.ir.node import walk
from cortex.ir.scalar import Expr, Int, Load, Var, dtype_of
from cortex.ir.simplify import free_vars, simplify, substitute
from cortex.schedule.locate import Names

FAR = frozenset({Scope.STATE, Scope.SCRATCH, Scope.FIELD})
"""What is as large as the request. Weights come in the order they lie, and registers and private buffers are near."""

Block = tuple[Stmt, ...]
Env = dict[str, Expr]


def prefetch(f: Func) -> Func:
    """Ask for the elements that the rows of a tile use after their sums, so that they come while sums are computed.

    before:  switch rows: ...sums over k...;  for r in 0..rows: h[n + r, j] = f(tile[r], c[child(n + r), j])
    after:   for q in 0..rows: prefetch to read c[child(n + q), j]; prefetch to write h[n + q, j]
             switch rows: ...;  for r in 0..rows: ...

    Rows of a request lie far apart, and each is used a few vectors at a time: no processor guesses these addresses.
    """
    names = Names(f)
    far = {b.name for b in f.buffers if b.scope in FAR and not b.streamed}

    def block(body: Block) -> Block:
        new = [with_lists(s, block) for s in body]
        first = next((i for i, s in enumerate(body) if _sums(s)), None)
        if first is None:
            return tuple(new)
        ahead = [
            asked
            for s in body[first + 1 :]
            if isinstance(s, For) and not _sums(s) and (asked := _ask(s, far, names)) is not None
        ]
        return (*new[:first], *ahead, *new[first:])

    return replace(f, body=block(f.body))


def _sums(s: Stmt) -> bool:
    """Does `s` compute the sums of a tile: a loop that does nothing else, or a choice of such loops by height?"""
    match s:
        case For(body=body, kind=LoopKind.SERIAL):
            return _only_adds(body)
        case Switch(_, cases):
            return any(_sums(inner) for c in cases for inner in c.body)
        case _:
            return False


def _only_adds(body: Block) -> bool:
    return all(isinstance(s, Accumulate) or (isinstance(s, For) and _only_adds(s.body)) for s in body)


def _ask(rows: For, far: set[str], names: Names) -> For | None:
    """A loop that asks for what a loop over rows uses, if its rows are of vectors and depend on the row."""
    row = Var(names.fresh(f"{rows.var}_ahead"))
    wanted = dict.fromkeys(
        replace(p, index=tuple(simplify(substitute(i, {rows.var: row})) for i in p.index))
        for p in _used(rows.body, {})
        if p.buffer in far and rows.var in free_vars(p.index)
    )
    return For(row.name, rows.lo, rows.hi, tuple(wanted)) if wanted else None


def _used(body: Block, env: Env) -> Iterator[Prefetch]:
    """What a loop of vectors uses at its first lane, with indices in terms of what is known outside."""
    env = dict(env)
    for s in body:
        match s:
            case For(var, Int(lo), Int(hi), inner, LoopKind.UNROLLED):
                for value in range(lo, hi):
                    yield from _used(inner, {**env, var: Int(value)})
            case For(var, lo, _, inner, LoopKind.VECTORIZED):
                yield from _used(inner, {**env, var: lo})
            case Let(var, value):
                yield from _read(value, env)
                if dtype_of(value) == "i64":
                    env[var.name] = substitute(value, env)
            case Store(buffer, index, value):
                yield from _read(value, env)
                yield Prefetch(buffer, substitute(index, env), "write")
            case _:
                pass


def _read(e: Expr, env: Env) -> Iterator[Prefetch]:
    return (Prefetch(n.buffer, substitute(n.index, env)) for n in walk(e) if isinstance(n, Load))

"""Remove what nobody reads."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from cortex.ilir.ir import Accumulate, Case, For, Func, If, Let, Scope, Stmt, Store, Switch
from cortex.ir.node import walk
from cortex.ir.scalar import Load, Var

TEMPORARY = (Scope.SCRATCH, Scope.COPIED, Scope.PRIVATE, Scope.REGISTER, Scope.LOCAL, Scope.RESIDENT)


def remove_unused(f: Func) -> Func:
    """Drop temporaries that are only written, lets nobody uses, loops left empty and params nobody reads.

    before:  let v = a + b; t[n, j] = v; h[n, j] = tanh(v)           (t is read nowhere)
    after:   let v = a + b; h[n, j] = tanh(v)
    """
    while True:
        loads, names = _uses(f)
        dead = {b.name for b in f.buffers if b.scope in TEMPORARY and not loads[b.name]}
        body = _sweep(f.body, dead, names)
        if body == f.body:
            break
        f = replace(f, body=body)
    packed = {gate.param for p in f.packings for gate in p.gates}
    unread = {b.name for b in f.buffers if b.scope in (Scope.PARAM, *TEMPORARY) and not loads[b.name]} - packed
    return replace(f, buffers=tuple(b for b in f.buffers if b.name not in unread))


def _uses(f: Func) -> tuple[Counter[str], Counter[str]]:
    """How often each buffer is loaded and each name is used (its binding does not count)."""
    loads: Counter[str] = Counter()
    names: Counter[str] = Counter()
    for n in (n for s in f.body for n in walk(s)):
        if isinstance(n, Var):
            names[n.name] += 1
        elif isinstance(n, Load):
            loads[n.buffer] += 1
        elif isinstance(n, Let):
            names[n.var.name] -= 1  # the variable is an operand too
    return loads, names


def _sweep(body: tuple[Stmt, ...], dead: set[str], names: Counter[str]) -> tuple[Stmt, ...]:
    kept: list[Stmt] = []
    for s in body:
        match s:
            case Store(buffer) | Accumulate(buffer) if buffer in dead:
                continue
            case Let(var) if not names[var.name]:
                continue
            case For(body=inner):
                inner = _sweep(inner, dead, names)
                if inner:
                    kept.append(replace(s, body=inner))
            case If(cond, then, orelse):
                then, orelse = _sweep(then, dead, names), _sweep(orelse, dead, names)
                if then or orelse:
                    kept.append(If(cond, then, orelse))
            case Switch(value, cases):
                cases = tuple(Case(c.value, _sweep(c.body, dead, names)) for c in cases)
                if any(c.body for c in cases):
                    kept.append(Switch(value, cases))
            case _:
                kept.append(s)
    return tuple(kept)

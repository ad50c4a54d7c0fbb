"""Inline: compute a temporary where it is read."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import NARROW, Accumulate, Case, For, Func, If, Let, Scope, Stmt, Store, Switch
from cortex.ir.node import Node, operands, rewrite, walk
from cortex.ir.polynomial import expand, interval
from cortex.ir.scalar import Expr, Load, Var
from cortex.ir.simplify import affine, free_vars, simplify, sub, substitute
from cortex.ir.step import Step, step
from cortex.poly.legal import why_not_swap
from cortex.schedule.around import bodies, constant_bounds, path_to
from cortex.schedule.locate import Block, refuse

INPUTS = (Scope.PARAM, Scope.PACKED, Scope.FIELD)


@step
class Inline(Step[Func]):
    """Replace every read of a temporary by the expression that computes it, and drop the temporary.

    before:  for n: for j: u[n, j] = t[n, j] + b[j]
             for m: for i: h[m, i] = tanh(u[m, i])
    after:   for m: for i: h[m, i] = tanh(t[m, i] + b[i])
    legal:   one store, and no accumulation, writes the temporary; an element's place tells the iteration that wrote
             it. Reads stand after it and read what the same nest wrote: in the same iterations, or in loops of the
             same bounds; nothing up to them writes what the expression reads. Where the expression reads only
             parameters and fields at the element's own place, it may be read anywhere.
    """

    buffer: str

    def apply(self, f: Func) -> Func:
        """`f` without the temporary."""
        buffer = next((b for b in f.buffers if b.name == self.buffer), None)
        if buffer is None or buffer.scope is not Scope.SCRATCH:
            refuse(self, f"{self.buffer!r} is not a temporary.", f, "")
        if buffer.dtype in NARROW:
            refuse(self, f"{self.buffer!r} rounds what it holds to {buffer.dtype}.", f, "")
        writes = [n for s in f.body for n in walk(s) if isinstance(n, Store | Accumulate) and n.buffer == self.buffer]
        if len(writes) != 1 or not isinstance(writes[0], Store):
            refuse(self, f"{self.buffer!r} is not written by exactly one store, and no sum.", f, "")
        source = _Source(f, writes[0])
        if any(n == self.buffer for n in _loaded(source.store)):
            refuse(self, f"{self.buffer!r} is computed from itself.", f, source.loop)
        values: dict[Load, Expr] = {}
        for path, load in _reads(f.body, self.buffer, ()):
            value = source.value_at(path, load)
            if isinstance(value, str):
                refuse(self, value, f, source.loop)
            values[load] = value
        body = _without(f.body, source.store)
        new = tuple(rewrite(s, lambda n: values.get(n, n) if isinstance(n, Load) else n) for s in body)
        return replace(f, body=new, buffers=tuple(b for b in f.buffers if b.name != self.buffer))


class _Source:
    """The store that computes a temporary."""

    def __init__(self, f: Func, store: Store) -> None:
        self.f, self.store = f, store
        self.path = path_to(f.body, lambda s: s is store) or ()
        loops = [s.var for s in self.path if isinstance(s, For)]
        self.loop = loops[-1] if loops else ""
        scopes = {b.name: b.scope for b in f.buffers}
        self.only_inputs = all(scopes[name] in INPUTS for name in _loaded(store))

    def value_at(self, path: tuple[Stmt, ...], load: Load) -> Expr | str:
        """The value of the element that is read by `load`, inside `path`, or why it is not known there."""
        shared = 0
        while shared < min(len(path), len(self.path)) and path[shared] is self.path[shared]:
            shared += 1
        common, own = self.path[:shared], self.path[shared:-1]
        if not all(isinstance(s, For) for s in own):
            return "the store is under a condition."
        private = {s.var: s for s in own if isinstance(s, For)}
        place: dict[str, Expr] = {}
        same = True
        for mine, read in zip(self.store.index, load.index, strict=True):
            used = free_vars(mine) & set(private)
            if not used:
                same = same and mine == read
                continue
            (name, *more) = used
            form = affine(mine, name)
            if more or form is None or form[0] != 1 or name in place:
                return "an element's place does not tell the iteration that computes it."
            place[name] = simplify(sub(read, form[1]))
        needed = free_vars(self.store.value)
        if set(private) - set(place):
            return "an element is stored in several iterations."
        visible = {s.var for s in common if isinstance(s, For)} | set(self.f.sizes) | _lets_before(self.f, common)
        if needed - set(place) - visible:
            return "the expression uses what is not known where it is read."
        value: Expr = substitute(self.store.value, place)
        if self.only_inputs and not needed - set(place) - set(self.f.sizes):
            if self._in_padding(path, place, private):
                return "it is read in the padding of its rows."
            return value
        return self._fresh(path, common, place, private, same) or value

    def _in_padding(self, path: tuple[Stmt, ...], place: dict[str, Expr], private: dict[str, For]) -> bool:
        """May a read be beyond the columns that the store computes?"""
        last = free_vars(self.store.index[-1]) & set(private) if self.store.index else frozenset[str]()
        bounds = constant_bounds(tuple(s for s in path if isinstance(s, For)))
        for name in last:
            computed = constant_bounds((private[name],)).get(name)
            lo, hi = interval(expand(place[name], simplify), bounds)
            if computed is None or lo < computed[0] or hi > computed[1]:
                return True
        return False

    def _fresh(
        self,
        path: tuple[Stmt, ...],
        common: tuple[Stmt, ...],
        place: dict[str, Expr],
        private: dict[str, For],
        same: bool,
    ) -> str | None:
        """Why a read may see something else than what the store's nest, run just before it, wrote."""
        loops = {s.var: s for s in path[len(common) :] if isinstance(s, For)}
        for name, at in place.items():
            reader = loops.get(at.name) if isinstance(at, Var) else None
            same = same and reader is not None and (reader.lo, reader.hi) == (private[name].lo, private[name].hi)
        if not same:
            return "it is read elsewhere than where the same nest wrote it."
        block = next(
            (
                b
                for b in (bodies(common[-1]) if common else (self.f.body,))
                if any(s is self.path[len(common)] for s in b)
            ),
            (),
        )
        writer = next(i for i, s in enumerate(block) if s is self.path[len(common)])
        reader_at = next((i for i, s in enumerate(block) if s is path[len(common)]), -1)
        if reader_at <= writer:
            return "it is read before it is written."
        nest: Stmt = self.store
        for loop in reversed(list(private.values())):
            nest = replace(loop, body=(nest,))
        between, written = block[writer : reader_at + 1], frozenset({self.store.buffer})
        conflict = why_not_swap(self.f, next(iter(private), self.loop), (nest,), between, written)
        if conflict is None:
            return None
        return f"what the expression reads is written before the temporary is read: {conflict}."


def _loaded(n: Node) -> set[str]:
    return {x.buffer for x in walk(n) if isinstance(x, Load)}


def _lets_before(f: Func, common: tuple[Stmt, ...]) -> set[str]:
    """Names bound by lets before the statements of `common`, each in the list inside the one before."""
    names: set[str] = set()
    lists: tuple[Block, ...] = (f.body,)
    for inner in common:
        block = next(b for b in lists if any(s is inner for s in b))
        end = next(i for i, s in enumerate(block) if s is inner)
        names |= {s.var.name for s in block[:end] if isinstance(s, Let)}
        lists = bodies(inner)
    return names


def _reads(body: Block, buffer: str, path: tuple[Stmt, ...]) -> list[tuple[tuple[Stmt, ...], Load]]:
    """All reads of a buffer with the statements around them, the one they are part of last."""
    found: list[tuple[tuple[Stmt, ...], Load]] = []
    for s in body:
        inner = bodies(s)
        here = (*path, s)
        below = {id(x) for b in inner for x in b}
        parts = [x for x in operands(s) if id(x) not in below and not isinstance(x, Case)]
        found += [(here, n) for x in parts for n in walk(x) if isinstance(n, Load) and n.buffer == buffer]
        for block in inner:
            found += _reads(block, buffer, here)
    return found


def _without(body: Block, store: Store) -> Block:
    """`body` without a store and without the loops and branches that are empty then."""
    kept: list[Stmt] = []
    for s in body:
        match s:
            case Store() if s is store:
                continue
            case For(body=inner):
                new = _without(inner, store)
                kept += [replace(s, body=new)] if new else []
            case If(cond, then, orelse):
                kept.append(If(cond, _without(then, store), _without(orelse, store)))
            case Switch(value, cases):
                kept.append(Switch(value, tuple(Case(c.value, _without(c.body, store)) for c in cases)))
            case _:
                kept.append(s)
    return tuple(kept)

"""ComputeAt: compute of a temporary only what an iteration of its consumer needs, there."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import NARROW, Accumulate, Buffer, For, Func, LoopKind, Scope, Stmt, Store
from cortex.ir.node import walk
from cortex.ir.polynomial import expand, interval
from cortex.ir.scalar import Expr, Int, Var
from cortex.ir.simplify import simplify, substitute
from cortex.ir.step import Step, step
from cortex.poly.legal import why_not_swap
from cortex.schedule.around import constant_bounds, loops_around, path_to
from cortex.schedule.locate import Block, Names, blocks, find_loop, is_loop, refuse, replace_loop
from cortex.schedule.part import Part, Touch, part_of, redirect_to, touches
from cortex.schedule.rename import fresh_copy


@step
class ComputeAt(Step[Func]):
    """Move the nest that computes a temporary into a loop that uses it; each iteration computes its own part.

    before:  for n: for j in 0..64: t[n, j] = f(n, j)
             for n2: for j_o in 0..4: for j_i in 0..16: h[n2, j_o*16 + j_i] = g(t[n2, j_o*16 + j_i])
    after:   for n2: for j_o in 0..4:
               for t_0 in 0..16: t_at[t_0] = f(n2, j_o*16 + t_0)
               for j_i in 0..16: h[n2, j_o*16 + j_i] = g(t_at[j_i])
    legal:   one nest writes the temporary, and nothing else; all its uses are in the loop, which stands after it;
             nothing up to there writes what the nest reads; every iteration uses one part of constant shape, and
             holds no parallel loop. An element used in several iterations is computed in each of them.
    """

    buffer: str
    loop: str

    def apply(self, f: Func) -> Func:
        """`f` with the nest moved."""
        loop = find_loop(f, self.loop, self)
        buffer = next((b for b in f.buffers if b.name == self.buffer), None)
        if buffer is None or buffer.scope is not Scope.SCRATCH:
            refuse(self, f"{self.buffer!r} is not a temporary.", f, self.loop)
        if buffer.dtype in NARROW:
            refuse(self, f"{self.buffer!r} rounds what it holds to {buffer.dtype}.", f, self.loop)
        if loop.kind is LoopKind.VECTORIZED:
            refuse(self, f"{self.loop!r} is vectorized and cannot hold a nest.", f, self.loop)
        if any(isinstance(n, For) and n.kind is LoopKind.PARALLEL for s in loop.body for n in walk(s)):
            refuse(self, f"{self.loop!r} holds a parallel loop; threads do not share registers.", f, self.loop)
        block, at, user = self._places(f)
        nest = block[at]
        assert isinstance(nest, For)
        if conflict := why_not_swap(f, nest.var, (nest,), block[at + 1 : user + 1], frozenset({self.buffer})):
            refuse(self, "what the nest reads is written before its new place.", f, nest.var, conflict)
        chain, core = self._chain(f, nest)
        found = touches(loop.body, self.buffer)
        part = part_of(buffer, loop.body, found)
        if isinstance(part, str):
            refuse(self, f"{part}.", f, self.loop)
        if _reads_padding(f, buffer, found, self.loop):
            refuse(self, f"the loop runs over the padding of {self.buffer!r}.", f, self.loop)
        part = self._computed(f, buffer, part, chain, nest)
        names = Names(f)
        local = Buffer(names.fresh(f"{self.buffer}_at"), buffer.dtype, part.shape, Scope.REGISTER)
        producer = redirect_to(self._produce(names, chain, core, part), self.buffer, local.name, part)
        consumer = redirect_to(loop.body, self.buffer, local.name, part)
        moved = replace_loop(f, self.loop, (replace(loop, body=(*producer, *consumer)),))
        kept = tuple(b for b in f.buffers if b.name != self.buffer)
        return replace(replace_loop(moved, nest.var, ()), buffers=(*kept, local))

    def _places(self, f: Func) -> tuple[Block, int, int]:
        """The statement list with the nest and its user, and where in it they are."""
        for block in blocks(f.body):
            user = next((i for i, s in enumerate(block) if path_to((s,), is_loop(self.loop)) is not None), None)
            if user is None:
                continue
            at = [i for i, s in enumerate(block) if i != user and _writes(s, self.buffer)]
            if len(at) == 1 and isinstance(block[at[0]], For):
                inside = find_loop(f, self.loop, self)
                used = sum(_mentions(s, self.buffer) for s in f.body)
                if used != _mentions(block[at[0]], self.buffer) + sum(_mentions(s, self.buffer) for s in inside.body):
                    refuse(self, f"{self.buffer!r} is used outside {self.loop!r} as well.", f, self.loop)
                if at[0] > user:
                    refuse(self, f"the nest that computes {self.buffer!r} stands after {self.loop!r}.", f, self.loop)
                if any(_writes(s, self.buffer) for s in inside.body):
                    refuse(self, f"{self.loop!r} writes to {self.buffer!r} itself.", f, self.loop)
                return block, at[0], user
        refuse(self, f"no one nest beside {self.loop!r} computes {self.buffer!r}.", f, self.loop)

    def _chain(self, f: Func, nest: For) -> tuple[dict[str, For], Block]:
        """The loops over the elements of the temporary, and what computes one element."""
        written = [n for n in walk(nest) if isinstance(n, Store | Accumulate)]
        index = written[0].index
        if any(n.buffer != self.buffer or n.index != index for n in written):
            refuse(self, f"the nest computes more than one element of {self.buffer!r} at a time.", f, nest.var)
        wanted = [i.name for i in index if isinstance(i, Var)]
        chain: dict[str, For] = {}
        body: Block = (nest,)
        while len(body) == 1 and isinstance(body[0], For) and body[0].var in wanted:
            chain[body[0].var] = body[0]
            body = body[0].body
        if set(wanted) != set(chain) or len(set(wanted)) != len(index):
            refuse(self, f"the nest does not have one loop per dimension of {self.buffer!r}.", f, nest.var)
        if any(loop.kind is LoopKind.VECTORIZED for loop in chain.values()):
            refuse(self, "the nest is vectorized; move it before that.", f, nest.var)
        return {name: chain[name] for name in wanted}, body

    def _computed(self, f: Func, buffer: Buffer, part: Part, chain: dict[str, For], nest: For) -> Part:
        """The part without padding; a dimension that is taken whole must be computed whole."""
        ranges = []
        for r, size, loop in zip(part.ranges, buffer.shape, chain.values(), strict=True):
            if isinstance(size, Int) and r.first == Int(0) and r.extent is not None and r.extent >= size.value:
                if (loop.lo, loop.hi) != (Int(0), size):
                    refuse(self, f"the nest does not compute the whole of {self.buffer!r}.", f, nest.var)
                r = replace(r, extent=size.value)
            ranges.append(r)
        return Part(tuple(ranges))

    def _produce(self, names: Names, chain: dict[str, For], core: Block, part: Part) -> Block:
        """The nest for one part."""
        copy = fresh_copy(core, names)
        place: tuple[Expr, ...] = tuple(Var(names.fresh(f"{self.buffer}_{axis}")) for axis in range(len(part.shape)))
        body = substitute(copy, dict(zip(chain, part.outer(place), strict=True)))
        for v, extent in zip(reversed(place), reversed(part.shape), strict=True):
            assert isinstance(v, Var)
            body = (For(v.name, Int(0), extent, body),)
        return body


def _writes(s: Stmt, buffer: str) -> bool:
    return any(isinstance(n, Store | Accumulate) and n.buffer == buffer for n in walk(s))


def _mentions(s: Stmt, buffer: str) -> int:
    return sum(getattr(n, "buffer", None) == buffer for n in walk(s))


def _reads_padding(f: Func, buffer: Buffer, found: list[Touch], loop: str) -> bool:
    """May an access be beyond the last dimension, in the padding of a row, which the nest does not compute?"""
    if buffer.align == 1 or not buffer.shape:
        return False
    around = loops_around(f, loop)
    last = buffer.shape[-1]
    limits = (interval(expand(t.index[-1], simplify), constant_bounds((*around, *t.loops)))[1] for t in found)
    return not isinstance(last, Int) or any(limit > last.value - 1 for limit in limits)

"""Resident: hold a weight in the local memory of work-groups for as long as the call lasts."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import Buffer, For, Func, LoopKind, Scope, Store
from cortex.ir.node import Node, rewrite, walk
from cortex.ir.scalar import Expr, Int, Load, Var
from cortex.ir.simplify import simplify
from cortex.ir.step import Step, step
from cortex.schedule.locate import Names, refuse
from cortex.schedule.ownership import Around, expressions_of, statements


@step
class Resident(Step[Func]):
    """Copy a weight to local memory, once: each work-group the slices that its iterations of parallel loops read.

    before:  for g: for p in 0..8 parallel: for n: for k: ... packed[p, k, 0, l]
    after:   for c in 0..8 parallel: for k items y: for l items x: packed_resident[c, k, 0, l] = packed[c, k, 0, l]
             for g: for p in 0..8 parallel: for n: for k: ... packed_resident[p, k, 0, l]
    legal:   the buffer is a weight of f32, and every read of it stands in a parallel loop over its first dimension, at
             the slice of the iteration. A work-group has the same iterations of all such loops.

    It needs memory for as many slices as a work-group has iterations, and a kernel that runs to the end of the call.
    """

    buffer: str

    def apply(self, f: Func) -> Func:
        """`f` with the weight in local memory."""
        buffer = next((b for b in f.buffers if b.name == self.buffer), None)
        if buffer is None or buffer.scope not in (Scope.PARAM, Scope.PACKED) or buffer.dtype != "f32":
            refuse(self, f"{self.buffer!r} is not a weight of f32 of {f.name}.", f, "")
        if len(buffer.shape) < 2:
            refuse(self, f"{self.buffer!r} has no slices.", f, "")
        names = Names(f)
        kept = replace(buffer, name=names.fresh(f"{self.buffer}_resident"), scope=Scope.RESIDENT)
        moved: dict[Load, Load] = {}
        for s, around in statements(f.body, Around()):
            for n in (n for e in expressions_of(s) for n in walk(e)):
                if isinstance(n, Load) and n.buffer == self.buffer:
                    moved[n] = Load(kept.name, self._own_slice(f, buffer, n, around), n.dtype)
        if not moved:
            refuse(self, f"nothing reads {self.buffer!r}.", f, "")

        def move(n: Node) -> Node:
            return moved.get(n, n) if isinstance(n, Load) else n

        body = tuple(rewrite(s, move) for s in f.body)
        return replace(f, buffers=(*f.buffers, kept), body=(_copy(names, buffer, kept), *body))

    def _own_slice(self, f: Func, buffer: Buffer, load: Load, around: Around) -> tuple[Expr, ...]:
        loop = around.parallel
        if loop is None or (loop.lo, loop.hi) != (Int(0), buffer.shape[0]):
            refuse(self, f"{self.buffer!r} is read where its slices are not shared out.", f, "")
        index = tuple(simplify(around.expand(e), around.constant_bounds()) for e in load.index)
        if index[0] != Var(loop.var):
            refuse(self, f"iterations of {loop.var!r} share slices of {self.buffer!r}.", f, loop.var)
        return index


def _copy(names: Names, source: Buffer, target: Buffer) -> For:
    """The loops that copy a weight: slices to work-groups, the last dimension to items x and the second to items y."""
    place = tuple(Var(names.fresh(f"{target.name}_c{axis}")) for axis in range(len(source.shape)))
    kinds = [LoopKind.PARALLEL, LoopKind.ITEMS_Y, *[LoopKind.SERIAL] * (len(place) - 3), LoopKind.ITEMS_X]
    if len(place) == 2:
        kinds = [LoopKind.PARALLEL, LoopKind.ITEMS_X]
    nest: For | Store = Store(target.name, place, Load(source.name, place))
    for v, extent, kind in reversed(list(zip(place, source.shape, kinds, strict=True))):
        nest = For(v.name, Int(0), extent, (nest,), kind)
    assert isinstance(nest, For)
    return nest

"""Surround: give a temporary a border of zeros, so that a sum may run over all its terms."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import Accumulate, Buffer, For, Func, Stmt, Store
from cortex.ir.node import walk
from cortex.ir.polynomial import interval_of
from cortex.ir.scalar import Binary, Expr, Float, Int, Load, Var
from cortex.ir.simplify import add, free_vars, simplify
from cortex.ir.step import Step, step
from cortex.poly.legal import leaves_out_only
from cortex.schedule.around import constant_bounds, loops_around
from cortex.schedule.layout import moved, temporary
from cortex.schedule.locate import Block, Names, constant_extent, find_loop, reach, refuse, replace_loop


@step
class Surround(Step[Func]):
    """Put zeros before and after a temporary along `axis`, and let the loop `terms` of a sum run over them too.

    before:  image[h, e] = ...                                                  image has 7 rows
             for r in max(0, 1 - p)..min(3, 8 - p): sum[p] += image[p - 1 + r, e] * w[r]
    after:   image[h + 1, e] = ...; image[0, e] = 0; image[8, e] = 0            image has 9 rows
             for r in 0..3: sum[p] += image[p + r, e] * w[r]
    legal:   the temporary has a constant shape; every term of the loop is a product with an element of it; terms are
             left out only where they would read beyond it along `axis`. Sums change only by what is not finite times
             0. Then the bounds of `terms` depend on no other loop: a tile may have rows for which they differed.
    """

    buffer: str
    axis: int
    terms: str

    def apply(self, f: Func) -> Func:
        """`f` with the border."""
        b = temporary(self, f, self.buffer)
        sizes = [e.value for e in b.shape if isinstance(e, Int)]
        if len(sizes) != len(b.shape) or not 0 <= self.axis < len(sizes):
            reason = f"{self.buffer!r} must have constant dimensions, and {self.axis} must be one of them"
            refuse(self, f"{reason}.", f, "")
        loop = find_loop(f, self.terms, self)
        around = loops_around(f, self.terms)[:-1]
        extents = {each.var: constant_extent(each) for each in around}
        known = {name: extent for name, extent in extents.items() if extent is not None}
        most = reach(loop, known)
        reads = _terms(loop, self.buffer)
        if most is None or len(known) != len(extents):
            refuse(self, f"{self.terms!r} and the loops around it are not between 0 and constants.", f, self.terms)
        if reads is None or len({read.index[self.axis] for read in reads}) != 1:
            reason = f"the terms of {self.terms!r} are not products with one place of {self.buffer!r} each"
            refuse(self, f"{reason}.", f, self.terms)
        place, size = reads[0].index[self.axis], sizes[self.axis]
        full = (*around, For(loop.var, Int(0), Int(most), ()))
        if not free_vars(place) <= {each.var for each in full}:
            refuse(self, f"which element of {self.buffer!r} is read depends on an inner loop.", f, self.terms)
        if not leaves_out_only(f, full, loop, place, size):
            reason = f"{self.terms!r} leaves out terms that are within {self.buffer!r}, or that cannot be followed"
            refuse(self, f"{reason}.", f, self.terms)
        low, high = interval_of(simplify(place), constant_bounds(full))
        before, after = max(0, -int(low)), max(0, int(high) - size + 1)
        wider = replace(b, shape=(*b.shape[: self.axis], Int(size + before + after), *b.shape[self.axis + 1 :]))

        def shifted(index: tuple[Expr, ...]) -> tuple[Expr, ...]:
            return (*index[: self.axis], simplify(add(index[self.axis], before)), *index[self.axis + 1 :])

        new = replace_loop(f, self.terms, (replace(loop, lo=Int(0), hi=Int(most)),))
        new = moved(new, {self.buffer: (self.buffer, shifted)})
        names = Names(f)
        zeros = [
            _zeros(names, wider, self.axis, first, count)
            for first, count in ((0, before), (before + size, after))
            if count
        ]
        return replace(new, buffers=tuple(wider if x is b else x for x in f.buffers), body=(*zeros, *new.body))


def _terms(loop: For, buffer: str) -> list[Load] | None:
    """What the terms of a sum read of a buffer; None unless all are added products of one such element."""
    found: list[Load] = []
    for n in walk(loop):
        match n:
            case Accumulate(_, _, "add", Binary("mul", Load(name) as read, _)) if name == buffer:
                found.append(read)
            case Accumulate(_, _, "add", Binary("mul", _, Load(name) as read)) if name == buffer:
                found.append(read)
            case Accumulate() | Store():
                return None
            case _:
                pass
    return found or None


def _zeros(names: Names, b: Buffer, axis: int, first: int, count: int) -> For:
    """Zeros in the `count` places of an axis from `first` on."""
    made = [Var(names.fresh(f"zero_{each}")) for each in range(len(b.shape))]
    index: tuple[Expr, ...] = tuple(add(v, first) if each == axis else v for each, v in enumerate(made))
    body: Block = (Store(b.name, index, Float(0.0)),)
    for each in reversed(range(len(made))):
        extent: Expr = Int(count) if each == axis else b.shape[each]
        nest: Stmt = For(made[each].name, Int(0), extent, body)
        body = (nest,)
    result = body[0]
    assert isinstance(result, For)
    return result

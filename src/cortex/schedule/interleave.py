"""Interleave: several temporaries side by side in one buffer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cortex.ilir.ir import Buffer, Func, Scope
from cortex.ir.scalar import Expr, Int
from cortex.ir.step import Step, step
from cortex.schedule.layout import moved, overruns, temporary, varies_inside
from cortex.schedule.locate import Names, refuse


@step
class Interleave(Step[Func]):
    """Store temporaries of one shape in one buffer, side by side in a new dimension at `axis`.

    before:  i[n, j] = ...; o[n, j] = ...
    after:   i_o[n, 0, j] = ...; i_o[n, 1, j] = ...                    (axis=1)
             i_o[n, j, 0] = ...; i_o[n, j, 1] = ...                    (axis=2, an array of structures)
    legal:   the buffers are scratch, of one type and shape; a dimension that depends on the request stays first;
             with the new dimension last, rows are not used beyond their last element. Weights are interleaved by
             Pack.
    """

    buffers: tuple[str, ...]
    axis: int = 1

    def apply(self, f: Func) -> Func:
        """`f` with the buffers made one."""
        found = [temporary(self, f, name) for name in self.buffers]
        if len(set(self.buffers)) != len(self.buffers) or len(found) < 2:
            refuse(self, "name at least two buffers, each once.", f, "")
        first = found[0]
        for b in found[1:]:
            if (b.shape, b.dtype, b.align) != (first.shape, first.dtype, first.align):
                refuse(self, f"{b.name!r} and {first.name!r} have different shapes.", f, "")
        if not 0 <= self.axis <= len(first.shape):
            refuse(self, f"the axis must be between 0 and {len(first.shape)}.", f, "")
        shape = (*first.shape[: self.axis], Int(len(found)), *first.shape[self.axis :])
        if varies_inside(shape):
            refuse(self, f"the first dimension of {first.name!r} depends on the request and must stay first.", f, "")
        last = self.axis == len(first.shape)
        if last and any(overruns(f, b) for b in found):
            refuse(self, "the rows of a buffer are used beyond their last element.", f, "")
        name = Names(f).fresh("_".join(self.buffers))
        new = Buffer(name, first.dtype, shape, Scope.SCRATCH, 1 if last else first.align)
        buffers = tuple(new if b is first else b for b in f.buffers if b is first or b.name not in self.buffers)
        places = {b.name: (name, _Insert(self.axis, number)) for number, b in enumerate(found)}
        return moved(replace(f, buffers=buffers), places)


@dataclass(frozen=True)
class _Insert:
    """Adds the dimension of the interleaved buffers to an index."""

    axis: int
    number: int

    def __call__(self, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return (*index[: self.axis], Int(self.number), *index[self.axis :])

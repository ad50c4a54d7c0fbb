"""Layout: the order of a temporary's dimensions in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from cortex.ilir.ir import Accumulate, Buffer, Func, Scope, Store
from cortex.ir.node import Node, rewrite
from cortex.ir.polynomial import expand, interval
from cortex.ir.scalar import Expr, Int, Load
from cortex.ir.simplify import simplify
from cortex.ir.step import Step, step
from cortex.poly.accesses import accesses
from cortex.schedule.around import constant_bounds
from cortex.schedule.locate import refuse


@step
class Layout(Step[Func]):
    """Store a temporary with its dimensions in another order; `order` names the old ones, outermost first.

    before:  t[n, i, j] = ...                  t has num_nodes x 4 x 8 elements
    after:   t[n, j, i] = ...                  t has num_nodes x 8 x 4            (order=(0, 2, 1))
    legal:   the buffer is scratch; a dimension that depends on the request stays first; rows are not used beyond
             their last element, as vectorized loops may do. Weights are laid out by Pack.
    """

    buffer: str
    order: tuple[int, ...]

    def apply(self, f: Func) -> Func:
        """`f` with the buffer laid out anew."""
        b = temporary(self, f, self.buffer)
        if sorted(self.order) != list(range(len(b.shape))):
            refuse(self, f"{self.buffer!r} has dimensions {tuple(range(len(b.shape)))}; name each once.", f, "")
        if varies_inside(tuple(b.shape[axis] for axis in self.order)):
            refuse(self, f"the first dimension of {self.buffer!r} depends on the request and must stay first.", f, "")
        if self.order[-1] != len(b.shape) - 1 and overruns(f, b):
            refuse(self, f"the rows of {self.buffer!r} are used beyond their last element.", f, "")

        def move(index: tuple[Expr, ...]) -> tuple[Expr, ...]:
            return tuple(index[axis] for axis in self.order)

        new = replace(b, shape=move(b.shape))
        buffers = tuple(new if x is b else x for x in f.buffers)
        return moved(replace(f, buffers=buffers), {self.buffer: (self.buffer, move)})


def temporary(asked: object, f: Func, name: str) -> Buffer:
    """The scratch buffer called `name`; a refusal when there is none."""
    b = next((b for b in f.buffers if b.name == name), None)
    if b is None or b.scope is not Scope.SCRATCH:
        refuse(asked, f"{name!r} is not a temporary.", f, "")
    return b


def varies_inside(shape: tuple[Expr, ...]) -> bool:
    """Does a dimension after the first depend on the request? Memory is made for constant rows."""
    return any(not isinstance(extent, Int) for extent in shape[1:])


def overruns(f: Func, b: Buffer) -> bool:
    """May an access be beyond the last dimension, in the padding of a row?"""
    if b.align == 1 or not b.shape:
        return False
    last = b.shape[-1]
    return not isinstance(last, Int) or any(
        interval(expand(a.index[-1], simplify), constant_bounds(a.loops))[1] > last.value - 1
        for a in accesses(f.body)
        if a.buffer == b.name
    )


def moved(f: Func, places: Mapping[str, tuple[str, Callable[[tuple[Expr, ...]], tuple[Expr, ...]]]]) -> Func:
    """`f` with every access of a buffer moved to another buffer, at another index."""

    def move(n: Node) -> Node:
        match n:
            case Load() | Store() | Accumulate() if n.buffer in places:
                name, index = places[n.buffer]
                return replace(n, buffer=name, index=index(n.index))
            case _:
                return n

    return replace(f, body=tuple(rewrite(s, move) for s in f.body))

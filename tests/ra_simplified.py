"""A graph of one kind, simplified: what the tests of the rules look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ra_models import f32, with_kind

from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.ir import (
    Each,
    Fact,
    Field,
    Fill,
    State,
)
from cortex.ra.simplify import simplify
from cortex.ra.verify import verify

EACH = (Each("kids"),)
Body = Callable[[Builder], "str | tuple[str, ...]"]

SKELETON = ir.Model(
    "rules",
    (
        ir.ParamDecl("W", f32(6, 4)),
        ir.ParamDecl("V", f32(4, 8)),
        ir.ParamDecl("T", f32(4, 8, 8)),
        ir.ParamDecl("b", f32(6)),
        ir.ParamDecl("a", f32(4)),
    ),
    (ir.FieldDecl("x", f32(4)), ir.FieldDecl("y", f32(6)), ir.FieldDecl("word", ir.TensorType((), "i64"), 6)),
    ("left", "right"),
    ("kids",),
    (ir.StateDecl("h", f32(4)),),
    (),
)


def model(body: Body, *guard: Fact) -> ir.Model:
    """A model of one kind, whose results are whatever `body` returns."""

    def results(b: Builder) -> tuple[str, ...]:
        made = body(b)
        return (made,) if isinstance(made, str) else made

    m = with_kind(SKELETON, "any", guard, results)
    types = {let.name: let.type for let in m.kinds[0].lets}
    states = [ir.StateDecl(f"s{i}", types[r]) for i, r in enumerate(m.kinds[0].results)]
    return replace(m, states=(SKELETON.states[0], *states), kinds=(_with_h(m.kinds[0]),))


def _with_h(kind: ir.Kind) -> ir.Kind:
    h = ir.Let("h", Fill(0.0, (4,)), f32(4))
    return replace(kind, lets=(h, *kind.lets), results=("h", *kind.results))


class Simplified:
    """The graph after simplification, as expressions: ops whose operands are shown in place."""

    def __init__(self, body: Body, *guard: Fact) -> None:
        m = model(body, *guard)
        verify(m)
        simple = simplify(m)
        verify(simple)
        self.kind = simple.kinds[0]
        self.lets = {let.name: let for let in self.kind.lets}
        self.ops = [let.op for let in self.kind.lets[1:]]

    def result(self, i: int = 0) -> ir.Op:
        return self.lets[self.kind.results[i + 1]].op

    def op(self, name: str) -> ir.Op:
        return self.lets[name].op

    def let(self, op: ir.Op) -> str:
        """The let whose op is `op`."""
        return next(name for name, let in self.lets.items() if let.op == op)

    def count(self, cls: type) -> int:
        return sum(isinstance(op, cls) for op in self.ops)


def x(b: Builder) -> str:
    return b.add(Field("x"))


def h_k(b: Builder) -> str:
    return b.add(State("h", EACH))

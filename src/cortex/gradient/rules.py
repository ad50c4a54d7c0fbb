"""The adjoints of operands, one rule for each op of RA.

    pull_back(let, g, tape)        g is the adjoint of `let`; what follows for its operands is given to the tape

Ties of a maximum share the adjoint equally. A maximum of a value and a constant, which is what relu is, gives nothing
to the value where the two are equal.
"""

from __future__ import annotations

from math import prod
from typing import assert_never

from cortex.errors import InternalError
from cortex.gradient.refuse import refuse
from cortex.gradient.tape import Part, Tape
from cortex.ra import ir
from cortex.ra.shapes import terms


def pull_back(let: ir.Let, g: str, t: Tape) -> None:
    """Give the operands of `let` their part of its adjoint `g`."""
    match let.op:
        case ir.Param() | ir.Field() | ir.State() | ir.Arity() | ir.Fill():
            return
        case ir.Unary(fn, x):
            if t.wants(x):
                t.give(x, _unary(fn, x, let.name, g, t))
        case ir.Binary(fn, x, y):
            _binary(let, fn, x, y, g, t)
        case ir.Where(cond, x, y):
            zero = t.add(ir.Fill(0.0, ()))
            if t.wants(x):
                _give_reduced(x, t.add(ir.Where(t.value(cond), g, zero)), t)
            if t.wants(y):
                _give_reduced(y, t.add(ir.Where(t.value(cond), zero, g)), t)
        case ir.Cast(x):
            if t.wants(x):
                t.give(x, g)
        case ir.Contract(spec, x, y):
            tx, ty, out = terms(spec)
            if t.wants(x):
                t.give(x, contracted(x, tx, y, ty, out, g, t))
            if t.wants(y):
                t.give(y, contracted(y, ty, x, tx, out, g, t))
        case ir.Reduce(fn, x, axes):
            if t.wants(x):
                t.give(x, _reduced(let, fn, x, axes, g, t))
        case ir.OverChildren(fn, x):
            if t.wants(x):
                t.give(x, edge_adjoint(fn, x, let.name, g, t))
        case ir.Concat(xs, axis):
            at = 0
            for x in xs:
                extent = t.shape(x)[axis]
                if t.wants(x):
                    ranges = tuple((at, at + extent, 1) if a == axis else (0, n, 1) for a, n in enumerate(t.shape(x)))
                    t.give(x, t.add(ir.Slice(g, ranges)))
                at += extent
        case ir.Slice(x, ranges):
            if t.wants(x):
                t.give(x, Part(ranges, g))
        case ir.Reshape(x):
            if t.wants(x):
                t.give(x, t.add(ir.Reshape(g, t.shape(x))))
        case ir.Transpose(x, perm):
            if t.wants(x):
                t.give(x, t.add(ir.Transpose(g, tuple(perm.index(a) for a in range(len(perm))))))
        case ir.Broadcast(x):
            if t.wants(x):
                _give_reduced(x, g, t)
        case ir.Lookup(table):
            if t.wants(table):
                refuse("a row of a computed table", let.span)
        case _:
            assert_never(let.op)


def share_among_ties(fn: str, x: str, result: str, g: str, t: Tape) -> str:
    """What each edge gets of the adjoint of a reduction over children: all of a sum, an equal share of a maximum."""
    if fn == "add":
        return g
    over = t.lets[x].over
    if over is None:
        raise InternalError(f"{x!r} is reduced over children, but is no value per edge")
    count = t.add(ir.OverChildren("add", t.add(ir.Cast(_is_result(x, result, t), "f32")), over))
    return t.add(ir.Binary("div", g, t.add(ir.Binary("max", count, t.add(ir.Fill(1.0, ()))))))


def edge_adjoint(fn: str, x: str, result: str, g: str, t: Tape) -> str:
    """The adjoint of the value `x` of an edge, from that of its reduction over children."""
    share = share_among_ties(fn, x, result, g, t)
    return share if fn == "add" else masked(x, result, share, t)


def masked(x: str, result: str, share: str, t: Tape) -> str:
    """`share` where `x` is the result of a maximum or minimum, else 0."""
    return t.add(ir.Where(_is_result(x, result, t), share, t.add(ir.Fill(0.0, ()))))


def _is_result(x: str, result: str, t: Tape) -> str:
    return t.add(ir.Binary("eq", t.value(x), t.value(result)))


def _unary(fn: str, x: str, result: str, g: str, t: Tape) -> str:
    def mul(a: str, b: str) -> str:
        return t.add(ir.Binary("mul", a, b))

    match fn:
        case "neg":
            return t.add(ir.Unary("neg", g))
        case "abs":
            zero = t.add(ir.Fill(0.0, ()))
            value = t.value(x)
            negative = t.add(ir.Where(t.add(ir.Binary("lt", value, zero)), t.add(ir.Unary("neg", g)), zero))
            return t.add(ir.Where(t.add(ir.Binary("gt", value, zero)), g, negative))
        case "exp":
            return mul(g, t.value(result))
        case "log":
            return t.add(ir.Binary("div", g, t.value(x)))
        case "sqrt":
            return t.add(ir.Binary("div", g, mul(t.value(result), t.add(ir.Fill(2.0, ())))))
        case "tanh":
            y = t.value(result)
            return mul(g, t.add(ir.Binary("sub", t.add(ir.Fill(1.0, ())), mul(y, y))))
        case "sigmoid":
            y = t.value(result)
            return mul(mul(g, y), t.add(ir.Binary("sub", t.add(ir.Fill(1.0, ())), y)))
        case _:
            raise InternalError(f"no adjoint of {fn!r}")


def _binary(let: ir.Let, fn: str, x: str, y: str, g: str, t: Tape) -> None:
    match fn:
        case "add":
            for operand in (x, y):
                if t.wants(operand):
                    _give_reduced(operand, g, t)
        case "sub":
            if t.wants(x):
                _give_reduced(x, g, t)
            if t.wants(y):
                _give_reduced(y, t.add(ir.Unary("neg", g)), t)
        case "mul":
            if t.wants(x):
                _give_reduced(x, t.add(ir.Binary("mul", g, t.value(y))), t)
            if t.wants(y):
                _give_reduced(y, t.add(ir.Binary("mul", g, t.value(x))), t)
        case "div":
            part = t.add(ir.Binary("div", g, t.value(y)))
            if t.wants(x):
                _give_reduced(x, part, t)
            if t.wants(y):
                whole = t.add(ir.Binary("mul", part, t.value(let.name)))
                _give_reduced(y, t.add(ir.Unary("neg", whole)), t)
        case "min" | "max":
            _give_extreme(fn, x, y, g, t)
        case _:
            return  # comparisons have no adjoint


def _give_extreme(fn: str, x: str, y: str, g: str, t: Tape) -> None:
    zero = t.add(ir.Fill(0.0, ()))
    both = t.wants(x) and t.wants(y)
    tie = zero
    if both:
        half = t.add(ir.Binary("mul", g, t.add(ir.Fill(0.5, ()))))
        tie = t.add(ir.Where(t.add(ir.Binary("eq", t.value(x), t.value(y))), half, zero))
    for a, b in ((x, y), (y, x)):
        if t.wants(a):
            is_chosen = t.add(ir.Binary("gt" if fn == "max" else "lt", t.value(a), t.value(b)))
            _give_reduced(a, t.add(ir.Where(is_chosen, g, tie)), t)


def _give_reduced(x: str, g: str, t: Tape) -> None:
    """Give `x` the adjoint of what it was broadcast to."""
    t.give(x, reduced_to(t.shape(x), g, t))


def reduced_to(shape: tuple[int, ...], g: str, t: Tape) -> str:
    """The sum of `g` over the axes along which a value of `shape` was repeated."""
    have = t.builder.types[g].shape
    if have == shape:
        return g
    extra = len(have) - len(shape)
    if extra < 0 or any(n != 1 and n != have[extra + a] for a, n in enumerate(shape)):
        return t.add(ir.Broadcast(g, shape))
    axes = tuple(a for a in range(len(have)) if a < extra or (shape[a - extra] == 1 and have[a] != 1))
    summed = t.add(ir.Reduce("add", g, axes)) if axes else g
    return summed if t.builder.types[summed].shape == shape else t.add(ir.Reshape(summed, shape))


def contracted(x: str, tx: str, y: str, ty: str, out: str, g: str, t: Tape) -> str:
    """The adjoint of operand `x` of a contraction with `y`; letters that only `x` has are summed over: repeated."""
    found = "".join(c for c in tx if c in out or c in ty)
    product = t.add(ir.Contract(f"{out},{ty}->{found}", g, t.value(y)))
    if found == tx:
        return product
    shape = t.shape(x)
    ones = tuple(n if c in found else 1 for c, n in zip(tx, shape, strict=True))
    return t.add(ir.Broadcast(t.add(ir.Reshape(product, ones)), shape))


def _reduced(let: ir.Let, fn: str, x: str, axes: tuple[int, ...], g: str, t: Tape) -> str:
    shape = t.shape(x)
    ones = tuple(1 if a in axes else n for a, n in enumerate(shape))
    if fn == "add":
        return t.add(ir.Broadcast(t.add(ir.Reshape(g, ones)), shape))
    best = t.add(ir.Reshape(t.value(let.name), ones))
    equal = t.add(ir.Cast(t.add(ir.Binary("eq", t.value(x), best)), "f32"))
    share = t.add(ir.Binary("div", g, t.add(ir.Reduce("add", equal, axes)))) if prod(shape) else g
    return t.add(ir.Binary("mul", equal, t.add(ir.Reshape(share, ones))))

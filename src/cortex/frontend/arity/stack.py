"""Ops on stacks: what is computed for all parts at once is computed for each part.

before:  y = tanh(stack(a, b)); m = stack(a, b) @ W; s = sum of stack(a, b) over its first axis
after:   y = stack(tanh(a), tanh(b)); m = stack(a @ W, b @ W); s = a + b

A part keeps the axis along which it is stacked. What is not a stack, but as long along that axis, is sliced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from cortex.frontend.arity.values import FoldFn, NotAlike, Stack, Value
from cortex.ra import ir
from cortex.ra.rules.graph import full_range
from cortex.ra.shapes import operand_names, terms

if TYPE_CHECKING:
    from cortex.frontend.arity.roll import Rolling


def through_stack(r: Rolling, op: ir.Op, operands: Mapping[str, Value]) -> Value:
    """The value of `op`, of whose operands some are stacks."""
    match op:
        case ir.Unary() | ir.Binary() | ir.Where() | ir.Cast():
            return _pointwise(r, op, operands)
        case ir.Contract():
            return _contract(r, op, operands)
        case ir.Concat():
            return _concat(r, op, operands)
        case ir.Reduce(fn, x, axes):
            s = _stack(operands[x])
            parts = [r.apply(op, {x: part}) for part in s.parts]
            if s.axis in axes:
                return _folded(r, fn, parts)
            return Stack(s.axis - sum(a < s.axis for a in axes), tuple(parts), s.extents)
        case ir.Slice(x):
            return _slice(r, op, _stack(operands[x]))
        case ir.Reshape(x):
            return _reshape(r, op, _stack(operands[x]))
        case ir.Transpose(x, perm):
            s = _stack(operands[x])
            return Stack(perm.index(s.axis), tuple(r.apply(op, {x: part}) for part in s.parts), s.extents)
        case ir.Broadcast(x, shape):
            s = _stack(operands[x])
            axis = len(shape) - (len(r.shape(s)) - s.axis)
            return _each(r, op, s, axis, s.extents)
        case _:
            raise NotAlike(f"a stack of children's values is read by a {type(op).__name__}")


def _stack(value: Value) -> Stack:
    assert isinstance(value, Stack)
    return value


def _first_stack(operands: Iterable[Value]) -> Stack:
    return next(v for v in operands if isinstance(v, Stack))


def _pointwise(r: Rolling, op: ir.Op, operands: Mapping[str, Value]) -> Value:
    """Operands broadcast, so axes are counted from the last one."""
    s = _first_stack(operands[x] for x in operand_names(op))
    from_last = len(r.shape(s)) - s.axis
    pieces: dict[str, tuple[Value, ...]] = {}
    for x, v in operands.items():
        shape = r.shape(v)
        axis = len(shape) - from_last
        repeated = axis < 0 or shape[axis] == 1
        pieces[x] = (v,) * len(s.parts) if repeated else _pieces(r, v, axis, s.extents)
    parts = _zipped(r, op, pieces)
    rank = max(len(r.shape(v)) for v in operands.values())
    return Stack(rank - from_last, parts, s.extents)


def _contract(r: Rolling, op: ir.Contract, operands: Mapping[str, Value]) -> Value:
    tx, ty, out = terms(op.spec)
    s, letter = next(
        (v, term[v.axis]) for v, term in ((operands[op.x], tx), (operands[op.y], ty)) if isinstance(v, Stack)
    )
    pieces: dict[str, tuple[Value, ...]] = {}
    for name, v, term in (("x", operands[op.x], tx), ("y", operands[op.y], ty)):
        whole = letter not in term
        pieces[name] = (v,) * len(s.parts) if whole else _pieces(r, v, term.index(letter), s.extents)
    parts = _zipped(r, ir.Contract(op.spec, "x", "y"), pieces)
    return Stack(out.index(letter), parts, s.extents) if letter in out else _folded(r, "add", parts)


def _concat(r: Rolling, op: ir.Concat, operands: Mapping[str, Value]) -> Value:
    values = [operands[x] for x in op.xs]
    if not r.unstack_all and not any(isinstance(v, Stack) and v.axis == op.axis for v in values):
        s = _first_stack(values)
        names = tuple(str(i) for i in range(len(values)))
        pieces = {name: _pieces(r, v, s.axis, s.extents) for name, v in zip(names, values, strict=True)}
        return Stack(s.axis, _zipped(r, ir.Concat(names, op.axis), pieces), s.extents)
    parts: list[Value] = []
    extents: list[int] = []
    for v in values:
        inside = isinstance(v, Stack) and v.axis == op.axis
        parts += v.parts if isinstance(v, Stack) and inside else (v,)
        extents += v.extents if isinstance(v, Stack) and inside else (r.shape(v)[op.axis],)
    return Stack(op.axis, tuple(parts), tuple(extents))


def _slice(r: Rolling, op: ir.Slice, s: Stack) -> Value:
    start, stop, step = op.ranges[s.axis]
    if step != 1 and set(s.extents) != {1}:
        raise NotAlike("every so many elements of a stack of children's values are taken")
    parts: list[Value] = []
    extents: list[int] = []
    offset = 0
    is_along = all(a == s.axis or op.ranges[a] == full_range(n) for a, n in enumerate(r.shape(s)))
    for part, extent in zip(s.parts, s.extents, strict=True):
        low, high = max(start - offset, 0), min(stop - offset, extent)
        if is_along and (low, high, step) == (0, extent, 1):
            parts.append(part)
            extents.append(extent)
        elif low < high and (step == 1 or (offset - start) % step == 0):
            ranges = (*op.ranges[: s.axis], (low, high, 1), *op.ranges[s.axis + 1 :])
            parts.append(r.apply(replace(op, ranges=ranges), {op.x: part}))
            extents.append(high - low)
        offset += extent
    if not parts:
        raise NotAlike("nothing of a stack of children's values is taken")
    return parts[0] if len(parts) == 1 else Stack(s.axis, tuple(parts), tuple(extents))


def _reshape(r: Rolling, op: ir.Reshape, s: Stack) -> Value:
    """The stacked axis stays one, or, with nothing before it, its parts become runs of another axis."""
    old, new = r.shape(s), op.shape
    before = prod(old[: s.axis])
    for axis, extent in enumerate(new):
        if prod(new[:axis]) == before and extent == old[s.axis]:
            return _each(r, op, s, axis, s.extents)
    sizes = [extent * prod(old[s.axis + 1 :]) for extent in s.extents]
    for axis, extent in enumerate(new):
        inner = prod(new[axis + 1 :])
        if before == 1 and extent > 1 and prod(new[:axis]) == 1 and inner and not any(size % inner for size in sizes):
            return _each(r, op, s, axis, tuple(size // inner for size in sizes))
    raise NotAlike(f"a stack of children's values of shape {old} is reshaped to {new}")


def _each(r: Rolling, op: ir.Reshape | ir.Broadcast, s: Stack, axis: int, extents: tuple[int, ...]) -> Stack:
    """`op` on every part, which takes extents[i] of `axis` of the result."""
    shapes = ((*op.shape[:axis], extent, *op.shape[axis + 1 :]) for extent in extents)
    parts = (r.apply(replace(op, shape=shape), {op.x: part}) for part, shape in zip(s.parts, shapes, strict=True))
    return Stack(axis, tuple(parts), extents)


def _pieces(r: Rolling, value: Value, axis: int, extents: tuple[int, ...]) -> tuple[Value, ...]:
    """`value` cut along `axis`."""
    value = r.settled(value)
    match value:
        case Stack(own, parts, own_extents) if own == axis:
            if own_extents != extents:
                raise NotAlike("two stacks of children's values are cut at different places")
            return parts
        case Stack(own, parts, own_extents):
            cut = [_pieces(r, part, axis, extents) for part in parts]
            return tuple(Stack(own, pieces, own_extents) for pieces in zip(*cut, strict=True))
    shape = r.shape(value)
    found: list[Value] = []
    offset = 0
    for extent in extents:
        ranges = tuple((offset, offset + extent, 1) if a == axis else full_range(n) for a, n in enumerate(shape))
        found.append(r.apply(ir.Slice("x", ranges), {"x": value}))
        offset += extent
    return tuple(found)


def _zipped(r: Rolling, op: ir.Op, pieces: Mapping[str, tuple[Value, ...]]) -> tuple[Value, ...]:
    count = len(next(iter(pieces.values())))
    return tuple(r.apply(op, {x: cut[i] for x, cut in pieces.items()}) for i in range(count))


def _folded(r: Rolling, fn: FoldFn, parts: Iterable[Value]) -> Value:
    """The parts combined in order."""
    first, *others = parts
    for other in others:
        first = r.apply(ir.Binary(fn, "x", "y"), {"x": first, "y": other})
    return first

"""Reading the value of a let at an index: views become index arithmetic, the rest a load.

A let that computes is *stored* in a buffer of its own; leaves (params, fields, states), views (slice, reshape,
transpose, broadcast, lookup), everything that is not f32, and the heads of sums over children (see stages.py) are
read in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from cortex.errors import InternalError
from cortex.ir.scalar import Binary, Cast, Expr, Float, Index, Int, Load, Select, Unary, dtype_of
from cortex.ir.simplify import add, floordiv, mod, mul, sub
from cortex.lower.places import Place
from cortex.ra import ir as ra

VIEWS = (ra.Param, ra.Field, ra.State, ra.Arity, ra.Fill, ra.Slice, ra.Reshape, ra.Transpose, ra.Broadcast, ra.Lookup)


def is_stored(let: ra.Let) -> bool:
    """Does the let get a buffer?"""
    return not isinstance(let.op, VIEWS) and let.type.dtype == "f32"


@dataclass(frozen=True)
class Reader:
    """Reads lets of one kind from rows of one place. `buffers` names the buffer of each stored let."""

    lets: Mapping[str, ra.Let]
    buffers: Mapping[str, str]
    place: Place

    def __call__(self, name: str, index: tuple[Expr, ...], row: Expr) -> Expr:
        """The value of let `name` at `index`, seen from `row`."""
        let = self.lets[name]
        if name in self.buffers:
            at = self.place.node(row) if let.over is None else row
            return Load(self.buffers[name], (at, *index))
        match let.op:
            case ra.Param(param):
                return Load(param, index)
            case ra.Field(field, path):
                node = self.reach(path, row)
                if let.type.dtype == "i64":
                    return Index(f"field_{field}", (node,))
                return Load(f"field_{field}", (node, *index))
            case ra.State(state, path):
                return Load(state_buffer(state), (self.reach(path, row), *index))
            case ra.Arity(relation):
                return Cast(arity(relation, self.place.node(row)), "f32")
            case ra.Fill(value, _):
                return Float(value) if let.type.dtype == "f32" else Int(int(value))
            case ra.Slice(x, ranges):
                return self(x, slice_index(ranges, index), row)
            case ra.Transpose(x, perm):
                moved = dict(zip(perm, index, strict=True))
                return self(x, tuple(moved[axis] for axis in range(len(perm))), row)
            case ra.Broadcast(x, _):
                return self(x, broadcast_index(self.lets[x].type.shape, index), row)
            case ra.Reshape(x, shape):
                return self(x, reshape_index(shape, self.lets[x].type.shape, index), row)
            case ra.Lookup(table, place):
                return self(table, (self(place, (), row), *index), row)
            case ra.Unary() | ra.Binary() | ra.Where() | ra.Cast():
                return self.pointwise(let, index, row)
            case ra.Contract() | ra.Reduce() | ra.OverChildren() | ra.Concat():
                raise InternalError(f"let {name}: {type(let.op).__name__} of {let.type.dtype} values cannot be lowered")
            case _:
                assert_never(let.op)

    def pointwise(self, let: ra.Let, index: tuple[Expr, ...], row: Expr) -> Expr:
        """The expression of a pointwise let over the values of its operands."""

        def operand(x: str) -> Expr:
            return self(x, broadcast_index(self.lets[x].type.shape, index), row)

        match let.op:
            case ra.Unary(fn, x):
                return Unary(fn, operand(x))
            case ra.Binary(fn, x, y):
                return Binary(fn, operand(x), operand(y))
            case ra.Where(cond, x, y):
                return Select(operand(cond), operand(x), operand(y))
            case ra.Cast(x, dtype):
                value = operand(x)
                return value if dtype_of(value) == dtype else Cast(value, dtype)
            case _:
                raise InternalError(f"let {let.name} is not pointwise")

    def reach(self, path: tuple[ra.Hop, ...], row: Expr) -> Expr:
        """The id of the node at the end of `path`."""
        if path and isinstance(path[0], ra.Each):
            node: Expr = Index(f"{path[0].name}_child", (row,))
            path = path[1:]
        else:
            node = self.place.node(row)
        for hop in path:
            match hop:
                case ra.Slot(name):
                    node = Index(f"child_{name}", (node,))
                case ra.Item(name, index):
                    node = Index(f"{name}_child", (add(Index(f"{name}_ptr", (node,)), index),))
                case ra.Each(name):
                    raise InternalError(f"'each of {name}' below another hop")
                case _:
                    assert_never(hop)
        return node


def state_buffer(state: str) -> str:
    """The buffer of a state at every node."""
    return f"state_{state}"


def arity(relation: str, node: Expr) -> Expr:
    """The number of children of `node` in a list relation."""
    ptr = f"{relation}_ptr"
    return sub(Index(ptr, (add(node, 1),)), Index(ptr, (node,)))


def broadcast_index(shape: tuple[int, ...], index: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The index into an operand of `shape` that NumPy broadcasting pairs with `index` of the result."""
    tail = index[len(index) - len(shape) :]
    return tuple(Int(0) if extent == 1 else i for extent, i in zip(shape, tail, strict=True))


def slice_index(ranges: tuple[tuple[int, int, int], ...], index: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The index into the sliced array of the element that `index` names in the slice."""
    return tuple(add(mul(i, step), start) for i, (start, _, step) in zip(index, ranges, strict=True))


def reshape_index(shape: tuple[int, ...], source: tuple[int, ...], index: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The index into `source` of the element that `index` names in the reshaped array.

    Axes of equal extent at the front and at the back are passed through, and so are axes of extent 1, so that the
    common reshapes need no division.
    """
    if not source:
        return ()
    front = _common(shape, source)
    back = _common(shape[front:][::-1], source[front:][::-1])
    inner, goal = shape[front : len(shape) - back], source[front : len(source) - back]
    flat: Expr = Int(0)
    for extent, i in zip(inner, index[front : len(index) - back], strict=True):
        flat = add(mul(flat, extent), i) if extent != 1 else flat
    middle: list[Expr] = []
    rest = [extent for extent in goal if extent != 1]
    for extent in goal:
        if extent == 1:
            middle.append(Int(0))
            continue
        rest.pop(0)
        below = 1
        for r in rest:
            below *= r
        outermost = all(m == Int(0) for m in middle)
        quotient = floordiv(flat, below) if below != 1 else flat
        middle.append(quotient if outermost else mod(quotient, extent))
    return (*index[:front], *middle, *index[len(index) - back :])


def _common(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count

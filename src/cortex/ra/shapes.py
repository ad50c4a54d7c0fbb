"""Result types: the one definition of which operands an op accepts and what type its value has.

    infer(op, types, declared) -> TensorType

`types` gives the types of the lets the op may name; `declared` those of the model's parameters, fields and
states. A wrong op raises `InternalError`: users' mistakes are found by the front end, before there is an op.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import assert_never

from cortex.errors import InternalError
from cortex.ra import ir

COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
CONNECTIVES = frozenset({"and", "or"})


@dataclass(frozen=True)
class Declared:
    """The types that a model's declarations give to names outside the graphs."""

    params: Mapping[str, ir.TensorType]
    fields: Mapping[str, ir.TensorType]
    states: Mapping[str, ir.TensorType]
    lists: tuple[str, ...]
    relations: tuple[str, ...] | None = None
    """All of them, if they are known."""
    infinite: frozenset[str] = frozenset()
    """Parameters with elements that are infinite or NaN."""

    @staticmethod
    def of(m: ir.Model) -> Declared:
        """The declarations of `m`."""
        return Declared(
            {p.name: p.type for p in m.params},
            {f.name: f.type for f in m.fields},
            {s.name: s.type for s in m.states},
            m.lists,
            (*m.slots, *m.lists),
            frozenset(p.name for p in m.params if not p.is_finite),
        )


def infer(op: ir.Op, types: Mapping[str, ir.TensorType], declared: Declared) -> ir.TensorType:
    """The type of the value of `op`."""
    match op:
        case ir.Param(name):
            return _named(declared.params, name, "parameter")
        case ir.Field(name):
            return _named(declared.fields, name, "field")
        case ir.State(name):
            return _named(declared.states, name, "state")
        case ir.Arity(name):
            _require(name in declared.lists, op, f"the lists are {declared.lists}")
            return ir.TensorType(())
        case ir.Fill(_, shape):
            return ir.TensorType(shape)
        case ir.Unary(fn, x):
            t = _operand(types, x)
            _require(t.dtype == "f32" or (fn in ("neg", "abs") and t.dtype == "i64"), op, f"the operand is {t.dtype}")
            return t
        case ir.Binary(fn, x, y):
            return _binary(op, fn, _operand(types, x), _operand(types, y))
        case ir.Where(cond, x, y):
            tc, tx, ty = _operand(types, cond), _operand(types, x), _operand(types, y)
            _require(
                tc.dtype == "bool" and tx.dtype == ty.dtype, op, f"operands are {tc.dtype}, {tx.dtype}, {ty.dtype}"
            )
            return ir.TensorType(broadcast(op, broadcast(op, tc.shape, tx.shape), ty.shape), tx.dtype)
        case ir.Cast(x, dtype):
            return ir.TensorType(_operand(types, x).shape, dtype)
        case ir.Contract(spec, x, y):
            return _contract(op, spec, _operand(types, x), _operand(types, y))
        case ir.Reduce(_, x, axes):
            t = _operand(types, x)
            ordered = tuple(sorted(set(axes)))
            _require(ordered == axes and all(0 <= a < len(t.shape) for a in axes), op, f"axes of a value of {t.shape}")
            _require(t.dtype != "bool", op, "bool has no reductions")
            return ir.TensorType(tuple(n for a, n in enumerate(t.shape) if a not in axes), t.dtype)
        case ir.OverChildren(_, x, name):
            t = _operand(types, x)
            _require(name in declared.lists, op, f"the lists are {declared.lists}")
            _require(t.dtype != "bool", op, "bool has no reductions")
            return t
        case ir.Concat(xs, axis):
            return _concat(op, [_operand(types, x) for x in xs], axis)
        case ir.Slice(x, ranges):
            t = _operand(types, x)
            _require(len(ranges) == len(t.shape), op, f"a value of {t.shape} needs one range per axis")
            for (start, stop, step), n in zip(ranges, t.shape, strict=True):
                _require(0 <= start <= stop <= n and step >= 1, op, f"range {start}:{stop}:{step} of an axis of {n}")
            return ir.TensorType(tuple(len(range(*r)) for r in ranges), t.dtype)
        case ir.Reshape(x, shape):
            t = _operand(types, x)
            _require(prod(shape) == prod(t.shape), op, f"a value of {t.shape} has another number of elements")
            return ir.TensorType(shape, t.dtype)
        case ir.Transpose(x, perm):
            t = _operand(types, x)
            _require(sorted(perm) == list(range(len(t.shape))), op, f"not a permutation of the axes of {t.shape}")
            return ir.TensorType(tuple(t.shape[p] for p in perm), t.dtype)
        case ir.Broadcast(x, shape):
            t = _operand(types, x)
            _require(broadcast(op, t.shape, shape) == shape, op, f"a value of {t.shape} does not broadcast to it")
            return ir.TensorType(shape, t.dtype)
        case ir.Lookup(table, index):
            t, i = _operand(types, table), _operand(types, index)
            _require(len(t.shape) >= 1, op, "the table is a scalar")
            _require(i == ir.TensorType((), "i64"), op, f"the index is {i}, not an i64 scalar")
            return ir.TensorType(t.shape[1:], t.dtype)
        case _:
            assert_never(op)


def operand_names(op: ir.Op) -> tuple[str, ...]:
    """The lets that `op` reads, left to right."""
    match op:
        case ir.Param() | ir.Field() | ir.State() | ir.Arity() | ir.Fill():
            return ()
        case ir.Unary(_, x) | ir.Cast(x) | ir.Reduce(_, x) | ir.OverChildren(_, x):
            return (x,)
        case ir.Slice(x) | ir.Reshape(x) | ir.Transpose(x) | ir.Broadcast(x):
            return (x,)
        case ir.Binary(_, x, y) | ir.Contract(_, x, y) | ir.Lookup(x, y):
            return (x, y)
        case ir.Where(cond, x, y):
            return (cond, x, y)
        case ir.Concat(xs):
            return xs
        case _:
            assert_never(op)


def rename_operands(op: ir.Op, names: Mapping[str, str]) -> ir.Op:
    """`op` reading `names[x]` wherever it read `x`."""
    match op:
        case ir.Param() | ir.Field() | ir.State() | ir.Arity() | ir.Fill():
            return op
        case ir.Unary(fn, x):
            return ir.Unary(fn, names[x])
        case ir.Binary(fn, x, y):
            return ir.Binary(fn, names[x], names[y])
        case ir.Where(cond, x, y):
            return ir.Where(names[cond], names[x], names[y])
        case ir.Cast(x, dtype):
            return ir.Cast(names[x], dtype)
        case ir.Contract(spec, x, y):
            return ir.Contract(spec, names[x], names[y])
        case ir.Reduce(fn, x, axes):
            return ir.Reduce(fn, names[x], axes)
        case ir.OverChildren(fn, x, name):
            return ir.OverChildren(fn, names[x], name)
        case ir.Concat(xs, axis):
            return ir.Concat(tuple(names[x] for x in xs), axis)
        case ir.Slice(x, ranges):
            return ir.Slice(names[x], ranges)
        case ir.Reshape(x, shape):
            return ir.Reshape(names[x], shape)
        case ir.Transpose(x, perm):
            return ir.Transpose(names[x], perm)
        case ir.Broadcast(x, shape):
            return ir.Broadcast(names[x], shape)
        case ir.Lookup(table, index):
            return ir.Lookup(names[table], names[index])
        case _:
            assert_never(op)


def over_of(op: ir.Op, overs: Mapping[str, str | None]) -> str | None:
    """The list relation over whose edges `op` must be computed, or None when one value per node will do.

    That of an `Each` in its path, or of a per-edge operand; `OverChildren` ends it.
    """
    match op:
        case ir.Field(_, (ir.Each(relation), *_)) | ir.State(_, (ir.Each(relation), *_)):
            return relation
        case ir.OverChildren():
            return None
        case _:
            return next((r for x in operand_names(op) if (r := overs[x]) is not None), None)


def terms(spec: str) -> tuple[str, str, str]:
    """The letters of the two operands and of the result of an einsum specification."""
    operands, out = spec.split("->")
    x, y = operands.split(",")
    return x, y, out


def broadcast(op: ir.Op, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """NumPy's broadcast of two shapes, on behalf of `op`."""
    rank = max(len(a), len(b))
    pairs = list(zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True))
    _require(all(m == n or 1 in (m, n) for m, n in pairs), op, f"shapes {a} and {b} do not broadcast")
    return tuple(n if m == 1 else m for m, n in pairs)


def _binary(op: ir.Op, fn: str, x: ir.TensorType, y: ir.TensorType) -> ir.TensorType:
    _require(x.dtype == y.dtype, op, f"operands are {x.dtype} and {y.dtype}; cast one of them")
    shape = broadcast(op, x.shape, y.shape)
    if fn in CONNECTIVES:
        _require(x.dtype == "bool", op, f"operands are {x.dtype}, not bool")
        return ir.TensorType(shape, "bool")
    if fn in COMPARISONS:
        return ir.TensorType(shape, "bool")
    _require(x.dtype == "f32" or (x.dtype == "i64" and fn != "div"), op, f"operands are {x.dtype}")
    return ir.TensorType(shape, x.dtype)


def _contract(op: ir.Op, spec: str, x: ir.TensorType, y: ir.TensorType) -> ir.TensorType:
    tx, ty, out = terms(spec)
    extents: dict[str, int] = {}
    for term, t in ((tx, x), (ty, y)):
        _require(t.dtype == "f32", op, f"an operand is {t.dtype}")
        _require(len(term) == len(t.shape), op, f"term {term!r} for a value of {t.shape}")
        for letter, n in zip(term, t.shape, strict=True):
            _require(extents.setdefault(letter, n) == n, op, f"letter {letter!r} is both {extents[letter]} and {n}")
    for term in (tx, ty, out):
        _require(len(set(term)) == len(term), op, f"a letter repeats within {term!r}")
    _require(set(out) <= set(extents), op, "a letter of the result is in no operand")
    return ir.TensorType(tuple(extents[letter] for letter in out))


def _concat(op: ir.Op, parts: list[ir.TensorType], axis: int) -> ir.TensorType:
    _require(bool(parts), op, "there is no operand")
    first = parts[0]
    _require(0 <= axis < len(first.shape), op, f"a value of {first.shape} has no axis {axis}")
    for t in parts[1:]:
        same = t.shape[:axis] == first.shape[:axis] and t.shape[axis + 1 :] == first.shape[axis + 1 :]
        _require(same and len(t.shape) == len(first.shape) and t.dtype == first.dtype, op, f"{t} beside {first}")
    total = sum(t.shape[axis] for t in parts)
    return ir.TensorType((*first.shape[:axis], total, *first.shape[axis + 1 :]), first.dtype)


def _operand(types: Mapping[str, ir.TensorType], name: str) -> ir.TensorType:
    return _named(types, name, "let")


def _named(types: Mapping[str, ir.TensorType], name: str, what: str) -> ir.TensorType:
    if name not in types:
        raise InternalError(f"there is no {what} {name!r}; there are: {_some(types)}")
    return types[name]


def _some(names: Iterable[str]) -> str:
    return ", ".join(list(names)[:8]) or "none"


def _require(ok: bool, op: ir.Op, why: str) -> None:
    if not ok:
        raise InternalError(f"{op}: {why}")

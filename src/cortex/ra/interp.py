"""What an RA model means, in NumPy.

`run` computes every state of every node of a linearized request. It takes the groups in order; within a group
each let is computed for all nodes, or all edges, at once. A value is an array with a leading axis for the
nodes or edges it belongs to, or without one when it depends on parameters only.

`derived` computes the parameters that a model derives from others; it is also what runs at load time. `tables`
computes those that hold a kind's states for every value of a field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, Protocol, TypeAlias, assert_never

import numpy as np

from cortex.errors import InternalError
from cortex.ra import ir
from cortex.ra.shapes import terms
from cortex.ra.table_model import table_model

Array: TypeAlias = "np.ndarray[Any, Any]"
Params: TypeAlias = "Mapping[str, Array]"

_UNARY = {"neg": np.negative, "abs": np.abs, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh}
_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "min": np.minimum, "max": np.maximum,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip
_REDUCE = {"add": np.add, "max": np.maximum, "min": np.minimum}


class Linear(Protocol):
    """A linearized request: the arrays that `cortex.lower.linear_form` describes, by name."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """Numbers of nodes, groups and so on."""

    @property
    def arrays(self) -> Mapping[str, Any]:
        """The integer arrays, integer fields (`field_NAME`) among them."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """The float fields by their own names, each (num_nodes, *shape)."""


@dataclass(frozen=True)
class _Values:
    """The linear form of nodes without children, one for each value of a field."""

    sizes: Mapping[str, int]
    arrays: Mapping[str, Any]
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class _Value:
    """`data` has a leading axis for nodes (lead ""), for edges of the relation `lead`, or none (lead None)."""

    data: Array
    lead: str | None = None

    @property
    def rank(self) -> int:
        return self.data.ndim - (self.lead is not None)


@dataclass(frozen=True)
class _Group:
    """The nodes start..stop-1 of one kind, and what is computed already."""

    start: int
    stop: int
    form: Linear
    fields: Mapping[str, Array]
    states: Mapping[str, Array]

    def edges(self, relation: str) -> tuple[Array, Array]:
        """Bounds of each node's edges, counted from the group's first edge; the child at each edge."""
        ptr = np.asarray(self.form.arrays[f"{relation}_ptr"])[self.start : self.stop + 1]
        return ptr - ptr[0], np.asarray(self.form.arrays[f"{relation}_child"])[ptr[0] : ptr[-1]]


def run(m: ir.Model, params: Params, form: Linear, dtype: Any = np.float64) -> dict[str, Array]:
    """Every state of every node, of the recursion and of the finish: an array (num_nodes, *shape) for each.

    Values are computed in `dtype`.
    """
    count = form.sizes["num_nodes"]
    states = {s.name: np.zeros((count, *s.type.shape), dtype) for s in m.states}
    fields = {f.name: _field(f, form, dtype) for f in m.fields}
    given = {name: _as(dtype, value) for name, value in tables(m, derived(m, params, dtype), dtype).items()}
    constants: dict[int, dict[str, _Value]] = {}
    arrays = form.arrays
    with np.errstate(all="ignore"):
        for start, stop, k in _runs(m, arrays):
            group = _Group(start, stop, form, fields, states)
            kind = m.kinds[k]
            if kind.is_within:
                continue
            known = constants.setdefault(k, {})
            values = dict(known)
            for let in kind.lets:
                if let.name not in values:
                    values[let.name] = value = _evaluate(let.op, values, given, group, dtype)
                    if value.lead is None:
                        known[let.name] = value
            for s, result in zip(m.states, kind.results, strict=True):
                states[s.name][group.start : group.stop] = values[result].data
            for child in kind.inlined:
                ids, _ = _follow(child.path, group)
                for s, result in zip(m.states, child.results, strict=True):
                    states[s.name][ids] = values[result].data
        if m.finish is not None:
            states |= _finish(m.finish, given, _Group(0, count, form, fields, states), dtype)
    return states


def _runs(m: ir.Model, arrays: Mapping[str, Any]) -> Iterator[tuple[int, int, int]]:
    """(start, stop, kind) of the groups in order; a group of several kinds falls into runs of one kind."""
    for start, length, k in zip(arrays["group_start"], arrays["group_len"], arrays["group_kind"], strict=True):
        first, stop, kind = int(start), int(start) + int(length), int(k)
        if m.kinds[kind].own_group:
            yield first, stop, kind
            continue
        kinds = np.asarray(arrays["node_kind"])[first:stop]
        cuts = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(kinds)]
        for a, b in pairwise(cuts):
            yield first + a, first + b, int(kinds[a])


def _finish(finish: ir.Finish, params: Params, every: _Group, dtype: Any) -> dict[str, Array]:
    """The states that users see, from those of the recursion at every node."""
    values: dict[str, _Value] = {}
    for let in finish.lets:
        values[let.name] = _evaluate(let.op, values, params, every, dtype)
    return {s.name: _lift(values[r], "", every) for s, r in zip(finish.states, finish.results, strict=True)}


def derived(m: ir.Model, params: Params, dtype: Any = np.float64) -> dict[str, Array]:
    """`params` together with the parameters that `m` derives from them, those computed in `dtype`."""
    given = {name: np.asarray(value) for name, value in params.items()}
    made: dict[str, Array] = {}
    with np.errstate(all="ignore"):
        for d in m.derived:
            read = {let.op.name for let in d.lets if isinstance(let.op, ir.Param)}
            operands = {name: made[name] if name in made else _as(dtype, given[name]) for name in read}
            values: dict[str, _Value] = {}
            for let in d.lets:
                values[let.name] = _evaluate(let.op, values, operands, None, dtype)
            made[d.name] = np.array(values[d.result].data, order="C")
    return given | made


def tables(m: ir.Model, params: Params, dtype: Any = np.float64) -> dict[str, Array]:
    """`params`, derived ones included, together with the tables of `m` that are not among them."""
    given = dict(params)
    for table in m.tables:
        if all(name in given for name in table.params):
            continue
        limit = next(f.limit for f in m.fields if f.name == table.field) or 0
        arrays = {"group_start": [0], "group_len": [limit], "group_kind": [0], f"field_{table.field}": np.arange(limit)}
        states = run(table_model(m, table), given, _Values({"num_nodes": limit}, arrays, {}), dtype)
        given |= dict(zip(table.params, states.values(), strict=True))
    return given


def constant(op: ir.Op, operands: Mapping[str, Array]) -> Array:
    """The value of an op that reads nothing from nodes or parameters, in float64."""
    with np.errstate(all="ignore"):
        return _evaluate(op, {n: _Value(x) for n, x in operands.items()}, {}, None, np.float64).data


def _evaluate(op: ir.Op, values: Mapping[str, _Value], params: Params, group: _Group | None, dtype: Any) -> _Value:
    match op:
        case ir.Param(name):
            return _Value(params[name])
        case ir.Fill(value, shape):
            return _Value(np.full(shape, value, dtype))
        case ir.Field(name, path):
            group = _inside(group, op)
            ids, at = _follow(path, group)
            return _Value(group.fields[name][ids], at)
        case ir.State(name, path):
            group = _inside(group, op)
            ids, at = _follow(path, group)
            return _Value(group.states[name][ids], at)
        case ir.Arity(name):
            ptr, _ = _inside(group, op).edges(name)
            return _Value(np.diff(ptr).astype(dtype), "")
        case ir.OverChildren(fn, x, name):
            group = _inside(group, op)
            return _Value(_over_children(fn, _lift(values[x], name, group), group.edges(name)[0]), "")
        case ir.Unary("sigmoid", x):
            return _Value(_sigmoid(values[x].data), values[x].lead)
        case ir.Unary(fn, x):
            return _Value(_UNARY[fn](values[x].data), values[x].lead)
        case ir.Binary(fn, x, y):
            lead, (a, b) = _aligned((values[x], values[y]), group)
            return _Value(_BINARY[fn](a, b), lead)
        case ir.Where(cond, x, y):
            lead, (c, a, b) = _aligned((values[cond], values[x], values[y]), group)
            return _Value(np.where(c, a, b), lead)
        case ir.Cast(x, to):
            element = {"f32": dtype, "i64": np.int64, "bool": np.bool_}[to]
            return _Value(values[x].data.astype(element), values[x].lead)
        case ir.Contract(spec, x, y):
            return _contract(spec, values[x], values[y], group)
        case ir.Reduce(fn, x, axes):
            v = values[x]
            shifted = tuple(a + (v.lead is not None) for a in axes)
            return _Value(_REDUCE[fn].reduce(v.data, axis=shifted), v.lead)
        case ir.Concat(xs, axis):
            lead = _join([values[x].lead for x in xs])
            parts = [_lift(values[x], lead, group) for x in xs]
            return _Value(np.concatenate(parts, axis + (lead is not None)), lead)
        case ir.Slice(x, ranges):
            index = tuple(slice(*r) for r in ranges)
            rows = (slice(None),) if values[x].lead is not None else ()
            return _Value(values[x].data[rows + index], values[x].lead)
        case ir.Reshape(x, shape):
            return _Value(values[x].data.reshape(_leading(values[x]) + shape), values[x].lead)
        case ir.Transpose(x, perm):
            axes = (0, *(p + 1 for p in perm)) if values[x].lead is not None else perm
            return _Value(values[x].data.transpose(axes), values[x].lead)
        case ir.Broadcast(x, shape):
            full = _leading(values[x]) + shape
            return _Value(np.broadcast_to(_padded(values[x], len(shape)), full), values[x].lead)
        case ir.Lookup(table, index):
            lead = _join([values[table].lead, values[index].lead])
            rows_of = _lift(values[index], lead, group)
            if values[table].lead is None:
                return _Value(values[table].data[rows_of], lead)
            return _Value(_lift(values[table], lead, group)[np.arange(len(rows_of)), rows_of], lead)
        case _:
            assert_never(op)


def _follow(path: tuple[ir.Hop, ...], group: _Group) -> tuple[Array, str]:
    """The nodes that `path` reaches from the group's nodes, or edges if it starts with `Each`."""
    ids, lead = np.arange(group.start, group.stop), ""
    arrays = group.form.arrays
    for hop in path:
        match hop:
            case ir.Each(relation):
                ids, lead = group.edges(relation)[1], relation
            case ir.Slot(name):
                ids = np.asarray(arrays[f"child_{name}"])[ids]
                if (ids < 0).any():
                    raise InternalError(f"{hop}: a node of the group has no such child; the guard should exclude it")
            case ir.Item(name, index):
                ptr = np.asarray(arrays[f"{name}_ptr"])
                if (ptr[ids] + index >= ptr[ids + 1]).any():
                    raise InternalError(f"{hop}: a node of the group has fewer children; the guard should exclude it")
                ids = np.asarray(arrays[f"{name}_child"])[ptr[ids] + index]
            case _:
                assert_never(hop)
    return ids, lead


def _over_children(fn: str, x: Array, bounds: Array) -> Array:
    """Reduce rows bounds[n]..bounds[n+1]-1 of `x` into row n; 0 where there are none."""
    result = np.zeros((len(bounds) - 1, *x.shape[1:]), x.dtype)
    some = bounds[1:] > bounds[:-1]
    if some.any():
        result[some] = _REDUCE[fn].reduceat(x, bounds[:-1][some], axis=0)
    return result


def _contract(spec: str, x: _Value, y: _Value, group: _Group | None) -> _Value:
    """One matrix product: batch letters in front, then kept letters, summed letters innermost."""
    tx, ty, out = terms(spec)
    lead = _join([x.lead, y.lead])
    a, b = x.data, y.data
    if lead is not None:
        out = "." + out
        if x.lead is not None:
            a, tx = _lift(x, lead, group), "." + tx
        if y.lead is not None:
            b, ty = _lift(y, lead, group), "." + ty
    alone_x = tuple(i for i, c in enumerate(tx) if c not in ty and c not in out)
    alone_y = tuple(i for i, c in enumerate(ty) if c not in tx and c not in out)
    a = a.sum(axis=alone_x) if alone_x else a
    b = b.sum(axis=alone_y) if alone_y else b
    tx = "".join(c for i, c in enumerate(tx) if i not in alone_x)
    ty = "".join(c for i, c in enumerate(ty) if i not in alone_y)
    extent = dict(zip(tx + ty, a.shape + b.shape, strict=True))
    batch = [c for c in tx if c in ty and c in out]
    summed = [c for c in tx if c in ty and c not in out]
    rows, columns = [c for c in tx if c not in ty], [c for c in ty if c not in tx]
    size = {name: prod(extent[c] for c in part) for name, part in (("b", batch), ("k", summed))}
    shape_a = (size["b"], prod(extent[c] for c in rows), size["k"])
    shape_b = (size["b"], size["k"], prod(extent[c] for c in columns))
    left = a.transpose([tx.index(c) for c in (*batch, *rows, *summed)]).reshape(shape_a)
    right = b.transpose([ty.index(c) for c in (*batch, *summed, *columns)]).reshape(shape_b)
    order = (*batch, *rows, *columns)
    product = (left @ right).reshape([extent[c] for c in order])
    return _Value(product.transpose([order.index(c) for c in out]), lead)


def _aligned(operands: tuple[_Value, ...], group: _Group | None) -> tuple[str | None, list[Array]]:
    """Operands of a pointwise op, ready for NumPy's broadcasting: leading axes agree and stay leftmost."""
    lead = _join([v.lead for v in operands])
    if lead is None:
        return None, [v.data for v in operands]
    rank = max(v.rank for v in operands)
    moved = (v if v.lead is None else _Value(_lift(v, lead, group), lead) for v in operands)
    return lead, [v.data if v.lead is None else _padded(v, rank) for v in moved]


def _padded(v: _Value, rank: int) -> Array:
    """`v` with axes of size 1 after its leading axis, up to `rank` axes."""
    rows = _leading(v)
    return v.data.reshape(rows + (1,) * (rank - v.rank) + v.data.shape[len(rows) :])


def _leading(v: _Value) -> tuple[int, ...]:
    return v.data.shape[:1] if v.lead is not None else ()


def _join(leads: list[str | None]) -> str | None:
    """The leading axis of a result: edges if an operand has edges, else nodes, else none."""
    return max((lead for lead in leads if lead is not None), default=None)


def _lift(v: _Value, lead: str | None, group: _Group | None) -> Array:
    """`v` with the leading axis `lead`: repeated for each node, or for each edge of its node."""
    if v.lead == lead:
        return v.data
    group = _inside(group, lead)
    bounds = group.edges(lead)[0] if lead else np.arange(group.stop - group.start + 1)
    if v.lead is None:
        return np.broadcast_to(v.data, (int(bounds[-1]), *v.data.shape))
    return np.repeat(v.data, np.diff(bounds), axis=0)


def _sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow, to full relative accuracy."""
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1, e) / (1 + e))


def _field(f: ir.FieldDecl, form: Linear, dtype: Any) -> Array:
    """A field of every node; integer fields stand among the arrays, float fields by themselves."""
    values = np.asarray(form.arrays[f"field_{f.name}"] if f.type.dtype == "i64" else form.fields[f.name])
    return values.astype(np.int64 if f.type.dtype == "i64" else dtype)


def _as(dtype: Any, value: Array) -> Array:
    return np.asarray(value, dtype) if np.issubdtype(np.asarray(value).dtype, np.floating) else np.asarray(value)


def _inside(group: _Group | None, what: object) -> _Group:
    if group is None:
        raise InternalError(f"{what}: a derived parameter reads from nodes")
    return group

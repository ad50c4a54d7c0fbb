"""RA -> ILIR: loops over groups and nodes, temporaries explicit, one nest per operator.

    for i in nodes of kind 'inner': input products                       (what needs no child state)
    for g in 0..num_groups:
      if group_kind(g) == 1:                                             (only the kinds that recurse)
        for n in group_start(g)..group_start(g) + group_len(g): ...
"""

from __future__ import annotations

from cortex.ilir.ir import Buffer, For, Func, If, Scope, Stmt
from cortex.ir.scalar import Binary, Expr, Index, Int
from cortex.lower.linear_form import NUM_GROUPS, NUM_NODES, index_functions, num_edges, sizes
from cortex.lower.nests import NestBuilder
from cortex.lower.places import GROUP, EdgesOfGroup, NodesOfGroup, NodesOfKind, Place
from cortex.lower.read import is_stored, state_buffer
from cortex.lower.stages import before_recursion, joined_products
from cortex.ra import ir as ra


def lower(m: ra.Model, lanes: int, inputs_first: bool = True) -> Func:
    """The program that computes every state of every node of a request. Rows are padded to `lanes` elements.

    With `inputs_first`, products that need no child's state are taken out of the recursion (see `before_recursion`).
    """
    buffers = [Buffer(p.name, "f32", _extents(p.type), Scope.PARAM, lanes) for p in m.params]
    buffers += [
        Buffer(f"field_{f.name}", "f32", (NUM_NODES, *_extents(f.type)), Scope.FIELD, _row_align(f.type, lanes))
        for f in m.fields
        if f.type.dtype == "f32"
    ]
    buffers += [
        Buffer(state_buffer(s.name), "f32", (NUM_NODES, *_extents(s.type)), Scope.STATE, _row_align(s.type, lanes))
        for s in m.states
    ]
    first: list[Stmt] = []
    arms: list[Stmt] = []
    for number, kind in enumerate(m.kinds):
        early, late, temporaries = _lower_kind(m, number, kind, lanes, inputs_first)
        buffers += temporaries
        first += early
        if late:
            arms.append(If(Binary("eq", Index("group_kind", (GROUP,)), Int(number)), late))
    body = (*first, For(GROUP.name, Int(0), NUM_GROUPS, tuple(arms))) if arms else tuple(first)
    return Func(m.name, sizes(m), index_functions(m), tuple(buffers), body)


def _lower_kind(
    m: ra.Model, number: int, kind: ra.Kind, lanes: int, inputs_first: bool
) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...], list[Buffer]]:
    """The nests of a kind before the recursion and inside it, and its temporaries."""
    early = before_recursion(kind)
    if not inputs_first and len(early) < len(kind.lets):
        early = frozenset()
    joins = joined_products(kind, early)
    lets = {let.name: let for let in kind.lets}
    stored = [let for let in kind.lets if is_stored(let)]
    names = {let.name: f"{kind.name}_{joins.get(let.name, let.name)}" for let in stored}
    build = NestBuilder(f"{kind.name}_", lets, names, joins)
    before: list[Stmt] = []
    inside: list[Stmt] = []
    for let in stored:
        if let.name in joins and isinstance(let.op, ra.Binary):
            continue
        is_early = let.name in early
        place: Place = NodesOfKind(number) if is_early else EdgesOfGroup(let.over) if let.over else NodesOfGroup()
        (before if is_early else inside).extend(build.let(let, place))
    all_early = set(lets) == early
    for state, result in zip(m.states, kind.results, strict=True):
        nests = build.result(state_buffer(state.name), lets[result], NodesOfKind(number) if all_early else NodesOfGroup())
        (before if all_early else inside).extend(nests)
    temporaries = [
        Buffer(names[let.name], "f32", (_rows(let), *_extents(let.type)), Scope.SCRATCH, _row_align(let.type, lanes))
        for let in stored
        if let.name not in joins
    ]
    return tuple(before), tuple(inside), temporaries


def _rows(let: ra.Let) -> Expr:
    return num_edges(let.over) if let.over else NUM_NODES


def _extents(t: ra.TensorType) -> tuple[Expr, ...]:
    return tuple(Int(extent) for extent in t.shape)


def _row_align(t: ra.TensorType, lanes: int) -> int:
    """Rows of scalars stand side by side; longer rows start at a multiple of the vector width."""
    return lanes if t.shape else 1

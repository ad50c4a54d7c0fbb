"""RA -> ILIR: loops over groups and nodes, temporaries explicit, one nest per operator.

    for i in nodes of kind 'inner': input products                       (what needs no child state)
    for g in 0..num_groups:
      if group_kind(g) == 1:                                             (only the kinds that recurse)
        for n in group_start(g)..group_start(g) + group_len(g): ...
    for n in 0..num_nodes: ...                                           (the model's finish, where it has one)

Kinds without groups of their own are computed inside the recursion altogether, and every nest asks:

      if group_kind(g) == 0:                                             (the first kind that shares groups)
        for n in group_start(g)..group_start(g) + group_len(g): if node_kind(n) == 0: ...
        for n in group_start(g)..group_start(g) + group_len(g): if node_kind(n) == 1: ...
"""

from __future__ import annotations

from cortex.ilir.ir import Buffer, For, Func, If, Scope, Stmt
from cortex.ir.scalar import Binary, Expr, Index, Int
from cortex.lower.linear_form import NUM_GROUPS, NUM_NODES, index_functions, num_edges, shared_kinds, sizes
from cortex.lower.nests import NestBuilder
from cortex.lower.places import GROUP, AllNodes, EdgesOfGroup, NodesOfGroup, NodesOfKind, Place
from cortex.lower.promises import promises
from cortex.lower.read import is_stored, state_buffer
from cortex.lower.stages import before_recursion, heads_of_sums, joined_products
from cortex.ra import ir as ra


def lower(m: ra.Model, lanes: int) -> Func:
    """The program that computes every state of every node of a request. Rows are padded to `lanes` elements.

    Where `Model.inputs_first` says so, products that need no child's state are taken out of the recursion (see
    `before_recursion`).
    """
    buffers = [Buffer(p.name, "f32", _extents(p.type), Scope.PARAM, lanes) for p in m.params]
    buffers += [
        Buffer(f"field_{f.name}", "f32", (NUM_NODES, *_extents(f.type)), Scope.FIELD, _row_align(f.type, lanes))
        for f in m.fields
        if f.type.dtype == "f32"
    ]
    buffers += [_state(s, Scope.STATE, lanes) for s in m.outputs]
    # States that only the recursion uses live as long as the call.
    buffers += [_state(s, Scope.SCRATCH, lanes) for s in m.states if s not in m.outputs]
    first: list[Stmt] = []
    arms: dict[int, tuple[Stmt, ...]] = {}
    shared = shared_kinds(m)
    for number, kind in enumerate(m.kinds):
        if kind.is_within:
            continue
        early, late, temporaries = _lower_kind(m, number, kind, lanes)
        buffers += temporaries
        first += early
        if late:
            arm = number if kind.own_group else shared[0]
            arms[arm] = (*arms.get(arm, ()), *late)
    tests = tuple(If(Binary("eq", Index("group_kind", (GROUP,)), Int(arm)), late) for arm, late in arms.items())
    body = (*first, For(GROUP.name, Int(0), NUM_GROUPS, tests)) if arms else tuple(first)
    if m.finish is not None:
        nests, temporaries = _lower_finish(m, m.finish, lanes)
        buffers += temporaries
        body = (*body, *nests)
    return Func(m.name, sizes(m), index_functions(m), tuple(buffers), body, promises=promises(m))


def _lower_kind(
    m: ra.Model, number: int, kind: ra.Kind, lanes: int
) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...], list[Buffer]]:
    """The nests of a kind before the recursion and inside it, and its temporaries."""
    early = before_recursion(kind)
    if not m.inputs_first and len(early) < len(kind.lets):
        early = frozenset()
    joins = joined_products(kind, early)  # the same for a kind that shares groups, so that results are
    if not kind.own_group:
        early = frozenset()
    of = None if kind.own_group else number
    lets = {let.name: let for let in kind.lets}
    heads = heads_of_sums(kind)
    stored = [let for let in kind.lets if is_stored(let) and let.name not in heads]
    names = {let.name: f"{kind.name}_{joins.get(let.name, let.name)}" for let in stored}
    build = NestBuilder(f"{kind.name}_", lets, names, joins)
    before: list[Stmt] = []
    inside: list[Stmt] = []
    for let in stored:
        if let.name in joins and isinstance(let.op, ra.Binary):
            continue
        is_early = let.name in early
        place: Place = NodesOfKind(number) if is_early else EdgesOfGroup(let.over, of) if let.over else NodesOfGroup(of)
        (before if is_early else inside).extend(build.let(let, place))
    all_early = set(lets) == early
    for state, result in zip(m.states, kind.results, strict=True):
        place = NodesOfKind(number) if all_early else NodesOfGroup(of)
        (before if all_early else inside).extend(build.result(state_buffer(state.name), lets[result], place))
    # The states of inlined children are written last: nothing in the group reads them.
    for child in kind.inlined:
        for state, result in zip(m.states, child.results, strict=True):
            inside += build.result(state_buffer(state.name), lets[result], NodesOfGroup(), child.path)
    temporaries = [_temporary(names[let.name], let, lanes) for let in stored if let.name not in joins]
    return tuple(before), tuple(inside), temporaries


def _lower_finish(m: ra.Model, finish: ra.Finish, lanes: int) -> tuple[tuple[Stmt, ...], list[Buffer]]:
    """The nests that compute what users see from the states of the recursion, and their temporaries."""
    lets = {let.name: let for let in finish.lets}
    stored = [let for let in finish.lets if is_stored(let)]
    names = {let.name: f"finish_{let.name}" for let in stored}
    build = NestBuilder("finish_", lets, names, {})
    nests = [s for let in stored for s in build.let(let, AllNodes())]
    for state, result in zip(finish.states, finish.results, strict=True):
        if state not in m.states:
            nests += build.result(state_buffer(state.name), lets[result], AllNodes())
    return tuple(nests), [_temporary(names[let.name], let, lanes) for let in stored]


def _state(s: ra.StateDecl, scope: Scope, lanes: int) -> Buffer:
    return Buffer(state_buffer(s.name), "f32", (NUM_NODES, *_extents(s.type)), scope, _row_align(s.type, lanes))


def _temporary(name: str, let: ra.Let, lanes: int) -> Buffer:
    return Buffer(name, "f32", (_rows(let), *_extents(let.type)), Scope.SCRATCH, _row_align(let.type, lanes))


def _rows(let: ra.Let) -> Expr:
    return num_edges(let.over) if let.over else NUM_NODES


def _extents(t: ra.TensorType) -> tuple[Expr, ...]:
    return tuple(Int(extent) for extent in t.shape)


def _row_align(t: ra.TensorType, lanes: int) -> int:
    """Rows of scalars stand side by side; longer rows start at a multiple of the vector width."""
    return lanes if t.shape else 1

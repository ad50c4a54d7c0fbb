"""What makes an RA model well formed.

* Names are unique, and every operand is defined before its use.
* Types are those that `shapes.infer` gives; results have the types of the states.
* A let that reads `Each` of a relation, or a per-edge operand, is per edge of that relation and of no other;
  `OverChildren` reads a value per edge of its relation and is itself per node, as results are.
* A path may start with one `Each`; what follows are slots and items. An item exists by the guard.
* Kinds read states of children; a finish reads states of the node itself and parameters, and nothing else of nodes.
* Derived parameters read only parameters declared before them.
* A table's parameters have a row for every value of its field, which has a limit and is all that its kind reads.
* A variant names a kind with a guard of its own, and reads no state of the nodes that it inlines, which hang together.
* Guards of other kinds form a decision tree: two of them agree up to a question to which they have different answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from cortex.errors import InternalError
from cortex.ra import ir
from cortex.ra.guards import length_told
from cortex.ra.shapes import Declared, infer, operand_names
from cortex.ra.show import show


def verify(m: ir.Model) -> None:
    """Raise `InternalError`, with the printed model as a note, unless `m` is well formed."""
    try:
        _declarations(m)
        declared = Declared.of(m)
        _derived(m, declared)
        for table in m.tables:
            _table(table, m, declared)
        for kind in m.kinds:
            _kind(kind, m, declared)
        for a, b in combinations([k for k in m.kinds if not k.variant_of], 2):
            if bool(a.of_position) == bool(b.of_position):
                _guards(a, b)
        if m.finish is not None:
            _finish(m.finish, m, declared)
    except InternalError as error:
        error.add_note(show(m))
        raise


def _declarations(m: ir.Model) -> None:
    for what, names in (
        ("parameter", [p.name for p in m.params]),
        ("field", [f.name for f in m.fields]),
        ("state", [s.name for s in m.states]),
        ("relation", [*m.slots, *m.lists]),
        ("kind", [k.name for k in m.kinds]),
        ("derived parameter", [d.name for d in m.derived]),
    ):
        _unique(names, f"{m.name}: {what}")
    for f in m.fields:
        if not (f.type == ir.TensorType((), "i64") or f.type.dtype == "f32"):
            raise InternalError(f"field {f.name!r} is {f.type}; fields are i64 scalars or f32 tensors")


def _derived(m: ir.Model, declared: Declared) -> None:
    own = [d.name for d in m.derived]
    for position, d in enumerate(m.derived):
        where = f"derived parameter {d.name!r}"
        types = _lets(d.lets, declared, where)
        for let in d.lets:
            if isinstance(let.op, ir.Field | ir.State | ir.Arity | ir.OverChildren):
                raise InternalError(f"{where}: let {let.name!r} reads from nodes: {let.op}")
            if isinstance(let.op, ir.Param) and let.op.name in own[position:]:
                raise InternalError(f"{where}: let {let.name!r} reads {let.op.name!r}, which is derived later")
        _result(where, d.result, types, declared.params.get(d.name))


def _table(table: ir.Table, m: ir.Model, declared: Declared) -> None:
    where = f"table of kind {table.kind.name!r}"
    types = _lets(table.kind.lets, declared, where)
    for let in table.kind.lets:
        reads_more = isinstance(let.op, ir.State | ir.Arity | ir.OverChildren) or let.over is not None
        if reads_more or (isinstance(let.op, ir.Field) and let.op != ir.Field(table.field)):
            raise InternalError(f"{where}: let {let.name!r} reads more than field {table.field!r}: {let.op}")
    limit = next((f.limit for f in m.fields if f.name == table.field), None)
    if limit is None:
        raise InternalError(f"{where}: field {table.field!r} has no limit")
    for result, param in zip(table.kind.results, table.params, strict=True):
        wanted = ir.TensorType((limit, *types[result].shape))
        if declared.params.get(param) != wanted:
            raise InternalError(f"{where}: parameter {param!r} is {declared.params.get(param)}, not {wanted}")


def _kind(kind: ir.Kind, m: ir.Model, declared: Declared) -> None:
    where = f"kind {kind.name!r}"
    types = _lets(kind.lets, declared, where)
    overs = {let.name: let.over for let in kind.lets}
    for let in kind.lets:
        if let.over is not None and let.over not in m.lists:
            raise InternalError(f"{where}, let {let.name!r} is per edge of {let.over!r}, which is no list relation")
        _over(let, overs, f"{where}, let {let.name!r}")
        if isinstance(let.op, ir.Field | ir.State):
            _path(let.op.path, kind.guard, m, f"{where}, let {let.name!r}")
        if isinstance(let.op, ir.State) and not let.op.path:
            raise InternalError(f"{where}, let {let.name!r} reads a child's state, so the path must not be empty")
        if isinstance(let.op, ir.State) and any(hop.name in m.unordered for hop in let.op.path):
            raise InternalError(f"{where}, let {let.name!r} reads a state through an unordered relation")
    for fact in kind.guard:
        _path(fact.test.path, kind.guard, m, f"{where}, guard")
    for results in (kind.results, *(child.results for child in kind.inlined)):
        if len(results) != len(m.states):
            raise InternalError(f"{where} has {len(results)} results for {len(m.states)} states")
        for state, result in zip(m.states, results, strict=True):
            _result(f"{where}, state {state.name!r}", result, types, state.type)
            if overs[result] is not None:
                place = f"{where}, state {state.name!r}"
                raise InternalError(f"{place}: result {result!r} is per edge of {overs[result]!r}")
    plain = {k.name for k in m.kinds if not k.variant_of}
    for name in (kind.variant_of, *(child.kind for child in kind.inlined)):
        if name and name not in plain:
            raise InternalError(f"{where} is made from {name!r}, which is no kind with a guard of its own")
    for child in kind.inlined:
        if any(isinstance(let.op, ir.State) and let.op.path == child.path for let in kind.lets):
            raise InternalError(f"{where} reads a state of {child.path}, which it computes itself")
        if child.path[:-1] and child.path[:-1] not in {other.path for other in kind.inlined}:
            raise InternalError(f"{where} computes {child.path}, but not the node above it")


def _finish(finish: ir.Finish, m: ir.Model, declared: Declared) -> None:
    types = _lets(finish.lets, declared, "finish")
    ops = {let.name: let.op for let in finish.lets}
    for let in finish.lets:
        own = isinstance(let.op, ir.State) and not let.op.path
        if let.over is not None or (isinstance(let.op, ir.Field | ir.State | ir.Arity | ir.OverChildren) and not own):
            raise InternalError(f"finish, let {let.name!r} reads more than states of the node itself: {let.op}")
    _unique([s.name for s in finish.states], "finish: state")
    for state, result in zip(finish.states, finish.results, strict=True):
        _result(f"finish, state {state.name!r}", result, types, state.type)
        if any(s.name == state.name for s in m.states) and ops[result] != ir.State(state.name, ()):
            raise InternalError(f"finish: {state.name!r} is a state of the recursion, but is computed anew")


def _lets(lets: tuple[ir.Let, ...], declared: Declared, where: str) -> dict[str, ir.TensorType]:
    """Check names and types; the types by name."""
    _unique([let.name for let in lets], f"{where}: let")
    types: dict[str, ir.TensorType] = {}
    for let in lets:
        try:
            inferred = infer(let.op, types, declared)
        except InternalError as error:
            raise InternalError(f"{where}, let {let.name!r}: {error}") from None
        if inferred != let.type:
            raise InternalError(f"{where}, let {let.name!r} says {let.type}, but its op gives {inferred}")
        types[let.name] = let.type
    return types


def _over(let: ir.Let, overs: dict[str, str | None], where: str) -> None:
    match let.op:
        case ir.OverChildren(_, x, name):
            if overs[x] != name:
                raise InternalError(f"{where} reduces {x!r} over {name!r}, but {x!r} is per {_per(overs[x])}")
            if let.over is not None:
                raise InternalError(f"{where} reduces over children, but is itself per {_per(let.over)}")
            return
        case ir.Field(_, (ir.Each(name), *_)) | ir.State(_, (ir.Each(name), *_)):
            read: set[str | None] = {name}
        case _:
            read = {overs[x] for x in operand_names(let.op)} - {None}
    wrong = [r for r in sorted(filter(None, read)) if r != let.over]
    if wrong:
        raise InternalError(f"{where} is per {_per(let.over)}, but reads a value per {_per(wrong[0])}")


def _path(path: tuple[ir.Hop, ...], guard: tuple[ir.Fact, ...], m: ir.Model, where: str) -> None:
    for position, hop in enumerate(path):
        known = m.slots if isinstance(hop, ir.Slot) else m.lists
        if hop.name not in known:
            raise InternalError(f"{where}: {hop} names no such relation; there are {', '.join(known) or 'none'}")
        if isinstance(hop, ir.Each) and position > 0:
            raise InternalError(f"{where}: {hop} is hop {position} of a path; only the first may be an Each")
        if isinstance(hop, ir.Item) and hop.index >= (length_told(guard, hop.name, path[:position]) or 0):
            raise InternalError(f"{where}: nothing in the guard makes {hop} exist")


def _guards(a: ir.Kind, b: ir.Kind) -> None:
    for x, y in zip(a.guard, b.guard, strict=False):
        if x.test != y.test:
            raise InternalError(f"kinds {a.name!r} and {b.name!r} ask different questions: {x.test} and {y.test}")
        if x.key != y.key:
            return
    raise InternalError(f"kinds {a.name!r} and {b.name!r} fit the same nodes: no question tells them apart")


def _result(where: str, name: str, types: dict[str, ir.TensorType], wanted: ir.TensorType | None) -> None:
    if name not in types:
        raise InternalError(f"{where}: the result {name!r} is not defined")
    if types[name] != wanted:
        raise InternalError(f"{where}: the result {name!r} is {types[name]}, not {wanted}")


def _unique(names: Iterable[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InternalError(f"{what} {name!r} is defined twice")
        seen.add(name)


def _per(relation: str | None) -> str:
    return "node" if relation is None else f"edge of {relation!r}"

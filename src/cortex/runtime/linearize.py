"""From a model to the linearizer of its structures.

The spec tells the native linearizer which attributes lead to children, how to find the kind of a node, and which
fields to read. The kinds' guards form a decision tree (see ra/ir.py), which is what the linearizer descends:

    guards   leaf: is_leaf = True     join: is_leaf = False, op == "Join" = True
    tree     is_leaf? True -> leaf; False -> (op == "Join"? True -> join)

A node's field is read exactly where some code reads it: because the node's own kind has a `Field` with an empty
path (`uses`), or because a node further up has one whose path leads here (`reads`). Elsewhere it may be missing, and
is 0 in the linear form. A child that code recurses into without the guard having asked for it must exist (`needs`).

Kinds of any arity come with the numbers of children that they have been checked for (`lengths`), as tables that may
change after the linearizer has been made. A node with another number is reported as one of an unknown kind is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, assert_never

from cortex import _native
from cortex.errors import InternalError
from cortex.frontend.arity.lengths import CheckedLengths
from cortex.frontend.fields import Accessors
from cortex.frontend.postorder import MAX_OBJECTS
from cortex.frontend.torch.accessors import TorchAccessors
from cortex.frontend.torch.calls import ARGUMENT
from cortex.lower.linear_form import WINDOW_NODES, LinearForm
from cortex.ra.guards import can_be_leaf, length_told
from cortex.ra.ir import (
    POSITION,
    Compares,
    Counts,
    Each,
    Equals,
    Fact,
    Field,
    HasLength,
    Hop,
    IsAboveLeaves,
    IsLeaf,
    IsNone,
    Item,
    Kind,
    Length,
    Model,
    Positions,
    Slot,
    State,
    Test,
    Value,
)
from cortex.runtime.call_table import call_table, hop_for_native, relations_followed, source_for_native
from cortex.runtime.forest import Forest

UnknownKind = _native.UnknownKind
Path = tuple[Hop, ...]
Checked = tuple[tuple[Fact, ...], CheckedLengths | None]
Inlinings = frozenset[tuple[Path, str]]


def linearize(
    m: Model,
    structures: Sequence[Any] | Forest,
    *,
    children: str | tuple[str, ...] | Callable[[Any], Iterable[Any]] | None = None,
    fields: Mapping[str, Any] | None = None,
    accessors: Accessors | None = None,
    parts: int | None = None,
) -> LinearForm:
    """The linear form of a list of structures or a forest; `children` and `fields` are those of `compile`.

    A model that was traced with `accessors` may have fields that these compute.
    It has windows, of all kinds. With `parts`, it is divided into at most so many parts and tells them; see
    lower/linear_form.py.
    """
    batch = structures if isinstance(structures, Forest) else list(structures)
    windows = tuple(range(len(m.kinds)))
    known = Accessors(fields, children) if accessors is None else accessors
    made = linearizer(m, known, parts=parts is not None, windows=windows)
    return LinearForm(**made.linearize(batch, parts or 1))


def linearizer(
    m: Model,
    accessors: Accessors | None = None,
    *,
    align: int = 1,
    parts: bool = False,
    windows: tuple[int, ...] = (),
    checked: Sequence[Checked] = (),
) -> _native.Linearizer:
    """The native linearizer of a model's structures; see `linearizer_spec`."""
    spec = linearizer_spec(m, accessors, align=align, parts=parts, windows=windows, checked=checked)
    return _native.Linearizer(spec)


def linearizer_spec(
    m: Model,
    accessors: Accessors | None = None,
    *,
    align: int = 1,
    parts: bool = False,
    windows: tuple[int, ...] = (),
    checked: Sequence[Checked] = (),
) -> dict[str, Any]:
    """What `_native.Linearizer` needs to know about a model.

    With `parts`, requests are divided into parts, as many as each call says; with `windows`, some kinds, groups are
    divided into windows, and so are the nodes of these kinds. Rows of float fields are padded to a multiple of `align`
    elements. A request of more than `MAX_OBJECTS` objects is refused; a `Forest`, which is in memory already, has only
    to fit the int32 ids. `checked` has the guards of the kinds that were traced; without it, numbers of children are
    not checked.
    """
    given = accessors or Accessors()
    names = names_read(m)
    of_calls = isinstance(given, TorchAccessors) and given.of_calls
    renamed = [] if of_calls else [name for name in sorted(names) if given.renamed(name)]
    spec: dict[str, Any] = {
        "slots": list(m.slots),
        "lists": list(m.lists),
        "accessors": {name: source_for_native(given.source(name)) for name in renamed},
        "num_kinds": len(m.kinds),
        "tree": decision_tree(m, ""),
        "said": {f.name: shown for f in m.fields if (shown := _said(given, f.name)) != f"node.{f.name}"},
        "int_fields": [(f.name, f.limit) for f in m.fields if f.type.dtype == "i64"],
        "float_fields": [
            (f.name, f.type.shape, padded_elements(f.type.shape, align)) for f in m.fields if f.type.dtype != "i64"
        ],
        "uses": [sorted({f.name for f in _fields(kind) if not f.path}) for kind in m.kinds],
        "reads": [_unique((f.name, _path(f.path)) for f in _reads(kind, m)) for kind in m.kinds],
        "needs": [_unique(_path(p) for p in _state_paths(kind) if not _is_sure(p, kind.guard)) for kind in m.kinds],
    }
    spec |= {"batching": m.batching, "own_group": [kind.own_group for kind in m.kinds], "dedup": m.dedup}
    spec |= {"parts": parts, "windows": list(windows), "window_nodes": WINDOW_NODES}
    if isinstance(given, TorchAccessors) and given.of_calls:
        spec["calls"] = call_table(m, given, sorted(names - {*m.slots, *m.lists}))
    if any(lengths is not None for _, lengths in checked):
        spec["lengths"] = [_lengths(kind, checked) for kind in m.kinds]
    if m.positions:
        spec["positions"] = position_table(m)
    if m.trees_only:
        spec["unshared"] = [not name.startswith(ARGUMENT) for name in (*m.slots, *m.lists)]
    spec["max_nodes"] = MAX_OBJECTS
    if any(kind.variant_of for kind in m.kinds):
        spec["variants"] = variants(m)
    return spec


def names_read(m: Model) -> set[str]:
    """What is read of nodes, by the model's names."""
    items = {p.relation for p in m.positions}
    return {*m.slots, *m.lists, *items, *(f.name for f in m.fields), *_tested(m)} - {POSITION}


def _lengths(kind: Kind, checked: Sequence[Checked]) -> tuple[tuple[str, ...], int, Any] | None:
    """The lists, the most that is told apart, and the table of the traced kind that `kind` was made from.

    Steps on the recursion split kinds by further questions, so that the guard of the traced kind is how it begins.
    Variants are chosen among nodes that have been checked.
    """
    if kind.variant_of or kind.of_position:
        return None
    origins = [lengths for guard, lengths in checked if kind.guard[: len(guard)] == guard]
    if len(origins) != 1:
        raise InternalError(f"kind {kind.name} was made from {len(origins)} of the traced kinds")
    return None if origins[0] is None else (origins[0].lists, origins[0].most, origins[0].table)


def padded_elements(shape: tuple[int, ...], align: int) -> int:
    """Elements of one node's row in a buffer whose last dimension is padded to a multiple of `align`."""
    if not shape:
        return 1
    return prod(shape[:-1]) * (-(-shape[-1] // align) * align)


def decision_tree(m: Model, routine: str = "") -> tuple[Any, ...] | None:
    """The guards of the kinds of a routine's positions ("": of the user's nodes).

    They are nested ("kind", number) and ("test", test, {answer: subtree}).
    """
    whole: dict[Any, Any] = {"": None}
    for number, kind in enumerate(m.kinds):
        if kind.variant_of or kind.of_position != routine:
            continue
        branches: dict[Any, Any] = whole
        answer: Any = ""
        for fact in kind.guard[1:] if routine else kind.guard:
            test = _test(fact.test)
            if branches[answer] is None:
                branches[answer] = ("test", test, {})
            elif branches[answer][:2] != ("test", test):
                raise InternalError(f"{m.name}: the guard of kind {kind.name} does not fit the decision tree")
            branches, answer = branches[answer][2], _key(fact)
            branches.setdefault(answer)
        if branches[answer] is not None:
            raise InternalError(f"{m.name}: the guard of kind {kind.name} does not tell it from another kind")
        branches[answer] = ("kind", number)
    tree: tuple[Any, ...] | None = whole[""]
    return tree


def position_table(m: Model) -> tuple[Any, ...]:
    """The number of slots and of lists that lead from the user's nodes, and what is known of each routine."""
    of_positions = {name for p in m.positions for name in (p.before, p.owner, p.first, p.last, p.all, *dict(p.at))}
    numbers = {p.name: number for number, p in enumerate(m.positions)}
    routines = [
        (
            p.relation,
            p.is_forward,
            p.before,
            p.owner,
            p.first,
            p.last,
            p.all,
            [(slot, numbers.get(source, -1)) for slot, source in p.at if slot in m.slots],
            sorted(_owners(m, p)),
            decision_tree(m, p.name),
            decision_tree(m, p.of_owner) if p.of_owner else None,
        )
        for p in m.positions
    ]
    own_slots, own_lists = ([name for name in names if name not in of_positions] for names in (m.slots, m.lists))
    return len(own_slots), len(own_lists), routines


def _owners(m: Model, p: Positions) -> set[int]:
    """The kinds of nodes that have positions of a routine: they read these, or routines that do."""
    names = {p.first, p.last, p.all}
    found = {
        number
        for number, kind in enumerate(m.kinds)
        if not kind.of_position and not names.isdisjoint(relations_followed(kind))
    }
    for other in m.positions:
        if any(source == p.name for _, source in other.at):
            found |= _owners(m, other)
    return found


def _key(fact: Fact) -> Any:
    """The answer as a key: to Python's dictionaries True and 1.0 are 1, to a model that prints them they are not."""
    like_int = isinstance(fact.test, Value) and isinstance(fact.answer, bool | float)
    return fact.key if like_int else fact.answer


def variants(m: Model) -> dict[str, Any]:
    """Which variant of a kind a node has by the nodes that it inlines; see lower/linear_form.py.

    `depth` is the number of levels that a group computes. `within` maps kinds to the variant for inlined nodes.
    `inlining` has, for each kind with variants that inline, its hops and a mapping from what is inlined at each hop to
    the variant: None, or the variant that the child would have on its own (its kind, if it would inline nothing).
    """
    number = {kind.name: i for i, kind in enumerate(m.kinds)}
    alone = {(k.variant_of or k.name, _inlined(k)): i for i, k in enumerate(m.kinds) if not k.is_within}
    within = {number[k.variant_of]: i for i, k in enumerate(m.kinds) if k.is_within}
    inlining: list[tuple[int, list[Any], dict[tuple[int | None, ...], int]]] = []
    for base in m.kinds:
        own = [k for k in m.kinds if k.variant_of == base.name and k.inlined]
        hops = _unique(child.path[0] for k in own for child in k.inlined)
        by_children = {tuple(_inlined_at(k, hop, alone) for hop in hops): number[k.name] for k in own}
        if own:
            inlining.append((number[base.name], [_path((hop,)) for hop in hops], by_children))
    depth = 1 + max((len(child.path) for k in m.kinds for child in k.inlined), default=0)
    return {"depth": depth, "within": within, "inlining": inlining}


def _inlined(kind: Kind, below: Path = ()) -> Inlinings:
    """The nodes that a kind inlines below a node, each as the path from there and its kind."""
    at = len(below)
    return frozenset((c.path[at:], c.kind) for c in kind.inlined if c.path[:at] == below and len(c.path) > at)


def _inlined_at(kind: Kind, hop: Hop, alone: Mapping[tuple[str, Inlinings], int]) -> int | None:
    child = next((c for c in kind.inlined if c.path == (hop,)), None)
    return None if child is None else alone[child.kind, _inlined(kind, (hop,))]


def _test(test: Test) -> tuple[Any, ...]:
    match test:
        case IsLeaf(path):
            return ("is_leaf", _path(path))
        case IsAboveLeaves(path):
            return ("is_above_leaves", _path(path))
        case IsNone(name, path):
            return ("is_none", name, _path(path))
        case Length(name, path):
            return ("length", name, _path(path))
        case HasLength(name, count, path):
            return ("has_length", name, count, _path(path))
        case Counts(name, relation, path):
            return ("counts", name, relation, _path(path))
        case Equals(name, value, path):
            return ("equals", name, value, _path(path))
        case Compares(name, fn, bound, path):
            return ("compares", name, fn, bound, _path(path))
        case Value(name, path):
            return ("value", name, _path(path))
        case _:
            assert_never(test)


def _path(path: Path) -> tuple[tuple[Any, ...], ...]:
    return tuple(hop_for_native(h) for h in path)


def _tested(m: Model) -> Iterator[str]:
    """Names of the attributes that guards ask about."""
    for kind in m.kinds:
        for fact in kind.guard:
            match fact.test:
                case IsLeaf() | IsAboveLeaves():
                    pass
                case test:
                    yield test.name


def _said(accessors: Accessors, name: str) -> str:
    """What errors call a field: as code has it, without the check that its digits fit."""
    said = accessors.said(name)
    return said.removeprefix("exactly(").removesuffix(")") if said.startswith("exactly(") else said


def _fields(kind: Kind) -> Iterator[Field]:
    return (let.op for let in kind.lets if isinstance(let.op, Field))


def _reads(kind: Kind, m: Model) -> Iterator[Field]:
    """The fields of nodes further down that a kind reads, but for those that all of these nodes read themselves."""
    above_leaves = Fact(IsAboveLeaves(), True) in kind.guard
    for field in _fields(kind):
        leaves = [k for k in m.kinds if can_be_leaf(k, m)] if above_leaves and len(field.path) == 1 else []
        if field.path and not (leaves and all(Field(field.name) in _fields(k) for k in leaves)):
            yield field


def _state_paths(kind: Kind) -> Iterator[Path]:
    return (let.op.path for let in kind.lets if isinstance(let.op, State))


def _is_sure(path: Path, guard: tuple[Fact, ...]) -> bool:
    """Does the guard make every node along `path` exist?"""
    for i, hop in enumerate(path):
        before = path[:i]
        match hop:
            case Slot(name):
                sure = Fact(IsNone(name, before), False) in guard
            case Item(name, index):
                sure = index < (length_told(guard, name, before) or 0)
            case Each():
                sure = True
            case _:
                assert_never(hop)
        if not sure:
            return False
    return True


def _unique(items: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(items))

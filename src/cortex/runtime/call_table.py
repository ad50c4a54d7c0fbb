"""What the native linearizer is told about the steps that names stand for, and about calls where those are nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, assert_never

from cortex.errors import InternalError
from cortex.frontend.computed import FUNCTIONS as FUNCTIONS_OF_FIELDS
from cortex.frontend.computed import Computed, Constant, Named, failure
from cortex.frontend.fields import Accessors, Evaluation, Source
from cortex.frontend.torch.accessors import TorchAccessors
from cortex.frontend.torch.calls import PASSING, Relation, Row, Storing
from cortex.frontend.torch.passed_numbers import OF_ITEM, Number, depends_on_item
from cortex.frontend.torch.steps import (
    FUNCTIONS,
    At,
    Attr,
    Called,
    Contains,
    Given,
    Has,
    Kept,
    LookedUp,
    Meant,
    Of,
    Sliced,
    Sorted,
    Step,
    Steps,
    Way,
)
from cortex.ra.ir import (
    Arity,
    Counts,
    Each,
    Field,
    Hop,
    IsAboveLeaves,
    IsLeaf,
    Item,
    Kind,
    Let,
    Model,
    OverChildren,
    Slot,
    State,
    Test,
)

HEAD_ROLE = "head"


def source_for_native(source: Source) -> str | tuple[str, ...] | Callable[[Any], Any] | dict[str, Any]:
    """What a name means, with steps as the linearizer follows them itself."""
    match source:
        case Way(steps, careful):
            return {"steps": _steps_of({}, steps), "careful": careful}
        case Evaluation(accessors, computed):
            return {"steps": [_computed(computed, lambda x: _named_steps(accessors, x))], "careful": False}
    return source


def call_table(m: Model, accessors: TorchAccessors, attributes: Iterable[str]) -> dict[str, Any]:
    """The roles of calls and the relations between them; `attributes` are the names of the model that are neither."""
    relations = accessors.relations_of_calls
    numbers = {name: i for i, name in enumerate(sorted({name for r in relations.values() for name, _ in r.numbers}))}
    places = numbers | {name: len(numbers) + i for i, name in enumerate(OF_ITEM)}
    steps_of = partial(_steps_of, places)
    found = {name: accessors.of_call(name) for name in attributes}
    tags = _tags(relations.values(), found.values())
    number = {tag: i for i, tag in enumerate(tags)}
    order = {name: i for i, name in enumerate(relations)}
    given = [name for r in relations.values() for pair in r.inherits for name in pair]
    rows = [x.name for x in found.values() if isinstance(x, Row)]
    tensors = {name: i for i, name in enumerate(dict.fromkeys([*given, *rows]))}
    ways = {way: i for i, way in enumerate(dict.fromkeys(map(_way, relations.values())))}
    split = {tag for r in relations.values() for tag in r.split}
    gathered = {name: i for i, name in enumerate(dict.fromkeys(g.collection for g in m.gathers))}
    return {
        "tensors": list(tensors),
        "numbers": len(numbers),
        "ways": list(ways),
        "relations": [
            (
                name,
                number[r.role],
                steps_of(r.steps),
                r.is_list,
                r.is_top_down,
                r.looks_up,
                [(tensors[mine], tensors[theirs]) for mine, theirs in r.inherits],
                ways[_way(r)],
                [(numbers[name], _number(places, accessors, x)) for name, x in r.numbers],
                r.is_list and depends_on_item(r.numbers),
            )
            for name, r in relations.items()
        ],
        "roles": [
            (
                tag,
                number[tag + PASSING if tag in split else tag],
                [order[name] for name, r in relations.items() if tag in r.users],
                [order[name] for name, r in relations.items() if tag in r.callers and not r.looks_up],
            )
            for tag in tags
        ],
        "needed": _needed(m),
        "asked": sorted({x for kind in m.kinds for fact in kind.guard for x in _asked(fact.test)}),
        "gathers": [(g.name, g.start, gathered[g.collection]) for g in m.gathers],
        "collects": [[_entries(kind, name) for name in gathered] for kind in m.kinds],
        "attributes": {name: _attribute(name, x, number, tensors, steps_of) for name, x in found.items()},
    }


def _tags(relations: Iterable[Relation], attributes: Iterable[Way | Storing | Row | None]) -> list[str]:
    """The tags of all roles, the head's first."""
    found = {HEAD_ROLE: None}
    for r in relations:
        passing = {tag + PASSING for tag in r.split}
        found |= dict.fromkeys([r.role, *sorted({*r.callers, *r.users, *r.split, *passing})])
    for x in attributes:
        found |= dict.fromkeys(x.roles if isinstance(x, Storing) else ())
    return list(found)


def _needed(m: Model) -> list[list[str]]:
    """For each kind, the relations that its code follows; none where a call's kind depends on other calls'."""
    tests = [fact.test for kind in m.kinds for fact in kind.guard]
    if any(test.path or isinstance(test, IsLeaf | IsAboveLeaves) for test in tests) or any(
        kind.variant_of for kind in m.kinds
    ):
        return []
    starts = {g.name: g.start for g in m.gathers}
    items = {name: p.relation for p in m.positions for name in (p.first, p.last, p.all)}
    behind = {r for kind in m.kinds if kind.of_position for let in kind.lets for r in relations_read(let)}
    needed = []
    for kind in m.kinds:
        own = relations_followed(kind)
        own |= {entry.name for each in kind.collects for entry in each.entries if entry is not None}
        own |= {items[x] for x in own if x in items} | (own & items.keys() and behind)
        own |= {starts[x] for x in (*own, *(name for fact in kind.guard for name in _asked(fact.test))) if x in starts}
        needed.append(sorted(own))
    return needed


def _entries(kind: Kind, collection: str) -> list[tuple[Any, ...]]:
    """What the nodes of a kind add to a collection."""
    entries = next((each.entries for each in kind.collects if each.name == collection), ())
    return [("own",) if entry is None else hop_for_native(entry) for entry in entries]


def hop_for_native(hop: Hop) -> tuple[Any, ...]:
    """One step down the structure, as the linearizer takes it."""
    match hop:
        case Slot(name):
            return ("slot", name)
        case Item(name, index):
            return ("item", name, index)
        case Each(name):
            return ("each", name)
        case _:
            assert_never(hop)


def relations_followed(kind: Kind) -> set[str]:
    """The relations that a kind follows from its nodes."""
    return {name for let in kind.lets for name in relations_read(let)} | {each.relation for each in kind.rows}


def relations_read(let: Let) -> Iterator[str]:
    """The relations that a let follows from the node."""
    if let.over is not None:
        yield let.over
    match let.op:
        case State(_, path) | Field(_, path) if path:
            yield path[0].name
        case Arity(name) | OverChildren(_, _, name):
            yield name


def _asked(test: Test) -> tuple[str, ...]:
    """What a question is about."""
    match test:
        case IsLeaf() | IsAboveLeaves():
            return ()
        case Counts(name, relation):
            return name, relation
    return (test.name,)


def _way(relation: Relation) -> tuple[str, bool]:
    """The name of the way to calls; of those in a list, without the position at its end."""
    return (relation.way(0)[:-1], True) if relation.is_list else (relation.way(None), False)


def _attribute(
    name: str,
    x: Way | Storing | Row | None,
    number: dict[str, int],
    tensors: dict[str, int],
    steps_of: Callable[[Steps], list[tuple[Any, ...]]],
) -> tuple[Any, ...]:
    match x:
        case Way(steps, careful):
            return ("steps", steps_of(steps), careful)
        case Row(tensor, steps, item, is_whole):
            return ("row", steps_of(steps), tensors[tensor], ... if is_whole else item)
        case Storing(roles, steps):
            return ("stored", steps_of(steps), [number[role] for role in roles])
        case None if name in ("call_role", "call_via"):
            return ("role",) if name == "call_role" else ("way",)
        case None:
            raise InternalError(f"nobody says what {name} of a call is")
        case _:
            assert_never(x)


def _computed(computed: Computed, steps: Callable[[Any], list[tuple[Any, ...]]]) -> tuple[Any, ...]:
    """A computed field; `steps` says how an operand is reached."""

    def failed(error: BaseException) -> None:
        raise failure(computed, error) from None

    operands = [("constant", x.value) if isinstance(x, Constant) else ("steps", steps(x)) for x in computed.operands]
    return ("compute", computed.fn, FUNCTIONS_OF_FIELDS[computed.fn], operands, failed)


def _named_steps(accessors: Accessors, operand: Named) -> list[tuple[Any, ...]]:
    """How an attribute is reached: attributes that mean themselves by the linearizer, others by what they mean."""
    found: list[tuple[Any, ...]] = []
    for i, hop in enumerate(operand.path):
        if not (isinstance(hop, Slot) and accessors.source(hop.name) == hop.name):
            rest = Named(operand.name, operand.path[i:])
            return [*found, ("function", "", partial(accessors.operand, operand=rest))]
        found.append(("attribute", hop.name))
    source = accessors.source(operand.name)
    if isinstance(source, Evaluation):
        return [*found, _computed(source.computed, lambda x: _named_steps(accessors, x))]
    if source == operand.name:
        return [*found, ("attribute", operand.name)]
    return [*found, ("function", "", lambda node: accessors.read(node, operand.name, None))]


def _number(places: Mapping[str, int], accessors: TorchAccessors, number: Number) -> list[tuple[Any, ...]]:
    """What leads to a number that a call is given, or gives it."""
    if isinstance(number, Constant):
        return [("constant", number.value)]
    return _steps_of(places, accessors.meant(number))


def _steps_of(places: Mapping[str, int], steps: Steps) -> list[tuple[Any, ...]]:
    """Steps; `places` says where what calls are given stands."""
    return [_step(places, step) for step in steps]


def _step(places: Mapping[str, int], step: Step) -> tuple[Any, ...]:
    match step:
        case Given(name):
            return ("given", places[name])
        case Attr(name):
            return ("attribute", name)
        case At(key):
            return ("item", key)
        case Sliced():
            return ("item", step.slice)
        case Sorted() | Kept():
            return ("function", "", step.of)
        case Called(args):
            return ("call", args)
        case Of(name):
            return ("function", name, FUNCTIONS[name])
        case Contains(key):
            return ("contains", key)
        case Has(name):
            return ("has", name)
        case Meant(_, function):
            return ("function", "", function)
        case LookedUp(_, default, table):
            return ("look up", table, default)
        case Computed():
            return _computed(step, partial(_steps_of, places))
        case _:
            assert_never(step)

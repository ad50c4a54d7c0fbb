"""Kinds of positions: what routines over the items of lists (see arity/sequences.py) are in a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from cortex.frontend.arity.sequences import Body, Routine, Sequences
from cortex.frontend.decision import Traced
from cortex.ra import ir


@dataclass(frozen=True)
class OfPositions:
    """What positions add to a model, and what the states of routines are called in it."""

    kinds: tuple[tuple[str, tuple[ir.Fact, ...], Body, dict[str, str]], ...]
    """Names, guards, bodies, and the results by the names of states."""
    positions: tuple[ir.Positions, ...]
    states: tuple[ir.StateDecl, ...]
    """Those of the model, and more where positions need more."""
    renamed: Mapping[str, str]


def position_kinds(sequences: Iterable[Sequences], states: tuple[ir.StateDecl, ...]) -> OfPositions:
    """The kinds of all positions. Their states are among those of other nodes as far as there are such."""
    every = list(states)
    renamed: dict[str, str] = {}
    kinds: list[tuple[str, tuple[ir.Fact, ...], Body, dict[str, str]]] = []
    positions: list[ir.Positions] = []
    for each in sequences:
        for own in (each.states, *(routine.states for routine in each.routines)):
            renamed |= _placed(own, every)
        has_before = bool(each.states)
        if has_before:
            kinds.append((each.name, (_is(each.name),), each.before, _results(each.states, each.before, renamed)))
        for routine in each.routines:
            kinds += _kinds(routine, renamed)
            positions.append(_positions(routine, each.name if has_before else ""))
    return OfPositions(tuple(kinds), tuple(positions), tuple(every), renamed)


def with_states(lets: tuple[ir.Let, ...], renamed: Mapping[str, str]) -> tuple[ir.Let, ...]:
    """Lets that read states by the names they have in the model."""
    return tuple(
        replace(let, op=replace(let.op, name=renamed[let.op.name]))
        if isinstance(let.op, ir.State) and let.op.name in renamed
        else let
        for let in lets
    )


def rows_of(kind: Traced, renamed: Mapping[str, str]) -> tuple[ir.Rows, ...]:
    """The results of a kind that have rows, with the states by the names they have in the model."""
    found = () if kind.sequences is None else kind.sequences.rows
    return tuple(replace(each, state=renamed[each.state]) for each in found)


def relations(kinds: Iterable[ir.Kind], positions: Iterable[ir.Positions]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The slots and lists of positions that some kind reads, in the order of the routines."""
    used = {name for kind in kinds for name in _names(kind)}
    slots, lists = [], []
    for p in positions:
        own = (p.before, p.owner, *(slot for slot, _ in p.at), p.first, p.last)
        slots += [slot for slot in own if slot in used]
        lists += [p.all] if p.all in used else []
    return tuple(slots), tuple(lists)


def _names(kind: ir.Kind) -> Iterable[str]:
    for let in kind.lets:
        match let.op:
            case ir.State(_, path) | ir.Field(_, path):
                yield from (hop.name for hop in path)
            case ir.OverChildren(_, _, name) | ir.Arity(name):
                yield name
    for fact in kind.guard:
        if isinstance(fact.test, ir.IsNone):
            yield fact.test.name
    yield from (each.relation for each in kind.rows)


def _is(name: str) -> ir.Fact:
    return ir.Fact(ir.Value(ir.POSITION), name)


def _placed(own: tuple[ir.StateDecl, ...], every: list[ir.StateDecl]) -> dict[str, str]:
    """States of the same types, each for one of these; new ones where there are too few."""
    found: dict[str, str] = {}
    for state in own:
        free = next((s.name for s in every if s.type == state.type and s.name not in found.values()), None)
        if free is None:
            every.append(state)
        found[state.name] = state.name if free is None else free
    return found


def _results(states: tuple[ir.StateDecl, ...], body: Body, renamed: Mapping[str, str]) -> dict[str, str]:
    return {renamed[state.name]: result for state, result in zip(states, body.results, strict=True)}


def _kinds(
    routine: Routine, renamed: Mapping[str, str]
) -> Iterable[tuple[str, tuple[ir.Fact, ...], Body, dict[str, str]]]:
    own = _is(routine.name)
    if routine.first is None:
        yield routine.name, (own,), routine.rest, _results(routine.states, routine.rest, renamed)
        return
    for name, body, is_first in (("first", routine.first, True), ("next", routine.rest, False)):
        guard = (own, ir.Fact(ir.IsNone(routine.prev), is_first))
        yield f"{routine.name}_{name}", guard, body, _results(routine.states, body, renamed)


def _positions(routine: Routine, of_owner: str) -> ir.Positions:
    prefix = routine.at("")
    at = tuple((slot, slot.removeprefix(prefix)) for slot in routine.slots() if slot.startswith(prefix))
    return ir.Positions(
        routine.name,
        routine.relation,
        routine.is_forward,
        routine.prev,
        routine.owner,
        routine.end(False),
        routine.end(True),
        routine.name,
        at,
        of_owner,
    )

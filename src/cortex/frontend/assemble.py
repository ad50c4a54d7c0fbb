"""Putting the traced kinds together to an RA model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from cortex.frontend.decision import Traced
from cortex.frontend.kind_names import kind_names
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.position_kinds import position_kinds, relations, rows_of, with_states
from cortex.ra.ir import Fact, Field, FieldDecl, Fill, Kind, Let, Lookup, Model, Param, ParamDecl, StateDecl, TensorType


def assemble(k: Knowledge, guarded: Sequence[tuple[Traced, tuple[Fact, ...]]]) -> Model:
    """The model as known so far: declarations for what its kinds read, and its kinds with their guards."""
    assert k.states is not None
    names = kind_names([guard for _, guard in guarded])
    own = tuple(StateDecl(name, kind) for name, kind in zip(k.states.names, k.states.types, strict=True))
    added = position_kinds({id(t): t.sequences for t, _ in guarded if t.sequences is not None}.values(), own)
    states, renamed = added.states, added.renamed
    kinds = tuple(
        Kind(
            name,
            guard,
            *_complete(with_states(kind.lets, renamed), kind.results, states),
            collects=kind.collects,
            rows=rows_of(kind, renamed),
        )
        for name, (kind, guard) in zip(names, guarded, strict=True)
    )
    kinds += tuple(
        Kind(name, guard, *_complete(with_states(body.lets, renamed), results, states))
        for name, guard, body, results in added.kinds
    )
    kinds = tuple(_with_own_limits(k, kinds))
    slots, lists = relations(kinds, added.positions)
    lets = [let for kind in kinds for let in kind.lets]
    params = dict.fromkeys(let.op.name for let in lets if isinstance(let.op, Param))
    fields = dict.fromkeys(let.op.name for let in lets if isinstance(let.op, Field))
    limits = _limits(kind.lets for kind in kinds)
    return Model(
        name=k.name,
        params=tuple(ParamDecl(name, TensorType(k.weights.shape(name)), k.weights.is_finite(name)) for name in params),
        fields=tuple(FieldDecl(name, k.fields[name], limits.get(name)) for name in fields),
        slots=(*sorted(k.slots), *slots),
        lists=(*sorted(k.lists), *lists),
        states=states,
        kinds=kinds,
        positions=added.positions,
        trees_only=k.trees_only,
        gathers=tuple(gather for name, gather in k.gathers.items() if name in k.lists),
    )


def _complete(
    own: tuple[Let, ...], of_states: Mapping[str, str], states: tuple[StateDecl, ...]
) -> tuple[tuple[Let, ...], tuple[str, ...]]:
    """The lets and results of a kind; states that it does not have are 0."""
    lets, results = list(own), []
    for i, state in enumerate(states):
        if state.name in of_states:
            results.append(of_states[state.name])
        else:
            lets.append(Let(f"no_{i}", Fill(0.0, state.type.shape), state.type))
            results.append(lets[-1].name)
    return tuple(lets), tuple(results)


def _with_own_limits(k: Knowledge, kinds: Sequence[Kind]) -> Iterator[Kind]:
    """Kinds in which a field that indexes larger tables than in other kinds has a name of its own.

    A field has one limit, and each kind is to have its own: `states_of_children[node.first]`.
    """
    least = _limits(kind.lets for kind in kinds)
    for kind in kinds:
        own = {name: limit for name, limit in _limits([kind.lets]).items() if limit > least[name]}
        for name, limit in own.items():
            k.accessors.add_name(f"{name}_below_{limit}", name)
            k.fields[f"{name}_below_{limit}"] = k.fields[name]
        names = {name: f"{name}_below_{limit}" for name, limit in own.items()}
        yield replace(kind, lets=tuple(_renamed(let, names) for let in kind.lets)) if own else kind


def _renamed(let: Let, names: Mapping[str, str]) -> Let:
    if isinstance(let.op, Field) and let.op.name in names:
        return replace(let, op=replace(let.op, name=names[let.op.name]))
    return let


def _limits(bodies: Iterable[tuple[Let, ...]]) -> dict[str, int]:
    """For each field that indexes tables, the number of rows of the smallest one."""
    limits: dict[str, int] = {}
    for lets in bodies:
        by_name = {let.name: let for let in lets}
        for let in lets:
            if isinstance(let.op, Lookup):
                index = by_name[let.op.index].op
                rows = by_name[let.op.table].type.shape[0]
                if isinstance(index, Field):
                    limits[index.name] = min(rows, limits.get(index.name, rows))
    return limits

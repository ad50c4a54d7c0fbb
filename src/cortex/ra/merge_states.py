"""States that are the same for every node are kept once.

before:  kind inner: x = left.node_h; t = ...; states h = t, node_h = t      (and so for every other kind)
after:   kind inner: x = left.h; t = ...; states h = t

A module that returns what it stores on its nodes has each such state twice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from cortex.ra import ir


def equal_states(m: ir.Model, shown: Collection[str]) -> dict[str, str]:
    """The states that equal another one in all kinds, by that one; none of those in `shown`."""
    kept: dict[tuple[ir.TensorType, tuple[ir.Op | str, ...]], str] = {}
    instead: dict[str, str] = {}
    values = [{let.name: let.op for let in kind.lets} for kind in m.kinds]
    for i, state in sorted(enumerate(m.states), key=lambda each: each[1].name not in shown):
        results = zip(values, (kind.results[i] for kind in m.kinds), strict=True)
        key = (state.type, tuple(own[x] if isinstance(own[x], ir.Fill) else x for own, x in results))
        if kept.setdefault(key, state.name) != state.name and state.name not in shown:
            instead[state.name] = kept[key]
    return instead


def merge_states(m: ir.Model, instead: Mapping[str, str]) -> ir.Model:
    """`m` without the states for which there is another one `instead`."""
    if not instead:
        return m

    def renamed(let: ir.Let) -> ir.Let:
        match let.op:
            case ir.State(name) if name in instead:
                return replace(let, op=replace(let.op, name=instead[name]))
            case _:
                return let

    stays = [state.name not in instead for state in m.states]

    def merged(kind: ir.Kind) -> ir.Kind:
        results = tuple(x for x, stay in zip(kind.results, stays, strict=True) if stay)
        rows = tuple(replace(each, state=instead.get(each.state, each.state)) for each in kind.rows)
        return replace(kind, lets=tuple(map(renamed, kind.lets)), results=results, rows=rows)

    states = tuple(state for state, stay in zip(m.states, stays, strict=True) if stay)
    return replace(m, states=states, kinds=tuple(map(merged, m.kinds)))

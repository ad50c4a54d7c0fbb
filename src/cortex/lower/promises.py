"""What the arrays of the linear form promise together, as data that a prover can use.

`linear_form` states the contract in words and declares the facts of each array alone; this file writes down the
rest of that contract: how groups, kinds and edges tile the nodes, and which children a kind of node has.

    for all g: 0 <= g < num_groups  =>  group_start(g) + group_len(g) <= num_nodes
    for all g, n: group_kind(g) == 1, n in group g  =>  child_left(n) >= 0
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from cortex.errors import InternalError
from cortex.ilir.ir import Promise
from cortex.ir.scalar import Binary, Expr, Index, Int, Var
from cortex.ir.simplify import add, sub
from cortex.lower.linear_form import (
    MAX_GROUP,
    MAX_WINDOW,
    NUM_GROUPS,
    NUM_NODES,
    NUM_PARTS,
    NUM_WINDOWS,
    PART_GROUP,
    WINDOW_GROUP,
    max_edges,
    num_edges,
    window_kind,
)
from cortex.ra import ir as ra

G, N, E, P, W, PLACE = (Var(f"of_{name}") for name in ("g", "n", "e", "p", "w", "place"))


def promises(m: ra.Model) -> tuple[Promise, ...]:
    """What holds of every linear form of a model's structures, beyond the facts of its index functions."""
    return (
        *_groups(),
        *_kinds(len(m.kinds)),
        *(p for slot in m.slots for p in _slot(slot, slot not in m.unordered)),
        *(p for relation in m.lists for p in _list(relation, relation not in m.unordered)),
        *(p for n, kind in enumerate(m.kinds) for path in _paths_read(kind) for p in _exists(n, kind.own_group, path)),
    )


def promises_of_parts() -> tuple[Promise, ...]:
    """What a linear form that is divided into parts promises besides: all groups are in one part, and none is empty."""
    first, after = _at(PART_GROUP.name, P), _at(PART_GROUP.name, add(P, 1))
    return (
        Promise((), (), _le(NUM_PARTS, NUM_GROUPS)),
        Promise((), (), _eq(_at(PART_GROUP.name, Int(0)), Int(0))),
        Promise((), (), _eq(_at(PART_GROUP.name, NUM_PARTS), NUM_GROUPS)),
        Promise((P.name,), (_le(Int(0), P), _lt(P, NUM_PARTS)), _lt(first, after)),
    )


def window_first(w: Expr) -> Expr:
    """The least id of the nodes of window `w`: the first of its last group."""
    return _at("group_start", sub(_at(WINDOW_GROUP.name, add(w, 1)), 1))


def promises_of_windows(kinds: tuple[int, ...]) -> tuple[Promise, ...]:
    """What a linear form with windows promises besides: which groups and nodes are in a window, and how many."""
    first, after = _at(WINDOW_GROUP.name, W), _at(WINDOW_GROUP.name, add(W, 1))
    is_window = (_le(Int(0), W), _lt(W, NUM_WINDOWS))
    least, end = window_first(W), add(window_first(W), MAX_WINDOW)
    found = [
        Promise((), (), _eq(_at(WINDOW_GROUP.name, Int(0)), Int(0))),
        Promise((), (), _eq(_at(WINDOW_GROUP.name, NUM_WINDOWS), NUM_GROUPS)),
        Promise((W.name,), is_window, _lt(first, after)),
    ]
    in_window = (*is_window, _le(first, G), _lt(G, after))
    inside = (_le(least, _at("group_start", G)), _le(_end(G), end))
    found += [Promise((W.name, G.name), in_window, then) for then in inside]
    for k in kinds:
        places = window_kind(k).name
        found.append(Promise((), (), _eq(_at(places, Int(0)), _at("kind_start", Int(k)))))
        found.append(Promise((), (), _eq(_at(places, NUM_WINDOWS), _at("kind_start", Int(k + 1)))))
        here = (*is_window, _le(_at(places, W), PLACE), _lt(PLACE, _at(places, add(W, 1))))
        node = _at("kind_node", PLACE)
        found += [Promise((W.name, PLACE.name), here, then) for then in (_le(least, node), _lt(node, end))]
    return tuple(found)


def _groups() -> Iterator[Promise]:
    later = Var("of_later")
    yield Promise((), (), _le(MAX_GROUP, NUM_NODES))
    yield Promise((), (), _le(NUM_GROUPS, NUM_NODES))
    yield Promise((G.name,), _is_group(G), _le(_end(G), NUM_NODES))
    yield Promise((G.name,), _is_group(G), _le(Int(1), _at("group_len", G)))
    yield Promise(
        (G.name, later.name),
        (_le(Int(0), G), _lt(G, later), _lt(later, NUM_GROUPS)),
        _le(_end(later), _at("group_start", G)),
    )


def _kinds(count: int) -> Iterator[Promise]:
    yield Promise((), (), _eq(_at("kind_start", Int(0)), Int(0)))
    yield Promise((), (), _eq(_at("kind_start", Int(count)), NUM_NODES))


def _slot(slot: str, is_ordered: bool) -> Iterator[Promise]:
    """A child is in a group that ran before its parent's, and so has a greater id than all nodes of that group."""
    child = _at(f"child_{slot}", N)
    yield Promise((N.name,), (_le(Int(0), N), _lt(N, NUM_NODES)), _le(Int(-1), child))
    if is_ordered:
        yield Promise((G.name, N.name), _in_group(G, N), Binary("or", _eq(child, Int(-1)), _le(_end(G), child)))


def _list(relation: str, is_ordered: bool) -> Iterator[Promise]:
    ptr, child, parent = (f"{relation}_{part}" for part in ("ptr", "child", "parent"))
    yield Promise((), (), _le(max_edges(relation), num_edges(relation)))
    yield Promise((), (), _eq(_at(ptr, Int(0)), Int(0)))
    yield Promise((), (), _eq(_at(ptr, NUM_NODES), num_edges(relation)))
    edges_of_group = sub(_at(ptr, _end(G)), _at(ptr, _at("group_start", G)))
    yield Promise((G.name,), _is_group(G), _le(edges_of_group, max_edges(relation)))
    is_edge = (_le(Int(0), E), _lt(E, num_edges(relation)))
    yield Promise((E.name,), is_edge, _le(_at(ptr, _at(parent, E)), E))
    yield Promise((E.name,), is_edge, _lt(E, _at(ptr, add(_at(parent, E), 1))))
    if is_ordered:
        yield Promise((E.name,), is_edge, _lt(_at(parent, E), _at(child, E)))
        yield Promise((G.name, E.name), (*is_edge, *_in_group(G, _at(parent, E))), _le(_end(G), _at(child, E)))


def _paths_read(kind: ra.Kind) -> tuple[tuple[ra.Hop, ...], ...]:
    """The paths along which a kind reads states or fields or writes states, and all paths on the way."""
    whole: list[tuple[ra.Hop, ...]] = [let.op.path for let in kind.lets if isinstance(let.op, ra.State | ra.Field)]
    whole += [child.path for child in kind.inlined]
    return tuple(dict.fromkeys(path[:length] for path in whole for length in range(1, len(path) + 1)))


def _exists(kind: int, own_group: bool, path: tuple[ra.Hop, ...]) -> Iterator[Promise]:
    """The node at the end of `path` exists, seen from every node of the kind; the linearizer refuses other structures.

    Said twice, as a node's kind is known in two ways: by its group (in a shared group, by `node_kind`), and by its
    place in `kind_node`.
    """

    def of_kind(node: Expr) -> Expr:
        return _eq(_at("group_kind", G) if own_group else _at("node_kind", node), Int(kind))

    if isinstance(path[0], ra.Each):
        if len(path) > 1:
            edge = (_le(Int(0), E), _lt(E, num_edges(path[0].name)))
            first = _at(f"{path[0].name}_child", E)
            parent = _at(f"{path[0].name}_parent", E)
            given = (*edge, of_kind(parent), *_in_group(G, parent))
            yield Promise((G.name, E.name), given, _present(first, path[1:]))
        return
    yield Promise((G.name, N.name), (of_kind(N), *_in_group(G, N)), _present(N, path))
    here = (_le(_at("kind_start", Int(kind)), PLACE), _lt(PLACE, _at("kind_start", Int(kind + 1))))
    yield Promise((PLACE.name,), here, _present(_at("kind_node", PLACE), path))


def _present(node: Expr, path: tuple[ra.Hop, ...]) -> Expr:
    """The last node of `path` from `node` exists, given that those before it do."""
    first, rest = path[0], path[1:]
    match first:
        case ra.Slot(name):
            child = _at(f"child_{name}", node)
            there = _le(Int(0), child)
        case ra.Item(name, index):
            edge = add(_at(f"{name}_ptr", node), index)
            child = _at(f"{name}_child", edge)
            there = _lt(edge, _at(f"{name}_ptr", add(node, 1)))
        case ra.Each(name):
            raise InternalError(f"'each of {name}' below another hop")
        case _:
            assert_never(first)
    return _present(child, rest) if rest else there


def _at(fn: str, argument: Expr) -> Expr:
    return Index(fn, (argument,))


def _end(g: Expr) -> Expr:
    return Binary("add", _at("group_start", g), _at("group_len", g))


def _is_group(g: Expr) -> tuple[Expr, ...]:
    return _le(Int(0), g), _lt(g, NUM_GROUPS)


def _in_group(g: Expr, n: Expr) -> tuple[Expr, ...]:
    return (*_is_group(g), _le(_at("group_start", g), n), _lt(n, _end(g)))


def _le(x: Expr, y: Expr) -> Expr:
    return Binary("le", x, y)


def _lt(x: Expr, y: Expr) -> Expr:
    return Binary("lt", x, y)


def _eq(x: Expr, y: Expr) -> Expr:
    return Binary("eq", x, y)

"""The linear form of a backward pass, made from that of the forward pass.

Node i of n becomes node n-1-i, so that users, which have smaller ids than what they use, have greater ones. The groups
are those of the forward pass in reverse. All of lower/linear_form.py holds: users are in groups that ran before.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from cortex.gradient.backward import Gradient, Use
from cortex.lower.linear_form import WINDOW_NODES, LinearForm, max_edges, num_edges
from cortex.ra import ir as ra
from cortex.runtime.storage import Array


def backward_form(g: Gradient, form: LinearForm, windows: tuple[int, ...] | None = None) -> LinearForm:
    """The backward form without float fields; with `windows`, that of programs which compute these kinds by windows."""
    m, a = g.backward, form.arrays
    count = form.sizes["num_nodes"]
    arrays: dict[str, Any] = {
        "group_start": _int32(count - (a["group_start"] + a["group_len"])[::-1]),
        "group_len": _int32(a["group_len"][::-1]),
        "group_kind": _int32(a["group_kind"][::-1]),
        "kind_start": _int32(a["kind_start"]),
        "kind_node": _turned(a["kind_node"], a["kind_start"], count),
    }
    for slot in m.slots:
        child = a[f"child_{slot}"][::-1]
        arrays[f"child_{slot}"] = _int32(np.where(child < 0, -1, count - 1 - child))
    sizes = {name: form.sizes[name] for name in ("num_nodes", "num_groups", "num_roots", "max_group")}
    uses = {use.relation: use for use in g.uses}
    for relation in m.lists:
        use = uses.get(relation)
        above, below = _edges(form, relation) if use is None else _users(form, use)
        _add_list(relation, count - 1 - above, count - 1 - below, arrays, sizes)
    for f in m.fields:
        if f.type.dtype == "i64":
            arrays[f"field_{f.name}"] = _int32(a[f"field_{f.name}"][::-1])
    if windows is not None:
        _add_windows(windows, arrays, sizes)
    return LinearForm(sizes, arrays, {})


def targets(form: LinearForm, nodes: Array, path: tuple[ra.Hop, ...]) -> Array:
    """The nodes at the end of a path without `Each`."""
    for hop in path:
        match hop:
            case ra.Slot(name):
                nodes = form.arrays[f"child_{name}"][nodes]
            case ra.Item(name, index):
                nodes = form.arrays[f"{name}_child"][form.arrays[f"{name}_ptr"][nodes] + index]
            case ra.Each():
                raise AssertionError("a list in the middle of a path")
    return nodes


def nodes_of(form: LinearForm, kind: int) -> Array:
    """The nodes of a kind in the order of their ids."""
    start = form.arrays["kind_start"]
    found: Array = form.arrays["kind_node"][start[kind] : start[kind + 1]][::-1]
    return found


def _users(form: LinearForm, use: Use) -> tuple[Array, Array]:
    """The nodes that are used, and their users: pairs in the order of users, then of their edges."""
    users = np.sort(np.concatenate([nodes_of(form, kind) for kind in use.kinds]))
    if isinstance(use.path[0], ra.Each):
        relation = use.path[0].name
        is_user = np.zeros(form.sizes["num_nodes"], bool)
        is_user[users] = True
        parent, child = form.arrays[f"{relation}_parent"], form.arrays[f"{relation}_child"]
        chosen = is_user[parent]
        return child[chosen], parent[chosen]
    return targets(form, users, use.path), users


def _edges(form: LinearForm, relation: str) -> tuple[Array, Array]:
    return form.arrays[f"{relation}_parent"], form.arrays[f"{relation}_child"]


def _add_list(name: str, above: Array, below: Array, arrays: dict[str, Any], sizes: dict[str, int]) -> None:
    """The list relation from `above` to `below`, ids of the backward form, keeping the order of equal ones."""
    order = np.argsort(above, kind="stable")
    count = sizes["num_nodes"]
    pointers = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(above, minlength=count), out=pointers[1:])
    arrays[f"{name}_ptr"] = pointers
    arrays[f"{name}_child"] = _int32(below[order])
    arrays[f"{name}_parent"] = _int32(above[order])
    start = arrays["group_start"]
    per_group = pointers[start + arrays["group_len"]] - pointers[start]
    sizes[num_edges(name).name] = len(above)
    sizes[max_edges(name).name] = int(per_group.max(initial=0))


def _turned(kind_node: Array, kind_start: Array, count: int) -> Array:
    """`kind_node` of the backward form: ids fall within a kind, as they did."""
    pieces = [kind_node[a:b][::-1] for a, b in pairwise(kind_start)]
    return _int32(count - 1 - np.concatenate(pieces)) if pieces else kind_node


def _add_windows(kinds: tuple[int, ...], arrays: dict[str, Any], sizes: dict[str, int]) -> None:
    """Windows of neighbouring groups, and where the nodes of each kind begin in them."""
    lengths = arrays["group_len"].tolist()
    bounds, held, largest = [0], 0, 0
    for number, length in enumerate(lengths):
        if held and held + length > WINDOW_NODES:
            bounds.append(number)
            held = 0
        held += length
        largest = max(largest, held)
    bounds.append(len(lengths))
    sizes |= {"num_windows": len(bounds) - 1, "max_window": largest}
    arrays["window_group"] = np.array(bounds, np.int32)
    ends = np.concatenate([[sizes["num_nodes"]], arrays["group_start"]])[bounds]
    starts = arrays["kind_start"]
    for kind in kinds:
        first, last = int(starts[kind]), int(starts[kind + 1])
        places = np.searchsorted(-arrays["kind_node"][first:last], -ends, side="right")
        arrays[f"window_kind_{kind}"] = _int32(first + places)


def _int32(x: Any) -> Array:
    return np.ascontiguousarray(x, dtype=np.int32)


def row_fields(g: Gradient, form: LinearForm, tables: Mapping[str, Array]) -> dict[str, Array]:
    """The rows of tables that nodes read, by the names of the fields that stand for them."""
    return {r.name: tables[r.table][form.arrays[f"field_{r.index}"]] for r in g.rows}

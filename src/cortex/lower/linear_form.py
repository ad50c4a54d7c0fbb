"""The linear form: the integer arrays that stand for a forest, and what is promised of them.

This is the contract between the compiler, which reads these arrays through index functions, and the
linearizer, which fills them. It is stated here and nowhere else.

Nodes. Every node of a request gets an id 0..num_nodes-1. A node reached twice by identity is one node; with
`dedup`, so are nodes of one kind whose fields are equal, bit by bit, and whose children are the same nodes.

Groups. The nodes that run together are a *group*. All of the following holds under every batching policy, and is all
that compiled code relies on:

* the nodes of a group have consecutive ids; no child of a node of a group is in the group;
* a child's id is greater than its parent's, and its group runs before;
* groups are listed in the order they run; `group_start` falls, and group 0 ends at num_nodes;
* the nodes of a group are of one kind; or the group is shared by the kinds without groups of their own, and then its
  kind is the first of those in the model, and `node_kind` tells its nodes apart;
* within a group, nodes stand in the order of first visit of a preorder walk over the roots in order (for arrays: in
  the order of the user's indices). That makes numbering a function of the request alone.

Which nodes are a group is the policy's:

    height   one height and kind. Height is 0 for a node without children and one more than the highest child
             otherwise. Groups run by height, ascending, and within a height in the order of the model's kinds. Ids
             fall with height, so that leaves come last and are one group for each kind.
    depth    one depth and kind. Depth is 0 for a node that is nobody's child and one more than the deepest parent
             otherwise. Groups run by depth, descending, and within a depth in the order of the model's kinds. Ids
             rise with depth, so that nodes that are nobody's child come first; leaves are anywhere.
    agenda   all nodes of one kind that are ready, their children having run, again and again. The level of a node is
             the greatest number of nodes of its kind on a way down from it, itself included (1, in models of more than
             32 kinds). The next nodes of a kind are those that have not run and whose level is at most one more than
             the groups it has had; its ready nodes are among them. It is the turn of the kind of whose next nodes the
             greatest share is ready; of equals, that with most ready nodes, then the first in the model. Leaves are
             anywhere, in one group for each kind of leaf.
    none     one node. Groups run in the order of policy `height`, so that leaves come last.

Parts. For programs that compute whole structures at once, each by one thread, a request is divided into parts: so
many as there are threads, or fewer, where it falls into fewer sets of nodes that no edge connects. Such a set is in
one part; the largest is given out first, each to the part that has fewest nodes so far (of equals, the set that has
the first node, the first part). All of the above holds, and

* the policy's groups are cut at the parts: the nodes of a group are of one part;
* the groups of a part are listed one after the other, and so its nodes have consecutive ids; no part is empty;
* a child is in its parent's part.

With one part, and for programs that need none, groups and ids are those of the policy alone.

Windows. For programs that compute what does not depend on children ahead of the groups, but not for all of them at
once, the groups are divided into windows: neighbours in the order they run, as many as have at most 256 nodes
together, and at least one. So the nodes of a window have consecutive ids, and those of one kind stand together in
`kind_node`. A program has parts or windows, not both.

Variants. Where a model has kinds that inline nodes below them, to a depth of D levels, kinds are chosen anew after all
nodes have kind and height: a node whose height is no multiple of D and whose one parent is just one higher is inlined
by that parent, if both kinds have variants for it, and by whoever inlines the parent. A node that nobody inlines gets
the variant that inlines just those nodes, and they get the variant that computes nothing. So a group whose height is a
multiple of D computes D levels. A node with several parents, in a DAG, is never inlined, and nor is a leaf.

Arrays (int32 in memory; an index function of one argument each):

    name             domain           facts
    group_start      groups           in_nodes
    group_len        groups           >= 1
    group_kind       groups           < num_kinds; of a shared group, the first kind that shares
    kind_start       kinds + 1        increasing; kind_node[kind_start[k] : kind_start[k+1]] are the nodes of kind k
    kind_node        nodes            in_nodes; a permutation, ids falling within a kind
    node_kind        nodes            < num_kinds; only where kinds share groups
    part_group       parts + 1        increasing; part p has the groups part_group[p] .. part_group[p+1]-1; only for
                                      programs that compute by parts
    window_group     windows + 1      increasing; window w has the groups window_group[w] .. window_group[w+1]-1; only
                                      for programs that compute by windows
    window_kind_K    windows + 1      increasing; kind_node[window_kind_K[w] : window_kind_K[w+1]] are the nodes of kind
                                      K in window w; only for the kinds of which a program computes something ahead
    child_SLOT       nodes            id of the child in attribute SLOT, or -1 where there is none; below
    LIST_ptr         nodes + 1        increasing; node n's edges are LIST_ptr[n] .. LIST_ptr[n+1]-1, in child order
    LIST_child       edges of LIST    in_nodes; the child at the lower end of an edge; greater than LIST_parent
    LIST_parent      edges of LIST    in_nodes; increasing; the node at the upper end
    field_NAME       nodes            an integer field; 0 <= value < limit where a table is indexed; 0 for nodes
                                      whose kind does not read it
    root             roots            in_nodes; the node of each structure of the request, in order
    order            user nodes       in_nodes; user's i-th node (first visit in preorder, or index) -> id; injective
                                      unless `dedup` made several nodes one

Relations that a model calls `unordered` lead to nodes outside of the group, with greater or smaller ids. Only fields
are read through them.

Edges of the nodes of a group are therefore consecutive too: LIST_ptr[start] .. LIST_ptr[start + len].

Float fields are buffers field_NAME of shape (num_nodes, *shape), with rows padded like every other buffer.

Sizes: num_nodes, num_groups, num_roots, max_group (nodes of the largest group), and for each list relation
num_LIST_edges and max_LIST_edges (edges of the largest group). For programs that compute by parts there is num_parts,
for those that compute by windows num_windows and max_window (nodes of the largest window);
with `dedup` there is also num_user_nodes, which no program takes: the extent of `order`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cortex.ilir.ir import IndexFunction
from cortex.ir.scalar import Binary, Expr, Int, Var
from cortex.ra.ir import Model

NUM_NODES = Var("num_nodes")
NUM_GROUPS = Var("num_groups")
NUM_ROOTS = Var("num_roots")
MAX_GROUP = Var("max_group")
NUM_PARTS = Var("num_parts")
NUM_WINDOWS = Var("num_windows")
MAX_WINDOW = Var("max_window")

PART_GROUP = IndexFunction(
    "part_group",
    Binary("add", NUM_PARTS, Int(1)),
    ("increasing", "non_negative"),
    Binary("add", NUM_GROUPS, Int(1)),
)
"""Declared, with the size `num_parts`, by programs that compute by parts."""


WINDOW_GROUP = IndexFunction(
    "window_group",
    Binary("add", NUM_WINDOWS, Int(1)),
    ("increasing", "non_negative"),
    Binary("add", NUM_GROUPS, Int(1)),
)
"""Declared, with the sizes `num_windows` and `max_window`, by programs that compute by windows."""

WINDOW_KIND = "window_kind_"
WINDOW_NODES = 256
"""The most nodes of a window that has several groups."""


def window_kind(kind: int) -> IndexFunction:
    """Where the nodes of a kind in each window begin in `kind_node`."""
    after_nodes = Binary("add", NUM_NODES, Int(1))
    return IndexFunction(f"{WINDOW_KIND}{kind}", WINDOW_GROUP.extent, ("increasing", "non_negative"), after_nodes)


def kinds_in_windows(index_functions: Iterable[str]) -> tuple[int, ...]:
    """The kinds of which a program that takes these index functions computes something by windows."""
    return tuple(int(name.removeprefix(WINDOW_KIND)) for name in index_functions if name.startswith(WINDOW_KIND))


def num_edges(relation: str) -> Var:
    """The number of edges of a list relation, as a size of the program."""
    return Var(f"num_{relation}_edges")


def max_edges(relation: str) -> Var:
    """The number of edges of a list relation in the group that has most of them."""
    return Var(f"max_{relation}_edges")


def shared_kinds(m: Model) -> tuple[int, ...]:
    """The numbers of the kinds that share groups."""
    return tuple(number for number, kind in enumerate(m.kinds) if not kind.own_group)


def sizes(m: Model) -> tuple[str, ...]:
    """Names of the integer inputs of a program over the linear form, in order."""
    per_list = tuple(v.name for r in m.lists for v in (num_edges(r), max_edges(r)))
    return (NUM_NODES.name, NUM_GROUPS.name, NUM_ROOTS.name, MAX_GROUP.name, *per_list)


def index_functions(m: Model) -> tuple[IndexFunction, ...]:
    """The index functions of a model's linear form with their declared facts, in order."""
    one_more: Expr = Binary("add", NUM_NODES, Int(1))
    kinds = Int(len(m.kinds))
    functions = [
        IndexFunction("group_start", NUM_GROUPS, ("in_nodes", "non_negative"), NUM_NODES),
        IndexFunction("group_len", NUM_GROUPS, ("non_negative",), Binary("add", MAX_GROUP, Int(1))),
        IndexFunction("group_kind", NUM_GROUPS, ("non_negative",), kinds),
        IndexFunction("kind_start", Int(len(m.kinds) + 1), ("increasing", "non_negative"), one_more),
        IndexFunction("kind_node", NUM_NODES, ("in_nodes", "non_negative", "injective"), NUM_NODES),
    ]
    if shared_kinds(m):
        functions.append(IndexFunction("node_kind", NUM_NODES, ("non_negative",), kinds))
    functions += [
        IndexFunction(f"child_{s}", NUM_NODES, (*(() if s in m.unordered else ("below",)), "outside_group"), NUM_NODES)
        for s in m.slots
    ]
    for r in m.lists:
        edges = num_edges(r)
        functions += [
            IndexFunction(f"{r}_ptr", one_more, ("increasing", "non_negative"), Binary("add", edges, Int(1))),
            IndexFunction(f"{r}_child", edges, ("in_nodes", "non_negative", "outside_group"), NUM_NODES),
            IndexFunction(f"{r}_parent", edges, ("in_nodes", "increasing", "non_negative"), NUM_NODES),
        ]
    functions += [
        IndexFunction(f"field_{f.name}", NUM_NODES, ("non_negative",), Int(f.limit))
        if f.limit
        else IndexFunction(f"field_{f.name}", NUM_NODES)
        for f in m.fields
        if f.type.dtype == "i64"
    ]
    return tuple(functions)


@dataclass(frozen=True)
class LinearForm:
    """A linearized request as NumPy arrays, for the interpreters, reports and tests."""

    sizes: dict[str, int]
    arrays: dict[str, Any]
    fields: dict[str, Any]

    def digest(self) -> str:
        """Equal for equal requests."""
        digest = hashlib.sha256(repr(sorted(self.sizes.items())).encode())
        for name, array in (*sorted(self.arrays.items()), *sorted(self.fields.items())):
            digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()

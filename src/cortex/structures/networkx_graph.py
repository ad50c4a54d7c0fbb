"""Directed graphs of NetworkX as arrays. Nodes are numbered in the graph's order; errors call them by their names."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from cortex.errors import StructureError
from cortex.runtime.forest import Forest
from cortex.structures.columns import Chosen, chosen, stacked


def from_networkx(graph: Any, *, child: Literal["source", "target"], fields: Chosen = None) -> Forest:
    """The forest of a `networkx.DiGraph` or `MultiDiGraph`.

    `child` says which end of an edge is the child: "target" where edges lead from parents to children, "source" where
    they lead from children to parents. The children of a node stand in the order in which its edges were added; the
    roots are the nodes that are nobody's child.

    `fields` says for each of the model's names the node attribute, or a function of the node's dictionary of
    attributes; a list of names keeps them; by default all attributes are fields. A node that lacks an attribute may
    not be where the model reads it.
    """
    if not graph.is_directed():
        raise StructureError(
            f"from_networkx({type(graph).__name__}): its edges have no direction; give a DiGraph, as "
            "networkx.bfs_tree(graph, root) makes"
        )
    if child not in ("source", "target"):
        raise StructureError(
            f"from_networkx(child={child!r}): say which end of an edge is the child, 'target' where edges lead from "
            "parents to children, 'source' where they lead from children to parents"
        )
    names = list(graph.nodes)
    number = {name: i for i, name in enumerate(names)}
    adjacency = graph.succ if child == "target" else graph.pred
    below = [list(adjacency[name].items()) for name in names]
    if graph.is_multigraph():
        index = [[number[name] for name, edges in items for _ in edges] for items in below]
    else:
        index = [[number[name] for name, _ in items] for items in below]
    pointer = np.concatenate(([0], np.cumsum([len(items) for items in index], dtype=np.int64)))
    flat = np.array([i for items in index for i in items], dtype=np.int64)
    attributes = [graph.nodes[name] for name in names]
    available = list(dict.fromkeys(key for data in attributes for key in data if isinstance(key, str)))
    columns = {
        name: stacked([data.get(source) if isinstance(source, str) else source(data) for data in attributes])
        for name, source in chosen("from_networkx", fields, available).items()
    }
    return Forest.from_children(pointer, flat, columns, names=names)

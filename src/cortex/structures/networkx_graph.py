"""Directed graphs of NetworkX as arrays. Nodes are numbered in the graph's order; errors call them by their names."""

from __future__ import annotations

from itertools import chain
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
    attributes = dict(graph.nodes(data=True))
    number = {name: i for i, name in enumerate(attributes)}
    neighbours = dict((graph.reverse(copy=False) if child == "source" else graph).adjacency())
    if graph.is_multigraph():
        below = [[number[other] for other, edges in neighbours[name].items() for _ in edges] for name in number]
    else:
        below = [[number[other] for other in neighbours[name]] for name in number]
    parents = np.repeat(np.arange(len(below)), np.array([len(found) for found in below], dtype=np.int64))
    children = np.fromiter(chain.from_iterable(below), np.int64, len(parents))
    keys = dict.fromkeys(chain.from_iterable(attributes.values()))
    available = [key for key in keys if isinstance(key, str)] if attributes else None
    columns = {
        name: stacked([data.get(source) if isinstance(source, str) else source(data) for data in attributes.values()])
        for name, source in chosen("from_networkx", fields, available).items()
    }
    ends = (children, parents) if child == "source" else (parents, children)
    return Forest.from_edges(*ends, child=child, num_nodes=len(below), fields=columns, names=list(number))

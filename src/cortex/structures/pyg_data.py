"""Graphs of PyTorch Geometric as arrays: `Data`, or a `Batch` of several, each with its own roots."""

from __future__ import annotations

from typing import Any, Literal

from cortex.errors import StructureError
from cortex.runtime.forest import Forest
from cortex.structures.columns import Chosen, array_of, chosen, column


def from_pyg(data: Any, *, child: Literal["source", "target"], fields: Chosen = None) -> Forest:
    """The forest of a `torch_geometric.data.Data`: `edge_index` are the edges, tensors per node are the fields.

    `child` says which end of an edge is the child: "source" where edges lead from children to parents, the way in
    which messages are passed, "target" where they lead from parents to children. `fields` says for each of the
    model's names the attribute of `data` or an array with an entry per node; a list of names keeps them; by default
    all tensors with a row per node are fields. Whole numbers of shape (n, 1) are one number per node.
    """
    edges = None if hasattr(data, "edge_types") else getattr(data, "edge_index", None)
    if edges is None:
        raise StructureError(
            f"from_pyg({type(data).__name__}): it has no edge_index; give a homogeneous Data with edges "
            "(HeteroData.to_homogeneous() makes one)"
        )
    ends = array_of(edges)
    if ends.ndim != 2 or ends.shape[0] != 2:
        raise StructureError(f"from_pyg: edge_index has shape {ends.shape}; it must be (2, number of edges)")
    available = data.keys() if fields is not None else [key for key in data.keys() if data.is_node_attr(key)]  # noqa: SIM118
    columns = {
        name: column(data[source] if isinstance(source, str) else source)
        for name, source in chosen("from_pyg", fields, list(available)).items()
    }
    return Forest.from_edges(ends[0], ends[1], child=child, num_nodes=data.num_nodes or 0, fields=columns)

"""Graphs of DGL as arrays, by what they say of themselves: `edges()`, `num_nodes()` and `ndata`."""

from __future__ import annotations

from typing import Any, Literal

from cortex.errors import StructureError
from cortex.runtime.forest import Forest
from cortex.structures.columns import Chosen, array_of, chosen, column


def from_dgl(graph: Any, *, child: Literal["source", "target"], fields: Chosen = None) -> Forest:
    """The forest of a homogeneous `dgl.DGLGraph`, or of any object with its `edges()`, `num_nodes()` and `ndata`.

    `child` says which end of an edge is the child: "source" where edges lead from children to parents, the way in
    which messages are passed, "target" where they lead from parents to children. `fields` says for each of the
    model's names the key in `ndata` or an array with an entry per node; a list of names keeps them; by default all of
    `ndata` are fields. Whole numbers of shape (n, 1) are one number per node.
    """
    if len(getattr(graph, "ntypes", ())) > 1 or len(getattr(graph, "etypes", ())) > 1:
        raise StructureError(
            "from_dgl: the graph has several types of nodes or edges; give a homogeneous graph, as "
            "dgl.to_homogeneous makes"
        )
    source, target = graph.edges()
    columns = {
        name: column(graph.ndata[given] if isinstance(given, str) else given)
        for name, given in chosen("from_dgl", fields, list(graph.ndata.keys())).items()
    }
    ends = (array_of(source), array_of(target))
    return Forest.from_edges(*ends, child=child, num_nodes=graph.num_nodes(), fields=columns)

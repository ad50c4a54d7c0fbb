"""Graphs by the interface of DGL, which itself does not import beside current PyTorch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from models_of_packages import WEIGHTS, close, words_everywhere, words_everywhere_by

import cortex
from cortex.errors import StructureError
from cortex.structures import from_dgl

torch = pytest.importorskip("torch")
FAST = cortex.compile(words_everywhere, WEIGHTS)
SOURCE, TARGET, WORD = [3, 4, 1, 2, 4], [1, 1, 0, 0, 2], [5, 6, 7, 8, 9, 10]


def graph(**more: Any) -> Any:
    """What `dgl.graph((source, target), num_nodes=6)` says of itself."""
    return SimpleNamespace(
        **{
            "edges": lambda: (torch.tensor(SOURCE), torch.tensor(TARGET)),
            "num_nodes": lambda: 6,
            "ndata": {"word": torch.tensor(WORD), "x": torch.arange(12.0).reshape(6, 2)},
            "ntypes": ["_N"],
            "etypes": ["_E"],
            **more,
        }
    )


def test_edges_and_data_of_nodes() -> None:
    forest = from_dgl(graph(), child="source")
    expected = words_everywhere_by(
        lambda n: [s for s, t in zip(SOURCE, TARGET, strict=True) if t == n], lambda n: WORD[n]
    )
    close(FAST(forest).nodes.out, [expected(n) for n in range(6)])
    assert forest.roots.tolist() == [0, 5]
    np.testing.assert_array_equal(forest.fields["x"], np.arange(12, dtype=np.float32).reshape(6, 2))
    assert from_dgl(graph(), child="target").roots.tolist() == [3, 4, 5]


def test_fields_chosen_and_renamed() -> None:
    assert list(from_dgl(graph(), child="source", fields=["word"]).fields) == ["word"]
    renamed = from_dgl(graph(), child="source", fields={"features": "x", "number": np.arange(6)}).fields
    assert sorted(renamed) == ["features", "number"]


def test_what_is_wrong() -> None:
    with pytest.raises(StructureError, match="several types of nodes or edges; give a homogeneous graph"):
        from_dgl(graph(ntypes=["a", "b"]), child="source")
    with pytest.raises(StructureError, match="the nodes have no attribute 'h'; there are 'word', 'x'"):
        from_dgl(graph(), child="source", fields=["h"])
    both_ways = (torch.tensor([0, 1]), torch.tensor([1, 0]))
    with pytest.raises(StructureError, match="node 0 is below itself: 0 -> 1 -> 0"):
        from_dgl(graph(edges=lambda: both_ways), child="source")

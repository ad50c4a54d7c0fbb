"""torch_geometric's Data as forests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from models_of_packages import SIZE, VOCAB, WEIGHTS, close, words_everywhere, words_everywhere_by

import cortex
from cortex import Forest
from cortex.errors import StructureError
from cortex.structures import from_pyg, join

torch = pytest.importorskip("torch")
FAST = cortex.compile(words_everywhere, WEIGHTS)


@pytest.fixture
def pyg(torch_geometric: Any) -> Any:
    return torch_geometric.data


def random_data(pyg: Any, seed: int, nodes: int = 20) -> Any:
    """Edges from nodes to earlier ones: messages go up."""
    rng = torch.Generator().manual_seed(seed)
    source = torch.arange(1, nodes)
    extra = torch.randint(1, nodes, (nodes // 2,), generator=rng)
    ends = [torch.cat([source, extra])]
    ends += [torch.tensor([int(torch.randint(0, int(s), (1,), generator=rng)) for s in ends[0]])]
    return pyg.Data(
        x=torch.randn(nodes, 3, generator=rng),
        word=torch.randint(0, VOCAB, (nodes, 1), generator=rng),
        edge_index=torch.stack(ends),
        edge_attr=torch.randn(len(ends[0]), 2, generator=rng),
        y=torch.tensor([1]),
    )


def expected(data: Any, turned: bool = False) -> Any:
    source, target = data.edge_index.tolist() if not turned else data.edge_index.flip(0).tolist()
    return words_everywhere_by(
        lambda n: [s for s, t in zip(source, target, strict=True) if t == n], lambda n: int(data.word[n])
    )


@pytest.mark.parametrize("seed", range(4))
def test_messages_from_children_to_parents(pyg: Any, seed: int) -> None:
    data = random_data(pyg, seed)
    forest = from_pyg(data, child="source")
    assert sorted(forest.fields) == ["word", "x"]
    out = FAST(forest)
    close(out.nodes.out, [expected(data)(n) for n in range(data.num_nodes)])
    turned = FAST(from_pyg(data, child="target"))
    close(turned.nodes.out, [expected(data, turned=True)(n) for n in range(data.num_nodes)])


def test_features_are_the_tensors(pyg: Any) -> None:
    data = random_data(pyg, 0)
    data.x = data.x.to(torch.bfloat16).requires_grad_()
    forest = from_pyg(data, child="source", fields={"features": "x", "word": np.arange(20)})
    np.testing.assert_array_equal(forest.fields["features"], data.x.detach().float().numpy())
    np.testing.assert_array_equal(forest.fields["word"], np.arange(20))


def test_a_batch_is_one_forest_and_joining_forests_is_the_same(pyg: Any) -> None:
    graphs = [random_data(pyg, seed, 5 + seed) for seed in range(3)]
    whole = FAST(from_pyg(pyg.Batch.from_data_list(graphs), child="source"))
    joined = FAST(join([from_pyg(g, child="source") for g in graphs]))
    np.testing.assert_array_equal(whole.out, joined.out)
    np.testing.assert_array_equal(whole.nodes.out, joined.nodes.out)
    np.testing.assert_array_equal(whole.out, np.concatenate([FAST(from_pyg(g, child="source")).out for g in graphs]))


def test_empty_graphs_and_isolated_nodes(pyg: Any) -> None:
    none = torch.zeros((2, 0), dtype=torch.long)
    data = pyg.Data(word=torch.tensor([1, 2]), edge_index=none, num_nodes=2)
    close(FAST(from_pyg(data, child="source")).out, np.tanh(WEIGHTS["emb"][1:3]))
    nothing = pyg.Data(word=torch.zeros(0, dtype=torch.long), edge_index=none, num_nodes=0)
    assert FAST(from_pyg(nothing, child="source")).out.shape == (0, SIZE)


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (
            lambda pyg: pyg.Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2),
            {},
            "node 0 is below itself: 0 -> 1 -> 0",
        ),
        (
            lambda pyg: pyg.Data(edge_index=torch.tensor([[0, 5], [1, 0]]), num_nodes=2),
            {},
            "source[1] is 5, which is no node",
        ),
        (
            lambda pyg: pyg.Data(edge_index=torch.tensor([[0, 1]]), num_nodes=2),
            {},
            "edge_index has shape (1, 2); it must be (2,",
        ),
        (lambda pyg: pyg.Data(x=torch.zeros(2, 1)), {}, "from_pyg(Data): it has no edge_index"),
        (lambda pyg: pyg.HeteroData(), {}, "from_pyg(HeteroData): it has no edge_index"),
        (
            lambda pyg: random_data(pyg, 0),
            {"fields": ["wrod"]},
            "the nodes have no attribute 'wrod'; there are ",
        ),
        (
            lambda pyg: random_data(pyg, 0),
            {"fields": ["edge_attr"]},
            "field 'edge_attr' has 29 entries; it must have one for each of",
        ),
        (lambda pyg: random_data(pyg, 0), {"child": None}, "say which end of an edge is the child"),
    ],
)
def test_what_is_wrong(pyg: Any, make: Callable[[Any], Any], given: dict[str, Any], message: str) -> None:
    with pytest.raises(StructureError) as caught:
        from_pyg(make(pyg), **{"child": "source", **given})
    assert message in str(caught.value)


def test_a_field_that_the_graph_lacks_is_named_with_its_place(pyg: Any) -> None:
    forest = from_pyg(pyg.Data(edge_index=torch.tensor([[1], [0]]), num_nodes=2), child="source")
    assert isinstance(forest, Forest)
    with pytest.raises(StructureError, match="'word'"):
        FAST(forest)

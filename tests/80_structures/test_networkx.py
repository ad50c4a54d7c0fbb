"""networkx's directed graphs as forests."""

from __future__ import annotations

import random
from typing import Any

import networkx as nx
import numpy as np
import pytest
from models_of_packages import SIZE, VOCAB, WEIGHTS, close, words_everywhere, words_everywhere_by

import cortex
from cortex.errors import StructureError
from cortex.structures import from_networkx

FAST = cortex.compile(words_everywhere, WEIGHTS)


def random_graph(seed: int, nodes: int = 30) -> nx.DiGraph:
    """Edges from nodes to later ones, under names that are no numbers, in no order."""
    rng = random.Random(seed)
    names = [f"n{i}" for i in range(nodes)]
    graph = nx.DiGraph()
    for name in rng.sample(names, nodes):
        graph.add_node(name, word=rng.randrange(VOCAB))
    for _ in range(2 * nodes):
        i, j = sorted(rng.sample(range(nodes), 2))
        graph.add_edge(names[i], names[j])
    return graph


@pytest.mark.parametrize("child", ["source", "target"])
@pytest.mark.parametrize("seed", range(5))
def test_graphs_in_both_directions(seed: int, child: Any) -> None:
    graph = random_graph(seed)
    below, above = (
        (graph.successors, graph.predecessors) if child == "target" else (graph.predecessors, graph.successors)
    )
    expected = words_everywhere_by(below, lambda n: graph.nodes[n]["word"])
    out = FAST(from_networkx(graph, child=child))
    roots = [n for n in graph if not list(above(n))]
    close(out.out, [expected(n) for n in roots])
    close(out.nodes.out, [expected(n) for n in graph])


def test_children_stand_in_the_order_of_the_edges() -> None:
    graph = nx.DiGraph([("a", "c"), ("a", "b"), ("d", "c")])
    forest = from_networkx(graph, child="target", fields=[])
    assert list(graph) == ["a", "c", "b", "d"]
    assert [list(a) for a in forest.lists["children"]] == [[0, 2, 2, 2, 3], [1, 2, 1]]
    assert forest.roots.tolist() == [0, 3]
    turned = from_networkx(nx.DiGraph([("c", "a"), ("b", "a"), ("c", "d")]), child="source", fields=[])
    assert [list(a) for a in turned.lists["children"]] == [[0, 0, 2, 2, 3], [0, 2, 0]]


@pytest.mark.parametrize("child", ["source", "target"])
def test_views_of_graphs(child: Any) -> None:
    graph = random_graph(7)
    graph.nodes["n0"][0] = "an attribute whose name is no name of a model's"
    for nodes in ([f"n{i}" for i in range(0, 30, 4)], [f"n{i}" for i in range(27)]):
        view = nx.subgraph_view(graph, filter_node=nx.filters.show_nodes(nodes))
        turned = nx.reverse_view(view)
        other: Any = "source" if child == "target" else "target"
        copied = from_networkx(nx.DiGraph(view), child=child)
        for forest in (from_networkx(view, child=child), from_networkx(turned, child=other)):
            assert list(forest.names or ()) == list(copied.names or ())
            close(FAST(forest).out, FAST(copied).out)


def test_parallel_edges_count() -> None:
    graph = nx.MultiDiGraph([("a", "b"), ("a", "b"), ("a", "c")])
    nx.set_node_attributes(graph, {"a": 1, "b": 2, "c": 3}, "word")
    expected = words_everywhere_by(lambda n: {"a": "bbc"}.get(n, ""), lambda n: graph.nodes[n]["word"])
    close(FAST(from_networkx(graph, child="target")).out, [expected("a")])


def test_empty_graphs_and_isolated_nodes() -> None:
    assert FAST(from_networkx(nx.DiGraph(), child="target")).out.shape == (0, SIZE)
    assert FAST(from_networkx(nx.DiGraph(), child="target", fields={"word": "id"})).out.shape == (0, SIZE)
    graph = nx.DiGraph()
    graph.add_nodes_from([("a", {"word": 1}), ("b", {"word": 2})])
    close(FAST(from_networkx(graph, child="source")).out, np.tanh(WEIGHTS["emb"][1:3]))


def test_attributes_by_name_by_function_and_in_arrays() -> None:
    graph = nx.DiGraph([("a", "b")])
    nx.set_node_attributes(graph, {"a": 3, "b": 4}, "token")
    nx.set_node_attributes(graph, {n: np.full(2, i, np.float32) for i, n in enumerate("ab")}, "x")
    forest = from_networkx(graph, child="target", fields={"word": "token", "x": "x", "twice": lambda d: 2 * d["token"]})
    np.testing.assert_array_equal(forest.fields["word"], [3, 4])
    np.testing.assert_array_equal(forest.fields["twice"], [6, 8])
    np.testing.assert_array_equal(forest.fields["x"], [[0, 0], [1, 1]])
    assert sorted(from_networkx(graph, child="target").fields) == ["token", "x"]
    assert sorted(from_networkx(graph, child="target", fields=["x"]).fields) == ["x"]


def test_an_attribute_may_be_missing_where_the_model_does_not_read_it() -> None:
    @cortex.model
    def leaves(node: Any, w: Any) -> Any:
        return w.emb[node.word] if node.is_leaf else cortex.sum(leaves(k, w) for k in node.children)

    graph = nx.DiGraph([("top", "a"), ("top", "b")])
    nx.set_node_attributes(graph, {"a": 1, "b": 2}, "word")
    forest = from_networkx(graph, child="target")
    close(cortex.compile(leaves, WEIGHTS)(forest).out, [WEIGHTS["emb"][1] + WEIGHTS["emb"][2]])
    with pytest.raises(StructureError, match="node 'top': field 'word' is missing or None, and the model reads it"):
        FAST(forest)


@pytest.mark.parametrize(
    ("graph", "given", "message"),
    [
        (nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")]), {}, "node 'a' is below itself: 'a' -> 'b' -> 'c' -> 'a'"),
        (nx.DiGraph([("a", "a")]), {}, "node 'a' is below itself: 'a' -> 'a'"),
        (nx.Graph([("a", "b")]), {}, "its edges have no direction; give a DiGraph"),
        (nx.DiGraph([("a", "b")]), {"child": "parent"}, "say which end of an edge is the child"),
        (nx.DiGraph([("a", "b")]), {"fields": ["word"]}, "the nodes have no attribute 'word'; there are none"),
        (nx.DiGraph([("a", "b")]), {"fields": "word"}, "give a list of names, or a dict from the model's names"),
    ],
)
def test_what_is_wrong(graph: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(StructureError) as caught:
        from_networkx(graph, **{"child": "target", **given})
    assert message in str(caught.value)


def test_the_direction_must_be_said() -> None:
    with pytest.raises(TypeError, match="child"):
        from_networkx(nx.DiGraph())  # type: ignore[call-arg]

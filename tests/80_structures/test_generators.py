"""Generated structures: reproducible, and of the size and depth they claim."""

import random
from statistics import mean, stdev

import extreme_structures
import pytest

from cortex.structures import generators
from cortex.structures.tree import Size, below, measure, postorder


def test_parse_trees_match_the_treebank_in_size_and_depth() -> None:
    rng = random.Random(1)
    sizes = [measure(generators.parse_tree(rng)) for _ in range(4000)]
    assert mean(s.nodes for s in sizes) == pytest.approx(37.3, abs=1.0)
    assert mean(s.leaves for s in sizes) == pytest.approx(19.2, abs=0.5)
    assert mean(s.levels for s in sizes) == pytest.approx(10.9, abs=0.3)
    assert stdev(s.leaves for s in sizes) == pytest.approx(9.2, abs=0.5)
    assert stdev(s.levels for s in sizes) == pytest.approx(3.8, abs=0.4)
    assert max(s.nodes for s in sizes) <= 111
    assert max(s.levels for s in sizes) <= 30
    # Depth follows size, not only on average: the treebank has 6.7 levels at 6-10 leaves, 13.9 at 26-30.
    assert mean(s.levels for s in sizes if 6 <= s.leaves <= 10) == pytest.approx(6.7, abs=0.4)
    assert mean(s.levels for s in sizes if 26 <= s.leaves <= 30) == pytest.approx(13.9, abs=0.6)


def test_parse_trees_have_words_at_the_leaves_only() -> None:
    for node in postorder(generators.parse_tree(random.Random(2), vocab=50)):
        assert (0 <= node.word < 50) == (not below(node))


def test_words_are_in_range_and_skewed() -> None:
    rng = random.Random(0)
    words = [generators.random_word(rng, 1000) for _ in range(5000)]
    assert min(words) >= 0 and max(words) < 1000
    assert sum(word < 32 for word in words) / 5000 == pytest.approx(0.5, abs=0.05)


def test_perfect_trees_chains_and_stars() -> None:
    rng = random.Random(0)
    assert measure(generators.perfect_tree(rng, 7)) == Size(255, 128, 8)
    assert measure(generators.perfect_tree(rng, 0)) == Size(1, 1, 1)
    assert measure(extreme_structures.chain(rng, 9)) == Size(9, 1, 9)
    assert measure(extreme_structures.star(rng, 9)) == Size(10, 9, 2)


def test_random_trees_and_graphs() -> None:
    rng = random.Random(0)
    assert measure(generators.random_tree(rng, 300)).nodes == 300
    graph = extreme_structures.random_dag(rng, 300, reuse=0.5)
    order = postorder(graph)
    edges = sum(len(node.children) for node in order)
    assert len(order) == 300
    assert 299 < edges < 2 * 299


@pytest.mark.parametrize("make", [generators.parse_tree, lambda rng: extreme_structures.random_dag(rng, 40)])
def test_the_same_seed_gives_the_same_structure(make: object) -> None:
    def shape(seed: int) -> list[tuple[int, int]]:
        return [(node.word, len(below(node))) for node in postorder(make(random.Random(seed)))]  # type: ignore[operator]

    assert shape(5) == shape(5)
    assert shape(5) != shape(6)

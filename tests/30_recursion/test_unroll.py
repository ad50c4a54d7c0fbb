"""Nodes compute their children: goldens, which nodes do, equality of meaning, refusals."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ra_with_steps import (
    Traced,
    assert_same_compiled,
    assert_same_meaning,
    refusal,
    same_at_random,
    zoo_model,
    zoo_trees,
)

from cortex.errors import InternalError
from cortex.ilir.interp import run as run_ilir
from cortex.lower.lower import lower
from cortex.ra import interp
from cortex.ra import ir as ra
from cortex.ra.show import show
from cortex.ra.verify import verify
from cortex.recursion.fix_arity import FixArity
from cortex.recursion.refactor import Refactor
from cortex.recursion.unroll import UnrollRecursion
from cortex.runtime.forest import Forest

Golden = Callable[[str, str], None]
SLOTS = ["tree_rnn", "tree_fc", "nary_tree_lstm", "mv_rnn", "rntn", "lstm", "gru"]


class Node:
    """A binary node, or a leaf with a word."""

    def __init__(self, left: Node | None = None, right: Node | None = None, word: int = 0) -> None:
        self.left = left
        self.right = right
        self.word = word


def perfect(height: int) -> Node:
    return Node(word=height) if height == 0 else Node(perfect(height - 1), perfect(height - 1))


def chain(height: int) -> Node:
    return Node(word=1) if height == 0 else Node(chain(height - 1), Node(word=height % 7))


def random_node(rng: random.Random, depth: int) -> Node:
    if depth == 0 or rng.random() < 0.2:
        return Node(word=rng.randrange(50))
    return Node(random_node(rng, depth - 1), random_node(rng, depth - 1))


def kind_counts(traced: Traced, batch: list[Any], depth: int = 2) -> dict[str, int]:
    """How many nodes of a request have each kind, after Unroll."""
    m = traced.after([UnrollRecursion(depth)])
    starts = traced.form(m, batch).arrays["kind_start"]
    return {k.name: int(n) for k, n in zip(m.kinds, np.diff(starts), strict=True) if n}


def test_golden(golden: Golden) -> None:
    traced = zoo_model("tree_rnn", 4)
    golden("recursion/tree_rnn", show(traced.model))
    golden("recursion/unroll_tree_rnn", show(traced.after([UnrollRecursion()])))
    golden("recursion/unroll_gru_3", show(zoo_model("gru", 4).after([UnrollRecursion(3)])))


def test_two_levels_of_a_perfect_tree_are_one_group() -> None:
    traced = zoo_model("tree_rnn", 4)
    assert kind_counts(traced, [perfect(4)]) == {"leaf": 16, "inner_within": 10, "inner_with_left_inner_right_inner": 5}
    odd = kind_counts(traced, [perfect(3)])
    assert odd == {"leaf": 8, "inner": 1, "inner_within": 4, "inner_with_left_inner_right_inner": 2}


def test_a_chain_is_taken_two_nodes_at_a_time() -> None:
    counts = kind_counts(zoo_model("tree_rnn", 4), [chain(6)])
    assert counts == {"leaf": 7, "inner_within": 3, "inner_with_left_inner": 3}


def test_three_levels_of_a_perfect_tree_are_one_group() -> None:
    traced = zoo_model("tree_rnn", 4)
    counts = kind_counts(traced, [perfect(6)], 3)
    whole = "inner_with_left_inner_left_left_inner_left_right_inner_right_inner_right_left_inner_right_right_inner"
    assert counts == {"leaf": 64, "inner_within": 54, whole: 9}
    above = kind_counts(traced, [perfect(5)], 3)
    assert above == {"leaf": 32, "inner_within": 26, whole: 4, "inner_with_left_inner_right_inner": 1}


@pytest.mark.parametrize("depth", [3, 4, 5])
def test_a_sequence_is_taken_so_many_nodes_at_a_time(depth: int) -> None:
    trees = zoo_trees("gru", 3)
    traced = zoo_model("gru", 3, trees)
    longest = "has_prev_with_" + "_".join("prev_" * n + "has_prev" for n in range(1, depth))
    assert kind_counts(traced, trees, depth)[longest] > 0
    assert_same_meaning(traced, [UnrollRecursion(depth)], trees)


def test_leaves_and_missing_children_at_mixed_depth() -> None:
    """Blocks of three levels at heights 3 and 6; what stands elsewhere is computed on its own or begins a block."""
    mixed = Node(Node(Node(perfect(1), Node(word=1)), Node(word=2)), Node(Node(word=3), perfect(1)))
    traced = zoo_model("tree_rnn", 4)
    counts = kind_counts(traced, [mixed], 3)
    assert counts == {"leaf": 7, "inner": 1, "inner_within": 3, "inner_with_left_inner_left_left_inner": 1,
                      "inner_with_right_inner": 1}  # fmt: skip
    assert_same_meaning(traced, [UnrollRecursion(3)], [mixed])
    assert_same_compiled(traced, [UnrollRecursion(3)], [mixed, perfect(3), chain(5)])


def test_a_shared_node_in_the_middle_begins_a_block() -> None:
    shared = Node(perfect(1), Node(word=2))
    batch = [Node(shared, Node(word=3)), Node(Node(shared, Node(word=4)), shared)]
    traced = zoo_model("tree_rnn", 4)
    assert kind_counts(traced, batch, 3) == {"leaf": 5, "inner": 3, "inner_within": 1, "inner_with_left_inner": 1}
    assert_same_meaning(traced, [UnrollRecursion(3)], batch)
    assert_same_compiled(traced, [UnrollRecursion(3)], batch)


def test_a_child_two_levels_lower_is_on_its_own() -> None:
    lone = Node(Node(Node(Node(Node(), Node()), Node()), Node()), Node(Node(), Node()))
    counts = kind_counts(zoo_model("tree_rnn", 4), [lone])
    assert counts == {"leaf": 6, "inner": 1, "inner_within": 2, "inner_with_left_inner": 2}


def test_a_shared_child_is_not_inlined() -> None:
    shared = Node(Node(word=1), Node(word=2))
    batch = [Node(shared, Node(word=3)), Node(shared, shared)]
    traced = zoo_model("tree_rnn", 4)
    assert kind_counts(traced, batch) == {"leaf": 3, "inner": 3}
    assert_same_meaning(traced, [UnrollRecursion()], batch)
    assert_same_compiled(traced, [UnrollRecursion()], batch)


def test_a_root_may_be_inlined() -> None:
    child = Node(Node(word=1), Node(word=2))
    batch = [child, Node(child, Node(word=3))]
    assert_same_compiled(zoo_model("tree_rnn", 4), [UnrollRecursion()], batch)


def test_products_that_are_states_of_an_inlined_child_keep_their_own_sums() -> None:
    """After Refactor, a child's M is the sum of two products that are states themselves."""
    assert_same_compiled(zoo_model("mv_rnn", 4), [Refactor(), UnrollRecursion()], [perfect(3), perfect(2)])


@pytest.mark.parametrize("name", SLOTS)
def test_meaning_stays(name: str) -> None:
    trees = zoo_trees(name, 3)
    assert_same_meaning(zoo_model(name, 3, trees), [UnrollRecursion()], trees)


def test_random_trees() -> None:
    rng = random.Random(7)
    traced = zoo_model("tree_fc", 3)
    for _ in range(10):
        batch = [random_node(rng, 8) for _ in range(rng.randrange(1, 4))]
        for depth in (2, 3):
            assert_same_meaning(traced, [UnrollRecursion(depth)], batch)


@pytest.mark.parametrize(
    ("name", "depth"), [("tree_rnn", 2), ("tree_fc", 2), ("nary_tree_lstm", 2), ("gru", 2), ("gru", 3)]
)
def test_compiled_code_agrees(name: str, depth: int) -> None:
    trees = zoo_trees(name, 6)
    assert_same_compiled(zoo_model(name, 20, trees), [UnrollRecursion(depth)], trees)


@pytest.mark.parametrize(("name", "depth"), [("tree_rnn", 2), ("nary_tree_lstm", 2), ("tree_rnn", 3), ("lstm", 4)])
def test_lowered_code_agrees(name: str, depth: int) -> None:
    trees = zoo_trees(name, 5, 2)
    traced = zoo_model(name, 3, trees)
    m = traced.after([UnrollRecursion(depth)])
    form = traced.form(m, trees)
    wanted = interp.run(m, traced.weights, form)
    got = run_ilir(lower(m, 16), form.sizes, form.arrays, interp.derived(m, traced.weights))
    for state, values in wanted.items():
        assert abs(got.buffers[f"state_{state}"] - values).max() < 1e-10


@pytest.mark.parametrize("name", ["tree_lstm", "tree_gru", "dag_rnn"])
def test_lists_of_fixed_length(name: str) -> None:
    trees = zoo_trees(name, 3)
    traced = zoo_model(name, 3, trees)
    steps = [FixArity("inner", 2), UnrollRecursion()]
    assert any(k.inlined for k in traced.after(steps).kinds)
    assert_same_meaning(traced, steps, trees)


def test_lists_of_fixed_length_compiled() -> None:
    trees = zoo_trees("tree_lstm", 3)
    assert_same_compiled(zoo_model("tree_lstm", 3, trees), [FixArity("inner", 2), UnrollRecursion()], trees)


def test_after_refactor() -> None:
    trees = zoo_trees("gru", 3)
    traced = zoo_model("gru", 3, trees)
    assert_same_meaning(traced, [Refactor(), UnrollRecursion()], trees)
    assert_same_compiled(traced, [Refactor(), UnrollRecursion()], trees)


def test_a_forest_of_arrays() -> None:
    traced = zoo_model("tree_rnn", 4)
    left, right = [1, 3, -1, -1, -1], [2, 4, -1, -1, -1]
    forest = Forest.from_slots({"left": left, "right": right}, {"word": [0, 0, 1, 2, 3]})
    tree = Node(Node(Node(word=2), Node(word=3)), Node(word=1))
    fast = traced.compile([UnrollRecursion()])
    np.testing.assert_array_equal(fast(forest).h[0], fast(tree).h)


def test_random_models() -> None:
    assert same_at_random(UnrollRecursion(2), UnrollRecursion(3)) >= 15


def many_kinds() -> ra.Model:
    m = zoo_model("tree_rnn", 4).model
    leaf, inner = m.kinds
    facts = [ra.Fact(ra.Value("op"), number) for number in range(6)]
    return replace(m, kinds=(leaf, *(replace(inner, name=f"op_{f.answer}", guard=(*inner.guard, f)) for f in facts)))


def only_leaves() -> ra.Model:
    m = zoo_model("tree_rnn", 4).model
    return replace(m, kinds=m.kinds[:1])


REFUSALS: dict[str, tuple[Callable[[], ra.Model], Any]] = {
    "shallow": (lambda: zoo_model("tree_rnn", 4).model, UnrollRecursion(1)),
    "deep": (lambda: zoo_model("tree_rnn", 4).model, UnrollRecursion(4)),
    "very_deep": (lambda: zoo_model("tree_rnn", 4).model, UnrollRecursion(1_000_000_000)),
    "long": (lambda: zoo_model("lstm", 4).model, UnrollRecursion(65)),
    "longer": (lambda: zoo_model("lstm", 4).model, UnrollRecursion(66)),
    "twice": (lambda: zoo_model("tree_rnn", 4).after([UnrollRecursion()]), UnrollRecursion()),
    "lists": (lambda: zoo_model("tree_gru", 4).model, UnrollRecursion()),
    "too_many": (many_kinds, UnrollRecursion()),
    "no_children": (only_leaves, UnrollRecursion()),
    "refactor_after": (lambda: zoo_model("nary_tree_lstm", 4).after([UnrollRecursion()]), Refactor()),
    "fix_arity_after": (lambda: zoo_model("tree_rnn", 4).after([UnrollRecursion()]), FixArity("inner", 2)),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str, golden: Golden) -> None:
    model, step = REFUSALS[name]
    golden(f"recursion/refused_unroll_{name}", refusal(model(), step))


def test_variants_must_be_well_formed() -> None:
    m = zoo_model("tree_rnn", 4).after([UnrollRecursion()])
    stray = replace(m, kinds=(*m.kinds[:-1], replace(m.kinds[-1], variant_of="outer")))
    with pytest.raises(InternalError, match="no kind with a guard of its own"):
        verify(stray)
    read = ra.Let("again", ra.State("h", (ra.Slot("left"),)), ra.TensorType((4,)))
    twice = replace(m, kinds=(*m.kinds[:-1], replace(m.kinds[-1], lets=(*m.kinds[-1].lets, read))))
    with pytest.raises(InternalError, match="computes itself"):
        verify(twice)
    deep = zoo_model("gru", 4).after([UnrollRecursion(3)])
    (_, lower) = deep.kinds[-1].inlined
    with pytest.raises(InternalError, match="not the node above it"):
        verify(replace(deep, kinds=(*deep.kinds[:-1], replace(deep.kinds[-1], inlined=(lower,)))))


def test_a_step_is_a_value() -> None:
    assert eval(repr(UnrollRecursion())) == UnrollRecursion(2)
    assert hash(UnrollRecursion()) == hash(UnrollRecursion(2))

"""Which numbers of children a merged kind takes: none, one, special ones; several lists; other questions beside."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from loops import WEIGHTS, H, Node, Trace, assert_same, checked, is_per_arity, model_of, star, tree, unmerged

import cortex
from cortex.ra.ir import Counts, Fact, HasLength, IsLeaf


def guards(trace: Trace) -> dict[str, tuple[Fact, ...]]:
    return {kind.name: kind.guard for kind in checked(trace).kinds}


def test_no_children_are_an_instance_where_the_sum_over_none_is_what_the_model_computes() -> None:
    @cortex.model
    def same(node: Any, w: Any) -> Any:
        s = cortex.zeros(H)
        for child in node.children:
            s = s + same(child, w)
        return cortex.tanh(w.U @ s + w.b)

    trace = Trace(same, WEIGHTS)
    assert_same(trace, same, star(0))
    assert list(guards(trace)) == ["children_0"], "a node without children shows nothing of what they are"
    assert_same(trace, same, star(1))
    assert list(guards(trace).values()) == [()], "the kind of any arity takes the place of its instance"
    root = tree(Random(0), 3)
    assert not trace.see([root])
    assert_same(trace, same, root)


def test_no_children_are_a_kind_of_their_own_where_they_are_not() -> None:
    @cortex.model
    def largest(node: Any, w: Any) -> Any:
        s = w.E[node.word]
        for child in node.children:
            s = cortex.maximum(s, largest(child, w))
        return s

    trace = Trace(largest, WEIGHTS)
    assert_same(trace, largest, tree(Random(0), 3))
    found = guards(trace)
    assert len(found) == 2
    assert all(any(isinstance(f.test, HasLength) and f.test.count == 0 for f in guard) for guard in found.values())


def test_the_length_is_asked_before_anything_else() -> None:
    @cortex.model
    def counted(node: Any, w: Any) -> Any:
        if len(node.children) == 0:
            return w.E[node.word]
        s = cortex.zeros(H)
        for child in node.children:
            s = s + counted(child, w)
        return cortex.tanh(s)

    trace = Trace(counted, WEIGHTS)
    assert_same(trace, counted, tree(Random(0), 3))
    none = HasLength("children", 0)
    assert guards(trace) == {"children_0": (Fact(none, True),), "some_children": (Fact(none, False),)}
    assert not trace.per_arity()


@pytest.mark.parametrize("special", [1, 2, 3, 4, 6, 7, 12, 40])
def test_one_number_may_be_special(special: int) -> None:
    def combine(node: Any, w: Any, states: list[Any]) -> Any:
        return sum(states) * w.b if len(states) == special else sum(states)

    model = _looped(special) if special > 7 else model_of(combine)
    trace = Trace(model, WEIGHTS)
    for arity in (5, special, 2, 9, special + 1):
        assert_same(trace, model, star(arity))
    assert set(guards(trace)) == {"leaf", "inner", f"children_{special}"}
    assert guards(trace)["inner"] == (Fact(IsLeaf(), False), Fact(HasLength("children", special), False))


def _looped(special: int) -> Any:
    """A model whose own code mentions the number: only there can it be found before a node of it is seen."""
    names: dict[str, Any] = {"cortex": cortex}
    exec(  # the number has to be a constant of the code
        f"""
def looped(node, w):
    if node.is_leaf:
        return cortex.tanh(w.E[node.word])
    s = cortex.zeros({H})
    for child in node.children:
        s = s + model(child, w)
    return s * w.b if len(node.children) == {special} else s
""",
        names,
    )
    names["model"] = cortex.model(names["looped"])
    return names["model"]


def test_special_for_one_child_compiles_when_it_is_met() -> None:
    model = model_of(lambda node, w, states: states[0] if len(states) == 1 else w.U @ sum(states))
    fast = cortex.compile(model, WEIGHTS, examples=[star(3)])
    for arity in (2, 1, 6):
        np.testing.assert_allclose(fast(star(arity)).out, unmerged(model, star(arity))["out"], rtol=1e-4, atol=1e-5)
    assert fast.compilations == 2


def test_other_questions_after_the_length_do_not_split_the_merged_kind() -> None:
    @cortex.model
    def typed(node: Any, w: Any) -> Any:
        count = len(node.children)
        if count == 0:
            return w.E[node.word]
        s = cortex.zeros(H)
        for i, child in enumerate(node.children):
            s = s + typed(child, w) if node.op == "p" else s + (i + 1.0) * typed(child, w)
        return s / count

    trace = Trace(typed, WEIGHTS)
    for seed in range(4):
        assert_same(trace, typed, tree(Random(seed), 3, 4))
    kinds = {kind.name: kind for kind in checked(trace).kinds}
    assert [name for name in kinds if name.endswith("op_p")] == ["some_children_op_p"]
    assert all(is_per_arity(kind) for name, kind in kinds.items() if name not in ("children_0", "some_children_op_p"))
    assert not trace.see([tree(Random(9), 3, 4)])


def both(rng: Random, depth: int) -> Node:
    def some() -> list[Node]:
        return [both(rng, depth - 1) for _ in range(rng.randint(0, 4))] if depth else []

    return Node(word=rng.randrange(7), left=some(), right=some())


def test_two_lists_become_one_kind() -> None:
    @cortex.model
    def sides(node: Any, w: Any) -> Any:
        s = w.E[node.word]
        for child in node.left:
            s = s + w.U @ sides(child, w)
        r = cortex.zeros(H)
        for child in node.right:
            r = r + sides(child, w) * s
        return cortex.tanh(s) + r / (1 + len(node.right))

    trace = Trace(sides, WEIGHTS)
    trace.see([both(Random(1), 1)])
    assert len(checked(trace).kinds) == 1
    for seed in range(3):
        root = both(Random(seed), 2)
        assert not trace.see([root])
        assert_same(trace, sides, root)


def test_one_of_two_lists_is_merged() -> None:
    @cortex.model
    def half(node: Any, w: Any) -> Any:
        s = w.E[node.word]
        for child in node.left:
            s = s + w.U @ half(child, w)
        r = cortex.zeros(H)
        for i, child in enumerate(node.right):
            r = r + (i + 1.0) * half(child, w)
        return cortex.tanh(s) + r

    trace = Trace(half, WEIGHTS)
    for seed in range(6):
        assert_same(trace, half, both(Random(seed), 2))
    assert set(guards(trace)) == {f"right_{n}" for n in range(5)}
    assert "in 'left' and 'right'" in trace.per_arity()[0]


def test_fields_of_children() -> None:
    @cortex.model
    def edges(node: Any, w: Any) -> Any:
        if node.is_leaf:
            return w.E[node.word]
        s = cortex.zeros(H)
        for child in node.children:
            s = s + child.x * edges(child, w) + w.E[child.word]
        return cortex.tanh(s)

    trace = Trace(edges, WEIGHTS)
    trace.see([star(1)])
    assert list(guards(trace)) == ["leaf", "inner"]
    root = tree(Random(5), 3)
    assert not trace.see([root])
    assert_same(trace, edges, root)


def with_counts(node: Node) -> Node:
    node.num_children = len(node.children)
    for child in node.children:
        with_counts(child)
    return node


def test_an_attribute_that_counts_the_children() -> None:
    @cortex.model
    def indexed(node: Any, w: Any) -> Any:
        if node.num_children == 0:
            return w.E[node.word]
        s = cortex.zeros(H)
        for i in range(node.num_children):
            s = s + indexed(node.children[i], w)
        return cortex.tanh(s)

    fast = cortex.compile(indexed, WEIGHTS, examples=[with_counts(star(3))])
    trace = Trace(indexed, WEIGHTS)
    trace.see([with_counts(star(2))])
    assert all(Fact(Counts("num_children", "children"), True) in guard for guard in guards(trace).values())
    for root in (with_counts(tree(Random(0), 3)), with_counts(star(17))):
        assert not trace.see([root])
        assert_same(trace, indexed, root)
        np.testing.assert_allclose(fast(root).out, unmerged(indexed, root)["out"], rtol=1e-4, atol=1e-5)
    assert fast.compilations == 1
    wrong = with_counts(star(3))
    wrong.num_children = 2
    np.testing.assert_allclose(fast(wrong).out, unmerged(indexed, wrong)["out"], rtol=1e-4, atol=1e-5)
    assert fast.compilations == 2, "a node whose attribute says otherwise is another kind"


def test_a_comprehension_beside_a_loop() -> None:
    @cortex.model
    def beside(node: Any, w: Any) -> Any:
        if node.is_leaf:
            return w.E[node.word]
        s = cortex.sum(w.U @ beside(child, w) for child in node.children)
        for child in node.children:
            s = s + beside(child, w)
        return cortex.tanh(s)

    trace = Trace(beside, WEIGHTS)
    trace.see([star(2)])
    assert list(guards(trace)) == ["leaf", "inner"]
    assert_same(trace, beside, tree(Random(2), 3))

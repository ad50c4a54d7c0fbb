"""Nodes with a known number of children get code without lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ra_with_steps import Traced, assert_same_compiled, assert_same_meaning, refusal, zoo_model, zoo_trees

import cortex
from cortex.ra import ir as ra
from cortex.ra.show import show
from cortex.recursion.fix_arity import FixArity
from cortex.recursion.refactor import Refactor

Golden = Callable[[str, str], None]
LISTS = ["tree_lstm", "tree_lstm_words", "tree_gru", "tree_gru_words", "simple_tree_gru", "dag_rnn"]


def summing(m: ra.Model) -> str:
    """The kind that reduces over children."""
    return next(k.name for k in m.kinds if any(isinstance(let.op, ra.OverChildren) for let in k.lets))


def test_golden(golden: Golden) -> None:
    m = zoo_model("tree_lstm", 4).after([FixArity("inner", 2)])
    golden("recursion/fix_arity_tree_lstm", show(m))
    assert [k.name for k in m.kinds] == ["leaf", "inner_2", "inner"]
    assert not any(let.over or isinstance(let.op, ra.OverChildren | ra.Arity) for let in m.kinds[1].lets)


@pytest.mark.parametrize("name", LISTS)
def test_meaning_stays(name: str) -> None:
    trees = zoo_trees(name, 3)
    traced = zoo_model(name, 3, trees)
    steps = [FixArity(summing(traced.model), count) for count in (1, 2, 3)]
    assert_same_meaning(traced, steps, trees)
    assert_same_meaning(traced, [*steps, Refactor()], trees)


@pytest.mark.parametrize("name", ["tree_lstm_words", "tree_gru", "dag_rnn"])
def test_compiled_code_agrees(name: str) -> None:
    trees = zoo_trees(name, 6)
    traced = zoo_model(name, 20, trees)
    assert_same_compiled(traced, [FixArity(summing(traced.model), 2)], trees)


class Tree:
    """A node with two lists of children."""

    def __init__(self, left: list[Tree], right: list[Tree], x: float) -> None:
        self.left = left
        self.right = right
        self.x = np.full(3, x)


@cortex.model
def two_lists(node: Any, w: Any) -> Any:
    """A mean over one list, a maximum over the other."""
    left = cortex.mean(two_lists(k, w).h for k in node.left)
    right = cortex.max(two_lists(k, w).h * node.x for k in node.right)
    return cortex.state(h=cortex.tanh(w.U @ left + right + node.x))


def random_tree(rng: np.random.Generator, height: int) -> Tree:
    if height == 0:
        return Tree([], [], rng.normal())
    counts = rng.integers(0, 3, 2)
    left, right = ([random_tree(rng, height - 1) for _ in range(n)] for n in counts)
    return Tree(left, right, rng.normal())


def lists() -> tuple[Traced, list[Tree]]:
    rng = np.random.default_rng(1)
    trees = [random_tree(rng, 4) for _ in range(4)]
    return Traced(two_lists, {"U": rng.normal(size=(3, 3))}, trees), trees


def test_each_list_has_its_own_number() -> None:
    traced, trees = lists()
    kind = traced.model.kinds[-1].name
    steps = [FixArity(kind, 2, "right"), FixArity(kind, 1, "left"), FixArity(f"{kind}_2", 2, "left")]
    assert [k.name for k in traced.after(steps).kinds][-4:] == [f"{kind}_2_2", f"{kind}_2", f"{kind}_1", kind]
    assert_same_meaning(traced, steps, trees)
    assert_same_compiled(traced, steps, trees)


def test_a_number_that_is_told_needs_no_split() -> None:
    traced = zoo_model("tree_lstm", 4)
    once = traced.after([FixArity("inner", 2)])
    (leaf, fixed, rest) = once.kinds
    guard = (*rest.guard[:-1], ra.Fact(ra.Length("children"), 2))
    told = replace(once, kinds=(leaf, replace(rest, guard=guard)))
    again = FixArity("inner", 2).apply(told)
    assert [k.name for k in again.kinds] == ["leaf", "inner"]
    assert again.kinds[1].lets == fixed.lets


REFUSALS = {
    "no_such_kind": FixArity("outer", 2),
    "no_list": FixArity("leaf", 2),
    "other_list": FixArity("inner", 2, "kids"),
    "no_children": FixArity("inner", 0),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str, golden: Golden) -> None:
    golden(f"recursion/refused_fix_arity_{name}", refusal(zoo_model("tree_gru", 4).model, REFUSALS[name]))


def test_refused_for_two_lists(golden: Golden) -> None:
    m = lists()[0].model
    golden("recursion/refused_fix_arity_two_lists", refusal(m, FixArity(m.kinds[-1].name, 2)))


def test_refused_for_another_number(golden: Golden) -> None:
    m = zoo_model("tree_gru", 4).after([FixArity("inner", 2)])
    fixed = m.kinds[1]
    told = replace(m, kinds=(m.kinds[0], replace(m.kinds[2], name=fixed.name, guard=fixed.guard), m.kinds[2]))
    golden("recursion/refused_fix_arity_another_number", refusal(told, FixArity("inner_2", 3)))


def test_a_step_is_a_value() -> None:
    step = FixArity("inner", 2)
    assert eval(repr(step)) == step
    assert hash(step) == hash(FixArity("inner", 2))

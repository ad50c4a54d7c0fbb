"""The back edge moves into the cell: goldens, equality of meaning, refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

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

import cortex
from cortex.ilir.interp import run as run_ilir
from cortex.ilir.show import show as show_ilir
from cortex.lower.lower import lower
from cortex.ra import interp
from cortex.ra import ir as ra
from cortex.ra.show import show
from cortex.ra.verify import verify
from cortex.recursion.refactor import Refactor, crossing

Golden = Callable[[str, str], None]
LEGAL = [
    "tree_lstm", "tree_lstm_words", "nary_tree_lstm", "tree_gru", "tree_gru_words", "simple_tree_gru", "mv_rnn",
    "dag_rnn", "lstm", "gru",
]  # fmt: skip
REFUSED = ["tree_fc", "tree_rnn", "rntn"]


@pytest.mark.parametrize("name", ["tree_gru", "simple_tree_gru"])
def test_golden(name: str, golden: Golden) -> None:
    traced = zoo_model(name, 4)
    golden(f"recursion/{name}", show(traced.model))
    golden(f"recursion/refactor_{name}", show(traced.after([Refactor()])))


def test_the_gates_themselves_may_cross(golden: Golden) -> None:
    m = zoo_model("tree_gru", 4).after([Refactor("inner", ("t4", "t1", "t11"))])
    golden("recursion/refactor_tree_gru_gates", show(m))
    assert len(crossing(m)) == 3  # z, s and g
    leaf = m.kinds[0]
    fills = [let.op for let in leaf.lets if isinstance(let.op, ra.Fill) and let.name in leaf.results]
    assert fills == [ra.Fill(0.0, (4,))]  # a leaf has no s


def test_what_crosses() -> None:
    counts = {name: len(crossing(zoo_model(name, 4).after([Refactor()]))) for name in LEGAL}
    assert counts == dict.fromkeys(LEGAL, 2) | {"dag_rnn": 1, "mv_rnn": 3}


@pytest.mark.parametrize("name", LEGAL)
def test_meaning_stays(name: str) -> None:
    trees = zoo_trees(name, 3)
    assert_same_meaning(zoo_model(name, 3, trees), [Refactor()], trees)


@pytest.mark.parametrize("cut", [("t4", "t1", "t11"), ("t4", "t1", "t10"), ("t3", "t1", "t9"), ("t12", "t14", "t11")])
def test_meaning_stays_wherever_the_cut_is(cut: tuple[str, ...]) -> None:
    trees = zoo_trees("tree_gru", 4)
    assert_same_meaning(zoo_model("tree_gru", 3, trees), [Refactor("inner", cut)], trees)


@pytest.mark.parametrize("name", ["tree_gru", "simple_tree_gru", "tree_lstm", "mv_rnn"])
def test_lowered_code_agrees(name: str) -> None:
    trees = zoo_trees(name, 5, 2)
    traced = zoo_model(name, 3, trees)
    m = traced.after([Refactor()])
    f = lower(m, 16)
    form = traced.form(m, trees)
    params = interp.derived(m, traced.weights)
    wanted = interp.run(m, traced.weights, form)
    got = run_ilir(f, form.sizes, form.arrays, params | {f"field_{k}": v for k, v in form.fields.items()})
    for state, values in wanted.items():
        assert abs(got.buffers[f"state_{state}"] - values).max() < 1e-10


def test_the_tail_is_computed_in_the_sum_over_children(golden: Golden) -> None:
    golden(
        "recursion/refactor_simple_tree_gru_lowered",
        show_ilir(lower(zoo_model("simple_tree_gru", 4).after([Refactor()]), 16)),
    )


@pytest.mark.parametrize("name", LEGAL)
def test_compiled_code_agrees(name: str) -> None:
    trees = zoo_trees(name, 6)
    assert_same_compiled(zoo_model(name, 20, trees), [Refactor()], trees)


def test_users_see_their_states_only() -> None:
    fast = zoo_model("tree_lstm", 4).compile([Refactor()])
    (tree,) = zoo_trees("tree_lstm", 1, 1)
    out = fast(tree)
    assert out.h.shape == out.c.shape == (4,)
    assert set(fast.interpret(tree)) == {"h", "c"}
    with pytest.raises(AttributeError):
        _ = out.h_1


def test_random_models() -> None:
    assert same_at_random(Refactor()) >= 10


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, golden: Golden) -> None:
    golden(f"recursion/refused_refactor_{name}", refusal(zoo_model(name, 4).model, Refactor()))


def two_cells() -> ra.Model:
    m = zoo_model("tree_gru", 4).model
    leaf, inner = m.kinds
    cells = (
        replace(inner, name=n, guard=(*inner.guard, ra.Fact(ra.Equals("op", 1), n == "one"))) for n in ("one", "other")
    )
    return replace(m, kinds=(leaf, *cells))


def no_recursion() -> ra.Model:
    m = zoo_model("tree_rnn", 4).model
    return replace(m, kinds=m.kinds[:1])


REFUSALS: dict[str, tuple[Callable[[], ra.Model], Refactor]] = {
    "no_such_kind": (lambda: zoo_model("tree_gru", 4).model, Refactor("outer")),
    "no_such_value": (lambda: zoo_model("tree_gru", 4).model, Refactor(cut=("z", "g"))),
    "product_after_cut": (lambda: zoo_model("tree_gru", 4).model, Refactor(cut=("t1", "t4", "t8"))),
    "unused_value": (lambda: zoo_model("tree_gru", 4).model, Refactor(cut=("t1", "t4", "t11", "t8"))),
    "nothing_after_cut": (lambda: zoo_model("tree_gru", 4).model, Refactor(cut=("t16",))),
    "no_back_edge": (no_recursion, Refactor()),
    "twice": (lambda: zoo_model("tree_gru", 4).after([Refactor()]), Refactor()),
    "whose_cut": (two_cells, Refactor(cut=("t12", "t15"))),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str, golden: Golden) -> None:
    model, step = REFUSALS[name]
    golden(f"recursion/refused_refactor_{name}", refusal(model(), step))


@cortex.model
def constant_leaf(node: Any, w: Any) -> Any:
    """A leaf's state is a constant: every value that crosses is one."""
    if node.is_leaf:
        return cortex.state(h=cortex.zeros(3))
    s = cortex.sum(constant_leaf(k, w).h for k in node.children)
    z = cortex.sigmoid(w.U @ s)
    return cortex.state(h=(1 - z) * cortex.tanh(w.V @ s + w.b))


def test_a_constant_leaf_ends_in_the_tail() -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    weights = {"U": rng.normal(size=(3, 3)), "V": rng.normal(size=(3, 3)), "b": rng.normal(size=3)}
    trees = zoo_trees("tree_gru", 1)
    traced = Traced(constant_leaf, weights, trees)
    assert_same_meaning(traced, [Refactor()], trees)
    assert_same_compiled(traced, [Refactor()], trees)


def test_a_finish_must_be_well_formed() -> None:
    m = zoo_model("tree_gru", 4).after([Refactor()])
    assert m.finish is not None
    child = ra.Let("child", ra.State("h_1", (ra.Item("children", 0),)), ra.TensorType((4,)))
    broken = replace(m, finish=replace(m.finish, lets=(child, *m.finish.lets)))
    with pytest.raises(cortex.errors.InternalError, match="more than states of the node itself"):
        verify(broken)


def test_a_step_is_a_value() -> None:
    step = Refactor("inner", ("z", "g"))
    assert eval(repr(step)) == step
    assert hash(step) == hash(Refactor("inner", ("z", "g")))

"""Every step that annotates a model: a golden of before and after, equal meaning, a refusal that changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ra_models import f32, linearize, random_nodes, random_params, tree_fc, tree_lstm, with_kind

from cortex.errors import InternalError, ScheduleError
from cortex.ir.step import Step
from cortex.ra import ir
from cortex.ra.interp import derived, run, tables
from cortex.ra.show import show
from cortex.ra.simplify import simplify
from cortex.ra.verify import verify
from cortex.recursion.batch import Batch
from cortex.recursion.dedup import Dedup
from cortex.recursion.hoist import Hoist
from cortex.recursion.inputs_inside import InputsInside
from cortex.recursion.specialize import Specialize
from cortex.recursion.tabulate import Candidate, Tabulate, candidate
from cortex.recursion.tabulate_leaf_products import TabulateLeafProducts
from cortex.recursion.unroll import UnrollRecursion

Golden = Callable[[str, str], None]


def sum_of_fields() -> ir.Model:
    """Kinds that cannot be tabulated, each for another reason."""
    word = ir.TensorType((), "i64")
    m = ir.Model(
        "sum_of_fields",
        (ir.ParamDecl("emb", f32(7, 3)),),
        (ir.FieldDecl("word", word, 7), ir.FieldDecl("tag", word), ir.FieldDecl("x", f32(3))),
        ("left",),
        (),
        (ir.StateDecl("h", f32(3)),),
        (),
    )
    emb = ir.Param("emb")

    def op(value: int) -> tuple[ir.Fact, ...]:
        return (ir.Fact(ir.Value("op"), value),)

    m = with_kind(m, "word", op(0), lambda b: [b.add(ir.Lookup(b.add(emb), b.add(ir.Field("word"))))])
    m = with_kind(m, "vector", op(1), lambda b: [b.add(ir.Unary("tanh", b.add(ir.Field("x"))))])
    m = with_kind(
        m,
        "tag",
        op(2),
        lambda b: [b.add(ir.Broadcast(b.add(ir.Cast(b.add(ir.Field("tag")), "f32")), (3,)))],
    )
    m = with_kind(m, "constant", op(3), lambda b: [b.add(ir.Unary("tanh", b.add(ir.Fill(1.0, (3,)))))])
    left = ir.Field("word", (ir.Slot("left"),))
    m = with_kind(m, "below", op(4), lambda b: [b.add(ir.Lookup(b.add(emb), b.add(left)))])
    return with_kind(
        m,
        "both",
        op(5),
        lambda b: [
            b.add(ir.Binary("mul", b.add(ir.Field("x")), b.add(ir.Lookup(b.add(emb), b.add(ir.Field("word"))))))
        ],
    )


def chain_with_words() -> ir.Model:
    """An inner kind that reads a word of its own: h = tanh(W @ emb[word] + h_left)."""
    m = ir.Model(
        "chain",
        (ir.ParamDecl("emb", f32(7, 3)), ir.ParamDecl("W", f32(3, 3))),
        (ir.FieldDecl("word", ir.TensorType((), "i64"), 7),),
        ("left",),
        (),
        (ir.StateDecl("h", f32(3)),),
        (),
    )

    def inner(b: Any) -> list[str]:
        e = b.add(ir.Lookup(b.add(ir.Param("emb")), b.add(ir.Field("word"))))
        x = b.add(ir.Contract("ij,j->i", b.add(ir.Param("W")), e))
        return [b.add(ir.Unary("tanh", b.add(ir.Binary("add", x, b.add(ir.State("h", (ir.Slot("left"),)))))))]

    m = with_kind(m, "first", (ir.Fact(ir.IsNone("left"), True),), lambda b: [b.add(ir.Fill(0.0, (3,)))])
    return with_kind(m, "inner", (ir.Fact(ir.IsNone("left"), False),), inner)


def sums_of_words() -> ir.Model:
    """Nothing to multiply: h = tanh(h_left + h_right), emb[word] at the leaves."""
    m = tree_fc()

    def inner(b: Any) -> list[str]:
        left, right = (b.add(ir.State("h", (ir.Slot(name),))) for name in ("left", "right"))
        return [b.add(ir.Unary("tanh", b.add(ir.Binary("add", left, right))))]

    return with_kind(replace(m, kinds=m.kinds[:1]), "inner", m.kinds[1].guard, inner)


LEGAL: dict[str, tuple[ir.Model, Step[ir.Model]]] = {
    "batch_depth": (tree_fc(), Batch("depth")),
    "batch_agenda": (tree_fc(), Batch("agenda")),
    "batch_none": (tree_fc(), Batch("none")),
    "batch_height": (Batch("none").apply(tree_fc()), Batch()),
    "specialize_none": (tree_fc(), Specialize(())),
    "specialize_leaf": (tree_fc(), Specialize(("leaf",))),
    "specialize_all": (Specialize(()).apply(tree_fc()), Specialize()),
    "tabulate": (tree_lstm(), Tabulate()),
    "tabulate_hoisted": (Hoist().apply(simplify(tree_lstm())), Tabulate("leaf", 7 * 2 * 16)),
    "tabulate_inputs": (chain_with_words(), Tabulate("inner")),
    "leaf_products": (simplify(tree_fc()), TabulateLeafProducts()),
    "leaf_products_of_sums": (Tabulate().apply(simplify(tree_lstm())), TabulateLeafProducts(7 * 6 * 16)),
    "dedup": (tree_fc(), Dedup()),
    "inputs_inside": (tree_fc(), InputsInside()),
}

REFUSED: dict[str, tuple[ir.Model, Step[ir.Model]]] = {
    "batch_unknown": (tree_fc(), Batch("width")),  # type: ignore[arg-type]
    "specialize_unknown": (tree_fc(), Specialize(("leaf", "root"))),
    "tabulate_unknown": (tree_lstm(), Tabulate("root")),
    "tabulate_children": (tree_lstm(), Tabulate("inner")),
    "tabulate_nothing": (sum_of_fields(), Tabulate()),
    "tabulate_look_up": (tree_fc(), Tabulate("leaf")),
    "tabulate_twice": (Tabulate().apply(tree_lstm()), Tabulate("leaf")),
    "tabulate_too_large": (tree_lstm(), Tabulate("leaf", 7 * 2 * 16 - 1)),
    "tabulate_all_too_large": (tree_lstm(words=1 << 40), Tabulate()),
    "leaf_products_kinds": (sum_of_fields(), TabulateLeafProducts()),
    "leaf_products_constant": (chain_with_words(), TabulateLeafProducts()),
    "leaf_products_nothing": (sums_of_words(), TabulateLeafProducts()),
    "leaf_products_twice": (TabulateLeafProducts().apply(simplify(tree_fc())), TabulateLeafProducts()),
    "leaf_products_too_large": (Tabulate().apply(simplify(tree_lstm())), TabulateLeafProducts(7 * 6 * 16 - 1)),
    "leaf_products_unrolled": (UnrollRecursion().apply(simplify(tree_fc())), TabulateLeafProducts()),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal_step(name: str, golden: Golden) -> None:
    m, step = LEGAL[name]
    after = step.apply(m)
    verify(after)
    golden(f"recursion/{name}", f"{step!r}\n\n-- before --\n{show(m)}\n-- after --\n{show(after)}")


@pytest.mark.parametrize("name", REFUSED)
def test_refused_step(name: str, golden: Golden) -> None:
    m, step = REFUSED[name]
    kept = repr(m)
    with pytest.raises(ScheduleError) as refusal:
        step.apply(m)
    assert repr(m) == kept
    golden(f"recursion/refused_{name}", str(refusal.value))


def test_steps_print_as_python_and_can_be_keys() -> None:
    for _, step in [*LEGAL.values(), *REFUSED.values()]:
        assert eval(repr(step)) == step
        assert hash(eval(repr(step))) == hash(step)


def test_specializing_everything_is_where_a_model_starts() -> None:
    assert Specialize().apply(Specialize(()).apply(tree_fc())) == tree_fc()
    assert Batch().apply(Batch("depth").apply(tree_fc())) == tree_fc()


@pytest.mark.parametrize("steps", [(Tabulate(),), (Hoist(), Tabulate()), (Tabulate(), Hoist())], ids=repr)
def test_a_tabulated_model_means_the_same(steps: tuple[Step[ir.Model], ...]) -> None:
    rng = np.random.default_rng(0)
    m = simplify(tree_lstm())
    form, params = linearize(m, random_nodes(rng, 15)), random_params(m, rng)
    after = m
    for step in steps:
        after = step.apply(after)
    verify(after)
    for name, value in run(m, params, form).items():
        np.testing.assert_allclose(run(after, params, form)[name], value, atol=1e-14)
    filled = tables(after, derived(after, params))
    assert filled["leaf_h"].shape == (7, 4)
    assert tables(after, filled) == filled  # what is given is not computed again


def test_hoisting_reaches_into_tables() -> None:
    m = Hoist().apply(Tabulate().apply(simplify(tree_lstm())))
    assert m.tables == Tabulate().apply(Hoist().apply(simplify(tree_lstm()))).tables


def test_which_kinds_can_be_tabulated_and_what_it_takes() -> None:
    m = tree_lstm(h=4, words=7)
    leaf, inner = m.kinds
    found = candidate(m, leaf)
    assert isinstance(found, Candidate)
    assert (found.field, found.limit, found.row_bytes) == ("word", 7, 2 * 4 * 4)
    assert {let.name for let in found.lets} == set(leaf.results)
    assert candidate(m, inner) == "computes nothing from fields of its own"


def test_a_broken_table_is_found() -> None:
    m = Tabulate().apply(tree_lstm())
    (table,) = m.tables
    for broken, message in (
        (replace(table, kind=tree_lstm().kinds[1]), "reads more than field 'word'"),
        (replace(table, field="size"), "reads more than field 'size'"),
        (replace(table, params=("b", "leaf_c")), "parameter 'b' is"),
    ):
        with pytest.raises(InternalError, match=message):
            verify(replace(m, tables=(broken,), kinds=()))


def test_nodes_of_shared_groups_are_told_apart() -> None:
    m = tree_lstm()
    rng = np.random.default_rng(1)
    form, params = linearize(m, random_nodes(rng, 15)), random_params(m, rng)
    want = run(m, params, form)
    kind = np.repeat(form.arrays["group_kind"], form.arrays["group_len"])
    start = np.repeat(form.arrays["group_start"], form.arrays["group_len"])
    within = np.concatenate([np.arange(n) for n in form.arrays["group_len"]])
    node_kind = np.empty_like(kind)
    node_kind[start + within] = kind
    form.arrays["node_kind"] = node_kind
    form.arrays["group_kind"] = np.zeros_like(form.arrays["group_kind"])
    for name, value in run(Specialize(()).apply(m), params, form).items():
        np.testing.assert_array_equal(value, want[name])

"""The backward model, run by the reference interpreter, against differences of the model itself."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from gradients import interpreted, worst_against_differences
from ra_models import random_params, tree_lstm

from cortex import zoo
from cortex.frontend.trace import Trace
from cortex.frontend.weights import Weights
from cortex.lower.linear_form import LinearForm
from cortex.ra import ir
from cortex.ra.ir import Model
from cortex.runtime.linearize import linearize

WORDS = 20


def traced(name: str, seed: int = 0) -> tuple[Model, dict[str, np.ndarray], LinearForm]:
    entry = zoo.load(name)
    weights = {key: x.astype(np.float64) for key, x in entry.weights(5, WORDS).items()}
    trees = entry.structures(Random(seed), 2, WORDS)
    trace = Trace(entry.model, Weights(weights))
    trace.explore()
    trace.see(trees)
    return trace.model(), weights, linearize(trace.model(), trace.roots(trees), accessors=trace.accessors)


@pytest.mark.parametrize("name", sorted(zoo.ENTRIES))
def test_gradients_of_the_zoo_are_those_of_differences(name: str) -> None:
    m, weights, form = traced(name)
    assert worst_against_differences(m, weights, form) < 1e-6


def test_work_of_an_edge_that_only_the_child_takes_part_in_is_done_once_per_node() -> None:
    m, weights, form = traced("tree_lstm")
    g, _ = interpreted(m, weights, form, {"h": np.zeros((form.sizes["num_nodes"], 5))})
    assert not any(let.over and isinstance(let.op, ir.Contract) for k in g.forward.kinds for let in k.lets)
    assert g.backward.unordered == ()


def test_no_adjoint_means_gradients_of_zero() -> None:
    m, weights, form = traced("mv_rnn")
    zeros = {s.name: np.zeros((form.sizes["num_nodes"], *s.type.shape)) for s in m.states}
    assert all(not x.any() for x in interpreted(m, weights, form, zeros)[1].values())


def test_frozen_parameters_have_no_sums() -> None:
    from cortex.gradient.backward import backward

    g = backward(tree_lstm(), ["h"], ["Uf"])
    constants = {graph.kind: dict(graph.direct) for graph in g.constants}
    assert {constants[s.kind][s.let] for s in g.sums} == {"Uf"}
    assert not g.fields


def _kind(body: str) -> Model:
    """One kind over a list of children, whose state h has 3 elements; `body` is what it makes of them."""
    from ra_models import f32, with_kind

    from cortex.ra.ir import (
        Binary,
        Contract,
        Each,
        Fact,
        Field,
        FieldDecl,
        IsLeaf,
        Lookup,
        OverChildren,
        Param,
        ParamDecl,
        Reduce,
        Slice,
        State,
        StateDecl,
        TensorType,
        Unary,
    )

    m = Model(
        "made",
        (ParamDecl("W", f32(3, 3)), ParamDecl("q", f32(3)), ParamDecl("emb", f32(7, 3))),
        (FieldDecl("word", TensorType((), "i64"), 7),),
        (),
        ("children",),
        (StateDecl("h", f32(3)),),
        (),
    )
    over = (Each("children"),)

    def leaf(b):  # type: ignore[no-untyped-def]
        return (b.add(Unary("tanh", b.add(Lookup(b.add(Param("emb")), b.add(Field("word")))))),)

    def inner(b):  # type: ignore[no-untyped-def]
        child, q, w = b.add(State("h", over)), b.add(Param("q")), b.add(Param("W"))
        own = b.add(Lookup(b.add(Param("emb")), b.add(Field("word"))))
        match body:
            case "attention":
                query = b.add(Binary("mul", own, q))
                score = b.add(Contract("k,k->", query, b.add(Contract("jk,k->j", w, child))))
                top = b.add(OverChildren("max", score, "children"))
                e = b.add(Unary("exp", b.add(Binary("sub", score, top))))
                share = b.add(Binary("div", e, b.add(OverChildren("add", e, "children"))))
                return (b.add(OverChildren("add", b.add(Binary("mul", share, child)), "children")),)
            case "maximum":
                best = b.add(OverChildren("max", b.add(Binary("mul", child, q)), "children"))
                return (b.add(Unary("tanh", b.add(Contract("jk,k->j", w, b.add(Binary("add", best, own)))))),)
            case "mixed product":
                mixed = b.add(Contract("jk,k->j", w, b.add(Binary("mul", own, child))))
                return (b.add(OverChildren("add", b.add(Unary("tanh", mixed)), "children")),)
            case "word of a child":
                word = b.add(Lookup(b.add(Param("emb")), b.add(Field("word", over))))
                return (b.add(OverChildren("add", b.add(Binary("mul", word, child)), "children")),)
            case "constants of constants":
                twice = b.add(Contract("jk,kl->jl", w, w))
                t = b.add(Contract("jk,k->j", twice, b.add(OverChildren("add", child, "children"))))
                part = b.add(Slice(b.add(Binary("mul", q, q)), ((0, 3, 2),)))
                return (b.add(Binary("mul", b.add(Unary("tanh", t)), b.add(Reduce("max", part, (0,))))),)
            case _:
                raise ValueError(body)

    m = with_kind(m, "leaf", (Fact(IsLeaf(), True),), leaf)
    return with_kind(m, "inner", (Fact(IsLeaf(), False),), inner)


@pytest.mark.parametrize("body", ["attention", "maximum", "mixed product", "word of a child", "constants of constants"])
@pytest.mark.parametrize("shape", ["tree", "chain", "star", "shared"])
def test_values_per_edge(body: str, shape: str) -> None:
    from ra_models import linearize as by_hand
    from ra_models import random_nodes

    m, rng = _kind(body), np.random.default_rng(3)
    match shape:
        case "tree":
            nodes = random_nodes(rng, 20)
        case "chain":
            nodes = [{"children": [i + 1] if i < 29 else [], "word": i % 7} for i in range(30)]
        case "star":
            nodes = [{"children": list(range(1, 42)), "word": 1}]
            nodes += [{"children": [], "word": int(w)} for w in rng.integers(7, size=41)]
        case _:
            nodes = [{"children": [k for k in (2 * i + 1, 2 * i + 2, i + 3) if k < 9], "word": i % 7} for i in range(9)]
    form = by_hand(m, nodes)
    kinds = np.repeat(form.arrays["group_kind"], form.arrays["group_len"])
    starts = np.repeat(form.arrays["group_start"], form.arrays["group_len"])
    node_kind = np.zeros(len(nodes), np.int32)
    within = np.concatenate([np.arange(n) for n in form.arrays["group_len"]])
    node_kind[starts + within] = kinds
    order = np.lexsort((-np.arange(len(nodes)), node_kind))
    form.arrays["kind_node"] = order.astype(np.int32)
    form.arrays["kind_start"] = np.searchsorted(node_kind[order], np.arange(len(m.kinds) + 1)).astype(np.int32)
    form.sizes.update({"num_roots": 1, "max_group": int(form.arrays["group_len"].max())})
    whole = LinearForm(form.sizes, form.arrays, form.fields)
    assert worst_against_differences(m, random_params(m, rng), whole) < 1e-6

"""The always-on passes: golden before and after, equality under the interpreter."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import cycle
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest

import cortex
from cortex import zoo
from cortex.codegen.target import Target
from cortex.compiler import stages
from cortex.ilir.interp import run
from cortex.ilir.ir import Accumulate, Buffer, For, Func, Let, Scope, Store
from cortex.ilir.show import show
from cortex.ilir.verify import verify
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Float, Int, Load, Unary, Var
from cortex.passes.forward_stores import forward_stores
from cortex.passes.pipeline import PASSES
from cortex.passes.remove_unused import remove_unused
from cortex.passes.share_packings import share_packings
from cortex.passes.simplify_indices import simplify_indices
from cortex.plan import Plan
from cortex.runtime.linearize import linearize
from cortex.schedule.default import Choices

Golden = Callable[[str, str], None]
Pass = Callable[[Func], Func]


def program() -> Func:
    """Temporaries in a row, one of them a sum, with untidy indices."""
    i = Var("i")
    at = (Binary("add", Binary("mul", i, Int(1)), Int(0)),)
    body = (
        For("i", Int(0), Int(4), (
            Store("t", at, Binary("mul", Load("x", (i,)), Float(2.0))),
            Store("u", at, Binary("add", Load("t", (i,)), Load("t", at))),
            Store("s", at, Float(0.0)),
            For("k", Int(0), Int(3), (Accumulate("s", at, "add", Load("u", (i,))),)),
            Let(Var("unused", "f32"), Load("u", (i,))),
            Store("y", (Binary("mod", Binary("mul", i, Int(9)), Int(8)),), Unary("tanh", Load("s", (i,)))),
        )),
    )  # fmt: skip
    four = (Int(4),)
    buffers = (
        Buffer("x", "f32", four, Scope.PARAM),
        Buffer("w", "f32", four, Scope.PARAM),
        *(Buffer(name, "f32", four, Scope.SCRATCH) for name in "tus"),
        Buffer("y", "f32", four, Scope.STATE),
    )
    return Func("program", (), (), buffers, body)


@pytest.mark.parametrize("one", PASSES, ids=lambda p: p.__name__)
def test_pass(one: Pass, golden: Golden) -> None:
    f = program() if one is simplify_indices else simplify_indices(program())
    if one is remove_unused:
        f = forward_stores(f)
    g = one(f)
    verify(g)
    golden(f"passes/{one.__name__}", f"-- before --\n{show(f)}\n-- after --\n{show(g)}")
    x = {"x": np.array([0.1, -0.2, 0.3, 4.0]), "w": np.zeros(4)}
    np.testing.assert_allclose(run(g, {}, {}, x).buffers["y"], np.tanh(3 * 4 * x["x"]), rtol=1e-6)


def test_a_value_is_forgotten_when_its_buffer_changes() -> None:
    i = Var("i")
    body = (
        Store("t", (Int(0),), Float(1.0)),
        For("i", Int(0), Int(2), (Store("t", (i,), Float(5.0)),)),
        Store("y", (Int(0),), Load("t", (Int(0),))),
    )
    buffers = (Buffer("t", "f32", (Int(2),), Scope.SCRATCH), Buffer("y", "f32", (Int(1),), Scope.STATE))
    f = forward_stores(Func("f", (), (), buffers, body))
    assert run(f, {}, {}, {}).buffers["y"][0] == 5.0


def test_a_store_elsewhere_in_the_buffer_ends_a_value() -> None:
    body = (
        Store("t", (Int(0),), Float(1.0)),
        Store("t", (Var("n"),), Float(7.0)),
        Store("y", (Int(0),), Load("t", (Int(0),))),
    )
    buffers = (Buffer("t", "f32", (Int(2),), Scope.SCRATCH), Buffer("y", "f32", (Int(1),), Scope.STATE))
    f = forward_stores(Func("f", ("n",), (), buffers, body))
    assert run(f, {"n": 0}, {}, {}).buffers["y"][0] == 7.0


@pytest.mark.parametrize(("name", "level"), list(zip(zoo.ENTRIES, cycle(["sse2", "avx2", "avx512"]), strict=False)))
def test_every_stage_keeps_the_meaning(name: str, level: Literal["sse2", "avx2", "avx512"]) -> None:
    entry = zoo.load(name)
    hidden = Target.x86(level).lanes + 1 if name not in ("rntn", "mv_rnn") else 5
    fast = cortex.compile(entry.model, entry.weights(hidden, 20))
    trees = entry.structures(random.Random(2), 1, 20)[:1]
    if name in ("lstm", "gru", "tree_fc", "dag_rnn"):
        trees = _cut(trees[0])
    form = linearize(fast.compiled.model, trees)
    want = fast.interpret(trees)
    order = form.arrays["order"]
    given = dict(fast.weights) | {f"field_{k}": v for k, v in form.fields.items()}
    for stage in stages(fast.traced, Plan(Target.x86(level))):
        if stage.name in ("lowered", "scheduled", "passes"):
            verify(stage.func)
            got = run(stage.func, form.sizes, form.arrays, given)
            for state, values in want.items():
                np.testing.assert_allclose(got.buffers[f"state_{state}"][order], values, rtol=1e-6, atol=1e-7)


def _cut(root: Any) -> list[Any]:
    """A small structure below `root`."""
    node = root
    for _ in range(6 if hasattr(root, "left") else 0):
        node = node.left or node
    if hasattr(root, "prev"):
        link = root
        for _ in range(5):
            link = link.prev
        link.prev = None
        return [root]
    while hasattr(node, "children") and len(node.children) > 1 and _size(node) > 20:
        node = node.children[0]
    return [node]


def _size(node: Any) -> int:
    seen: dict[int, Any] = {}
    stack = [node]
    while stack:
        top = stack.pop()
        if id(top) not in seen:
            seen[id(top)] = top
            stack.extend(top.children)
    return len(seen)


def test_fused_programs_have_no_needless_temporaries() -> None:
    entry = zoo.load("tree_lstm")
    fast = cortex.compile(entry.model, entry.weights(32, 20), target=Target.x86("avx512"))  # the same everywhere
    f = fast.compiled.func
    kept = {b.name for b in f.buffers if b.scope is Scope.SCRATCH and not b.name.endswith("_tile")}
    assert len(kept) <= 3, kept  # the children's sum, the forget terms per edge and their sum
    assert not any(isinstance(n, Unary) and n.fn in ("tanh", "sigmoid", "exp") for s in f.body for n in walk(s))


@cortex.model
def by_tag(node: Any, w: Any) -> Any:
    """Two kinds that use the same weights."""
    if not node.children:
        return w.x
    s = w.W @ cortex.sum(by_tag(child, w) for child in node.children)
    return cortex.tanh(s) if node.tag == "a" else cortex.relu(s)


def test_kinds_with_the_same_weights_share_their_panels() -> None:
    def node(tag: str, *children: Any) -> Any:
        return SimpleNamespace(tag=tag, children=children)

    tree = node("a", node("b", node("a")), node("a", node("b"), node("b", node("a"))))
    rng = np.random.default_rng(0)
    weights = {"W": rng.standard_normal((40, 40), np.float32) / 6, "x": rng.standard_normal(40, np.float32)}
    fast = cortex.compile(by_tag, weights, examples=[tree])
    *_, scheduled, last = stages(fast.traced, Plan(Target.x86("avx512"), choices=Choices(fuse=False)))
    shared = share_packings(scheduled.func)
    verify(shared)
    assert (len(scheduled.func.packings), len(shared.packings), len(last.func.packings)) == (2, 1, 1)
    assert len(shared.buffers) == len(scheduled.func.buffers) - 1
    assert share_packings(shared) is shared
    np.testing.assert_allclose(fast(tree).out, fast.interpret(tree)["out"][0], rtol=1e-5, atol=1e-6)

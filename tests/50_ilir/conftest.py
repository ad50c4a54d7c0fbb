"""Two programs written by hand: a recursive network over a linear form, and a packed matrix product with a gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from cortex.ilir.ir import (
    Accumulate,
    Barrier,
    Buffer,
    Case,
    For,
    Func,
    IndexFunction,
    Let,
    LoopKind,
    PackedGate,
    Packing,
    Scope,
    Store,
    Switch,
)
from cortex.ir.scalar import Binary, Expr, Index, Int, Load, Unary, Var


@dataclass(frozen=True)
class Program:
    func: Func
    sizes: dict[str, int]
    index: dict[str, Any]
    buffers: dict[str, Any]
    expected: dict[str, Any]


def add(x: Expr, y: Expr) -> Expr:
    return Binary("add", x, y)


def mul(x: Expr, y: Expr) -> Expr:
    return Binary("mul", x, y)


def tree_rnn_func(hidden: int = 4, words: int = 6) -> Func:
    n, m, g, j, k = Var("n"), Var("m"), Var("g"), Var("j"), Var("k")
    start, length = Index("group_start", (g,)), Index("group_len", (g,))
    nodes, h = Var("num_nodes"), Int(hidden)
    left, right = Var("left"), Var("right")
    leaf = For(
        "n", start, add(start, length),
        (For("c", Int(0), h, (Store("h", (n, Var("c")), Load("emb", (Index("field_word", (n,)), Var("c")))),)),),
    )  # fmt: skip
    children = add(Load("h", (left, k)), Load("h", (right, k)))
    inner = For(
        "m", start, add(start, length),
        (
            Let(left, Index("child_left", (m,))),
            Let(right, Index("child_right", (m,))),
            For("i", Int(0), h, (Store("acc", (Int(0), Var("i")), Load("b", (Var("i"),))),)),
            For("k", Int(0), h, (
                Let(Var("s", "f32"), children),
                For("j", Int(0), h, (
                    Accumulate("acc", (Int(0), j), "add", mul(Load("W", (j, k)), Var("s", "f32"))),
                ), LoopKind.VECTORIZED),
            )),
            For("o", Int(0), h, (
                Store("h", (m, Var("o")), Unary("tanh", Load("acc", (Int(0), Var("o"))))),
            ), LoopKind.VECTORIZED),
        ),
    )  # fmt: skip
    groups = Var("num_groups")
    return Func(
        "tree_rnn",
        ("num_nodes", "num_groups"),
        (
            IndexFunction("group_start", groups, ("in_nodes", "non_negative"), nodes),
            IndexFunction("group_len", groups, ("non_negative",)),
            IndexFunction("group_kind", groups, ("non_negative",), Int(2)),
            IndexFunction("child_left", nodes, ("below",), nodes),
            IndexFunction("child_right", nodes, ("below",), nodes),
            IndexFunction("field_word", nodes, ("non_negative",), Int(words)),
        ),
        (
            Buffer("emb", "f32", (Int(words), h), Scope.PARAM, 8),
            Buffer("W", "f32", (h, h), Scope.PARAM, 8),
            Buffer("b", "f32", (h,), Scope.PARAM),
            Buffer("acc", "f32", (Int(1), h), Scope.REGISTER, 8),
            Buffer("h", "f32", (nodes, h), Scope.STATE, 8),
        ),
        (
            For("g", Int(0), groups, (
                Switch(Index("group_kind", (g,)), (Case(0, (leaf,)), Case(1, (inner,)))),
                Barrier(),
            )),
        ),
    )  # fmt: skip


@pytest.fixture
def tree_rnn() -> Program:
    """((2 3) 4) with node 0 at the root: groups run from the leaves 2..4 up."""
    hidden, words = 4, 6
    rng = np.random.default_rng(1)
    emb, w, b = rng.normal(size=(words, hidden)), rng.normal(size=(hidden, hidden)), rng.normal(size=hidden)
    word = np.array([0, 0, 5, 1, 3])
    index = {
        "group_start": np.array([2, 1, 0]), "group_len": np.array([3, 1, 1]), "group_kind": np.array([0, 1, 1]),
        "child_left": np.array([1, 2, -1, -1, -1]), "child_right": np.array([4, 3, -1, -1, -1]), "field_word": word,
    }  # fmt: skip
    h = emb[word]
    h[1] = np.tanh(b + w @ (h[2] + h[3]))
    h[0] = np.tanh(b + w @ (h[1] + h[4]))
    sizes = {"num_nodes": 5, "num_groups": 3}
    return Program(tree_rnn_func(hidden, words), sizes, index, {"emb": emb, "W": w, "b": b}, {"h": h})


def gated_func(columns: int = 5, depth: int = 3, width: int = 4) -> Func:
    p, n, k, a, v, o = Var("p"), Var("n"), Var("k"), Var("a"), Var("v"), Var("o")
    panels, lanes = Int(-(-columns // width)), Int(width)
    vectorized, unrolled = LoopKind.VECTORIZED, LoopKind.UNROLLED
    clear = For("ca", Int(0), Int(2), (
        For("cv", Int(0), lanes, (Store("acc", (Var("ca"), Var("cv")), Load("zero", ())),), vectorized),
    ), unrolled)  # fmt: skip
    product = mul(Load("Wp", (p, k, a, v)), Load("x", (n, k)))
    update = For("k", Int(0), Int(depth), (
        For("a", Int(0), Int(2), (
            For("v", Int(0), lanes, (Accumulate("acc", (a, v), "add", product),), vectorized),
        ), unrolled),
    ))  # fmt: skip
    gate = mul(Load("acc", (Int(0), o)), Unary("sigmoid", Load("acc", (Int(1), o))))
    finish = For("o", Int(0), lanes, (Store("y", (n, add(mul(p, lanes), o)), gate),), vectorized)
    rows = Var("rows")
    return Func(
        "gated",
        ("rows",),
        (),
        (
            Buffer("V", "f32", (Int(2), Int(depth), Int(columns)), Scope.PARAM),
            Buffer("zero", "f32", (), Scope.PARAM),
            Buffer("Wp", "f32", (panels, Int(depth), Int(2), lanes), Scope.PACKED),
            Buffer("x", "f32", (rows, Int(depth)), Scope.FIELD, width),
            Buffer("acc", "f32", (Int(2), lanes), Scope.REGISTER),
            Buffer("y", "f32", (rows, Int(columns)), Scope.STATE, width),
        ),
        (For("p", Int(0), panels, (For("n", Int(0), rows, (clear, update, finish)),)),),
        (
            Packing("Wp", (), columns, depth, width, (
                PackedGate("V", (Int(0), Var("k"), Var("j"))),
                PackedGate("V", (Int(1), Var("k"), Var("j"))),
            )),
        ),
    )  # fmt: skip


@pytest.fixture
def gated() -> Program:
    rng = np.random.default_rng(2)
    v, x = rng.normal(size=(2, 3, 5)), rng.normal(size=(7, 3))
    y = (x @ v[0]) / (1 + np.exp(-(x @ v[1])))
    return Program(gated_func(), {"rows": 7}, {}, {"V": v, "x": x, "zero": np.zeros(())}, {"y": y})

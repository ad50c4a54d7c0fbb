"""Small ILIR programs for the tests of schedule steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cortex.ilir.interp import run
from cortex.ilir.ir import Accumulate, Buffer, For, Func, If, IndexFunction, Scope, Stmt, Store
from cortex.ir.scalar import Binary, Expr, Float, Index, Int, Load, Unary, Var

N = Var("num_nodes")
G = Var("g")


def v(name: str) -> Var:
    return Var(name)


def add(x: Expr, y: Expr) -> Expr:
    return Binary("add", x, y)


def mul(x: Expr, y: Expr) -> Expr:
    return Binary("mul", x, y)


def nodes(var: str, *body: Stmt) -> For:
    """A loop over the nodes of group g."""
    start = Index("group_start", (G,))
    return For(var, start, Binary("add", start, Index("group_len", (G,))), body)


def cell(columns: int = 20, depth: int = 5) -> Func:
    """h = tanh(W @ h[child] + b) in the naive form: a product, a bias and an activation, one nest each."""
    t, u = "t", "u"
    index = (
        IndexFunction("group_start", Var("num_groups"), ("in_nodes", "non_negative"), N),
        IndexFunction("group_len", Var("num_groups"), ("non_negative",)),
        IndexFunction("child", N, ("below", "outside_group"), N),
    )
    product = nodes(
        "p_n",
        For("p_j", Int(0), Int(columns), (
            Store(t, (v("p_n"), v("p_j")), Float(0.0)),
            For("p_k", Int(0), Int(depth), (
                Accumulate(t, (v("p_n"), v("p_j")), "add",
                           mul(Load("W", (v("p_j"), v("p_k"))), Load("h", (Index("child", (v("p_n"),)), v("p_k"))))),
            )),
        )),
    )  # fmt: skip
    bias = nodes(
        "b_n",
        For("b_j", Int(0), Int(columns), (
            Store(u, (v("b_n"), v("b_j")), add(Load(t, (v("b_n"), v("b_j"))), Load("b", (v("b_j"),)))),
        )),
    )  # fmt: skip
    activation = nodes(
        "a_n",
        For("a_j", Int(0), Int(columns), (
            Store("h", (v("a_n"), v("a_j")), Unary("tanh", Load(u, (v("a_n"), v("a_j"))))),
        )),
    )  # fmt: skip
    leaf = For("l_j", Int(0), Int(columns), (Store("h", (Binary("sub", N, Int(1)), v("l_j")), Load("b", (v("l_j"),))),))
    body = (leaf, For("g", Int(0), Var("num_groups"), (If(Binary("ge", G, Int(0)), (product, bias, activation)),)))
    buffers = (
        Buffer("W", "f32", (Int(columns), Int(depth)), Scope.PARAM, 16),
        Buffer("b", "f32", (Int(columns),), Scope.PARAM, 16),
        Buffer("h", "f32", (N, Int(columns)), Scope.STATE, 16),
        Buffer(t, "f32", (N, Int(columns)), Scope.SCRATCH, 16),
        Buffer(u, "f32", (N, Int(columns)), Scope.SCRATCH, 16),
    )
    return Func("cell", ("num_nodes", "num_groups", "max_group"), index, buffers, body)


def request(f: Func) -> tuple[dict[str, int], dict[str, Any], dict[str, Any]]:
    """Sizes, index arrays and weights: 14 nodes in three groups, 13 parents of the last node, in chains."""
    rng = np.random.default_rng(7)
    weights = [b for b in f.buffers if b.scope is Scope.PARAM]
    params = {b.name: rng.normal(size=tuple(e.value for e in b.shape if isinstance(e, Int))) for b in weights}
    index = {
        "group_start": np.array([12, 3, 0]),
        "group_len": np.array([1, 9, 3]),
        "child": np.array([3, 7, 11, *[12] * 9, 13, -1]),
    }
    return {"num_nodes": 14, "num_groups": 3, "max_group": 9}, index, params


def states(f: Func, weights: dict[str, Any] | None = None) -> dict[str, Any]:
    """The states after a request, by the interpreter; with `weights` in place of some of the request's."""
    sizes, index, params = request(f)
    result = run(f, sizes, index, params | (weights or {}))
    return {b.name: result.buffers[b.name] for b in f.buffers if b.scope is Scope.STATE}


def rounded(f: Func) -> dict[str, Any]:
    """The weight W of a cell, rounded as `f` stores it: digit by digit, in exact arithmetic of Python's."""
    dtype = next(b.dtype for b in f.buffers if b.scope is Scope.PACKED)
    w = request(f)[2]["W"].astype(np.float32).astype(np.float64)
    if dtype == "i8":
        scale = (np.abs(w).max(axis=1, keepdims=True) / 127).astype(np.float32).astype(np.float64)
        return {"W": np.array([[round(x / s) * s for x in row] for row, (s,) in zip(w, scale, strict=True)])}
    if dtype == "i16":
        length = np.sqrt((w**2).sum(axis=1, keepdims=True))
        longest = (65534 - math.sqrt(w.shape[1]) / 2) * (1 - 2**-12)
        scale = np.maximum(np.abs(w).max(axis=1, keepdims=True) / 32767, length / longest).astype(np.float32)
        return {"W": np.rint(w / scale.astype(np.float64)) * scale.astype(np.float64)}
    digits = {"bf16": 8, "f16": 11}[dtype]
    return {"W": np.vectorize(lambda x: _to_digits(float(x), digits))(w)}


def by_hand(f: Func, weights: dict[str, Any], inputs: str) -> Any:
    """The states of a cell whose products read rounded inputs, node by node."""
    _, index, given = request(f)
    w, b = (given | weights)["W"], given["b"]
    h = np.zeros((14, len(b)))
    h[13] = b
    for n in (
        n
        for start, many in zip(index["group_start"], index["group_len"], strict=True)
        for n in range(start, start + many)
    ):
        x = h[index["child"][n], : w.shape[1]]
        if inputs == "bf16":
            x = np.array([_to_digits(float(np.float32(e)), 8) for e in x])
        else:
            scale = math.sqrt((x**2).sum()) / ((32767 - math.sqrt(len(x)) / 2) * (1 - 2**-12))
            x = np.rint(x / scale) * scale
        h[n] = np.tanh(w @ x + b)
    return h


def _to_digits(x: float, digits: int) -> float:
    """The number of so many binary digits that is nearest to `x`, ties to even."""
    fraction, exponent = math.frexp(x)
    return math.ldexp(round(math.ldexp(fraction, digits)), exponent - digits)

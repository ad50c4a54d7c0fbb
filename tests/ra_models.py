"""Models written by hand and requests linearized by hand, for the tests of RA and of the recursion steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cortex.ra.build import Builder
from cortex.ra.ir import (
    Binary,
    Concat,
    Contract,
    Each,
    Equals,
    Fact,
    Field,
    FieldDecl,
    IsAboveLeaves,
    IsLeaf,
    IsNone,
    Kind,
    Length,
    Lookup,
    Model,
    OverChildren,
    Param,
    ParamDecl,
    Slice,
    Slot,
    State,
    StateDecl,
    TensorType,
    Test,
    Unary,
    Value,
)
from cortex.ra.shapes import Declared

Nodes = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Form:
    """The linear form of a request, as `cortex.lower.linear_form` describes it."""

    sizes: dict[str, int]
    arrays: dict[str, Any]
    fields: dict[str, Any]


def linearize(m: Model, nodes: Nodes) -> Form:
    """Number `nodes`, whose attributes name children by position, parents first; all of them are one request."""
    kids = [_children(m, n) for n in nodes]
    heights = [0] * len(nodes)
    for i in reversed(range(len(nodes))):
        heights[i] = 1 + max((heights[k] for k in kids[i]), default=-1)
    kinds = [
        next(j for j, k in enumerate(m.kinds) if all(_fits(m, nodes, i, f) for f in k.guard)) for i in range(len(nodes))
    ]
    keys = sorted(set(zip(heights, kinds, strict=True)))
    groups = [[i for i in range(len(nodes)) if (heights[i], kinds[i]) == key] for key in keys]
    order = [i for group in reversed(groups) for i in group]
    ids = {user: n for n, user in enumerate(order)}
    arrays: dict[str, Any] = {
        "group_start": np.array([ids[g[0]] for g in groups], np.int32),
        "group_len": np.array([len(g) for g in groups], np.int32),
        "group_kind": np.array([kind for _, kind in keys], np.int32),
        "order": np.array([ids[i] for i in range(len(nodes))], np.int32),
    }
    for s in m.slots:
        child = [nodes[i].get(s) for i in order]
        arrays[f"child_{s}"] = np.array([-1 if c is None else ids[c] for c in child], np.int32)
    for r in m.lists:
        lists = [[ids[c] for c in nodes[i].get(r, ())] for i in order]
        arrays[f"{r}_ptr"] = np.cumsum([0, *map(len, lists)]).astype(np.int32)
        arrays[f"{r}_child"] = np.array([c for each in lists for c in each], np.int32)
        arrays[f"{r}_parent"] = np.repeat(np.arange(len(lists)), [len(x) for x in lists]).astype(np.int32)
    fields: dict[str, Any] = {}
    for f in m.fields:
        values = np.array([nodes[i].get(f.name, np.zeros(f.type.shape)) for i in order])
        if f.type.dtype == "i64":
            arrays[f"field_{f.name}"] = values.astype(np.int32)
        else:
            fields[f.name] = values
    return Form({"num_nodes": len(nodes), "num_groups": len(groups)}, arrays, fields)


def random_nodes(rng: np.random.Generator, count: int, most: int = 3, words: int = 7) -> list[dict[str, Any]]:
    """A random tree: `children` lists of up to `most`, parents first, and a word on every node."""
    nodes: list[dict[str, Any]] = [{"children": [], "word": int(rng.integers(words))} for _ in range(count)]
    for i in range(1, count):
        open_nodes = [p for p in range(i) if len(nodes[p]["children"]) < most]
        nodes[int(rng.choice(open_nodes))]["children"].append(i)
    return nodes


def random_params(m: Model, rng: np.random.Generator) -> dict[str, Any]:
    """Small random weights for every parameter that `m` does not derive."""
    derived = {d.name for d in m.derived}
    return {p.name: rng.normal(0, 0.4, p.type.shape) for p in m.params if p.name not in derived}


def f32(*shape: int) -> TensorType:
    return TensorType(shape)


def with_kind(m: Model, name: str, guard: tuple[Fact, ...], body: Callable[[Builder], Sequence[str]]) -> Model:
    """`m` with one more kind, whose lets `body` adds to a builder."""
    b = Builder(Declared.of(m))
    results = tuple(body(b))
    return replace(m, kinds=(*m.kinds, Kind(name, guard, b.lets, results)))


def tree_lstm(h: int = 4, words: int = 7) -> Model:
    """The child-sum TreeLSTM of the design document: words at the leaves, gates computed together and split."""
    m = Model(
        name="tree_lstm",
        params=(
            ParamDecl("W", f32(3 * h, h)),
            ParamDecl("U", f32(3 * h, h)),
            ParamDecl("b", f32(3 * h)),
            ParamDecl("Uf", f32(h, h)),
            ParamDecl("bf", f32(h)),
            ParamDecl("emb", f32(words, h)),
        ),
        fields=(FieldDecl("word", TensorType((), "i64"), words),),
        slots=(),
        lists=("children",),
        states=(StateDecl("h", f32(h)), StateDecl("c", f32(h))),
        kinds=(),
    )

    def gates(b: Builder, weights: str, x: str) -> list[str]:
        product = b.add(Contract("jk,k->j", b.add(Param(weights)), x))
        t = b.add(Binary("add", product, b.add(Param("b"))))
        return [b.add(Slice(t, ((j * h, j * h + h, 1),)), name) for j, name in enumerate("iou")]

    def finish(b: Builder, o: str, c: str) -> tuple[str, str]:
        return b.add(Binary("mul", b.add(Unary("sigmoid", o)), b.add(Unary("tanh", c))), "h"), c

    def leaf(b: Builder) -> tuple[str, str]:
        i, o, u = gates(b, "W", b.add(Lookup(b.add(Param("emb")), b.add(Field("word")))))
        return finish(b, o, b.add(Binary("mul", b.add(Unary("sigmoid", i)), b.add(Unary("tanh", u))), "c"))

    def inner(b: Builder) -> tuple[str, str]:
        each = (Each("children"),)
        s = b.add(OverChildren("add", b.add(State("h", each)), "children"), "s")
        i, o, u = gates(b, "U", s)
        pre = b.add(Contract("jk,k->j", b.add(Param("Uf")), b.add(State("h", each))))
        f = b.add(Unary("sigmoid", b.add(Binary("add", pre, b.add(Param("bf"))))), "f")
        kept = b.add(OverChildren("add", b.add(Binary("mul", f, b.add(State("c", each)))), "children"))
        new = b.add(Binary("mul", b.add(Unary("sigmoid", i)), b.add(Unary("tanh", u))))
        return finish(b, o, b.add(Binary("add", new, kept), "c"))

    m = with_kind(m, "leaf", (Fact(IsLeaf(), True),), leaf)
    return with_kind(m, "inner", (Fact(IsLeaf(), False),), inner)


def tree_fc(h: int = 4, words: int = 7) -> Model:
    """h = relu(W [h_l ; h_r] + b) over two slots, emb[word] at the leaves."""
    m = Model(
        "tree_fc",
        (ParamDecl("W", f32(h, 2 * h)), ParamDecl("b", f32(h)), ParamDecl("emb", f32(words, h))),
        (FieldDecl("word", TensorType((), "i64"), words),),
        ("left", "right"),
        (),
        (StateDecl("h", f32(h)),),
        (),
    )

    def leaf(b: Builder) -> tuple[str]:
        return (b.add(Lookup(b.add(Param("emb")), b.add(Field("word")))),)

    def inner(b: Builder) -> tuple[str]:
        both = b.add(Concat((b.add(State("h", (Slot("left"),))), b.add(State("h", (Slot("right"),)))), 0))
        t = b.add(Contract("jk,k->j", b.add(Param("W")), both))
        return (b.add(Unary("tanh", b.add(Binary("add", t, b.add(Param("b")))))),)

    m = with_kind(m, "leaf", (Fact(IsLeaf(), True),), leaf)
    return with_kind(m, "inner", (Fact(IsLeaf(), False),), inner)


def child_sum(h: int = 4) -> Model:
    """h = tanh(U sum h_k + (b + d)), one kind for every node: leaves and others are not told apart."""
    m = Model(
        "child_sum",
        (ParamDecl("U", f32(h, h)), ParamDecl("b", f32(h)), ParamDecl("d", f32(h))),
        (),
        (),
        ("children",),
        (StateDecl("h", f32(h)),),
        (),
    )

    def body(b: Builder) -> tuple[str]:
        s = b.add(OverChildren("add", b.add(State("h", (Each("children"),))), "children"))
        bias = b.add(Binary("add", b.add(Param("b")), b.add(Param("d"))))
        t = b.add(Contract("jk,k->j", b.add(Param("U")), s))
        return (b.add(Unary("tanh", b.add(Binary("add", t, bias)))),)

    return with_kind(m, "any", (), body)


def _children(m: Model, node: Mapping[str, Any]) -> list[int]:
    slots = [node[s] for s in m.slots if node.get(s) is not None]
    return slots + [c for r in m.lists for c in node.get(r, ())]


def _fits(m: Model, nodes: Nodes, i: int, fact: Fact) -> bool:
    return _answer(m, nodes, i, fact.test) == fact.answer


def _answer(m: Model, nodes: Nodes, i: int, test: Test) -> Any:
    assert not test.path
    node = nodes[i]
    match test:
        case IsLeaf():
            return not _children(m, node)
        case IsAboveLeaves():
            below = _children(m, node)
            return bool(below) and not any(_children(m, nodes[c]) for c in below)
        case IsNone(name):
            return node.get(name) is None
        case Length(name):
            return len(node.get(name, ()))
        case Equals(name, value):
            return node.get(name) == value
        case Value(name):
            return node[name]

"""Random graphs mean the same after simplification."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ra_models import f32, linearize, random_nodes, random_params, tree_fc, tree_lstm, with_kind

from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.interp import run
from cortex.ra.simplify import simplify
from cortex.ra.verify import verify

EACH = (ir.Each("children"),)
PARAMS = {"v": (4,), "w": (6,), "A": (4, 6), "B": (6, 6), "C": (2, 3, 4), "table": (7, 4)}


def skeleton() -> ir.Model:
    return ir.Model(
        "random",
        tuple(ir.ParamDecl(n, f32(*shape)) for n, shape in PARAMS.items()),
        (ir.FieldDecl("word", ir.TensorType((), "i64"), 7), ir.FieldDecl("x", f32(6))),
        (),
        ("children",),
        (ir.StateDecl("h", f32(4)), ir.StateDecl("M", f32(2, 3))),
        (),
    )


class Grower:
    """Adds random ops over the values there are; values stay small, so that rounding does."""

    def __init__(self, b: Builder, rng: np.random.Generator) -> None:
        self.b, self.rng = b, rng
        word = b.add(ir.Field("word"))
        self.values = [b.add(ir.Param(n)) for n in PARAMS]
        self.values += [b.add(ir.Field("x")), b.add(ir.Lookup(self.values[-1], word)), b.add(ir.Arity("children"))]
        self.values += [b.add(ir.State("h", EACH)), b.add(ir.State("M", EACH)), b.add(ir.Field("x", EACH))]
        self.values += [
            b.add(ir.Fill(float(v), s)) for v, s in ((0, (4,)), (1, (6,)), (0, (6, 6)), (-1, ()), (2, (4, 6)))
        ]

    def pick(self) -> str:
        """Recent values more often than old ones."""
        n = len(self.values)
        return self.values[int(n - 1 - abs(self.rng.normal(0, n / 2)) % n)]

    def shape(self, x: str) -> tuple[int, ...]:
        return self.b.types[x].shape

    def step(self) -> None:
        x, y = self.pick(), self.pick()
        shape, rng, add = self.shape(x), self.rng, self.b.add
        over = self.b.overs[x]
        choice = rng.integers(12)
        if choice == 0:
            new = add(ir.Unary(str(rng.choice(["neg", "abs", "tanh", "sigmoid"])), x))  # type: ignore[arg-type]
        elif choice <= 2:
            try:
                np.broadcast_shapes(shape, self.shape(y))
            except ValueError:
                return
            new = add(ir.Binary(str(rng.choice(["add", "sub", "mul", "min", "max"])), x, y))  # type: ignore[arg-type]
        elif choice <= 4 and shape:
            letters = "pqrs"[: len(shape)]
            other = self.shape(y)
            if len(other) > 3 or len(shape) > 3:
                return
            term = ""
            for n in other:
                free = [c for c, k in zip(letters, shape, strict=True) if k == n and c not in term]
                term += str(rng.choice(free)) if free and rng.random() < 0.8 else "tuv"[len(term)]
            out = [c for c in dict.fromkeys(letters + term) if rng.random() < 0.5][:3]
            rng.shuffle(out)
            new = add(ir.Contract(f"{letters},{term}->{''.join(out)}", x, y))
        elif choice == 5 and shape:
            axes = tuple(a for a in range(len(shape)) if rng.random() < 0.5)
            new = add(ir.Reduce(str(rng.choice(["add", "max", "min"])), x, axes))  # type: ignore[arg-type]
        elif choice == 6 and over is not None:
            new = add(ir.OverChildren(str(rng.choice(["add", "add", "max"])), x, over))  # type: ignore[arg-type]
        elif choice == 7 and shape:
            axis = int(rng.integers(len(shape)))
            same = [v for v in self.values if len(self.shape(v)) == len(shape)]
            fits = [
                v
                for v in same
                if all(a == axis or n == k for a, (n, k) in enumerate(zip(shape, self.shape(v), strict=True)))
            ]
            new = add(ir.Concat((x, str(rng.choice(fits))), axis))
        elif choice <= 9 and shape:
            axis = int(rng.integers(len(shape)))
            middle = shape[axis] // 2
            for lo, hi, step in ((0, middle, 1), (middle, shape[axis], 1 + int(rng.integers(2)))):
                if lo < hi:
                    ranges = tuple((lo, hi, step) if a == axis else (0, n, 1) for a, n in enumerate(shape))
                    self.values.append(add(ir.Slice(x, ranges)))
            return
        elif choice == 10 and shape:
            perm = tuple(int(p) for p in rng.permutation(len(shape)))
            options: list[ir.Op] = [ir.Transpose(x, perm), ir.Reshape(x, (*shape, 1)), ir.Broadcast(x, (2, *shape))]
            options.append(ir.Reshape(x, (int(np.prod(shape)),)))
            if shape[0] % 2 == 0:
                options.append(ir.Reshape(x, (2, shape[0] // 2, *shape[1:])))
            new = add(options[int(rng.integers(len(options)))])
        else:
            some = add(ir.Binary("lt", self.values[6], add(ir.Fill(0.0, ()))))
            new = add(ir.Where(some, self.values[6], self.values[1]))
        if np.prod(self.shape(new)) <= 400 and len(self.shape(new)) <= 4:
            self.values.append(new)

    def result(self, shape: tuple[int, ...]) -> str:
        """Some recent values made into a per-node value of `shape` within -1..1."""
        add = self.b.add
        parts = []
        for x in {self.pick(): None for _ in range(6)}:
            one = x if self.b.overs[x] is None else add(ir.OverChildren("add", x, "children"))
            parts.append(add(ir.Reshape(one, (int(np.prod(self.shape(one))),))))
        flat = add(ir.Concat(tuple(parts), 0))
        weights = add(ir.Broadcast(flat, (*shape, *self.shape(flat))))
        return add(ir.Unary("tanh", add(ir.Reduce("add", weights, (len(shape),)))))


@pytest.mark.parametrize("seed", range(80))
def test_random_graphs(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def body(b: Builder) -> list[str]:
        g = Grower(b, rng)
        for _ in range(30):
            g.step()
        return [g.result((4,)), g.result((2, 3))]

    guard = () if seed % 3 else (ir.Fact(ir.IsLeaf(), True),)
    m = with_kind(skeleton(), "first", guard, body)
    if guard:
        m = with_kind(m, "second", (ir.Fact(ir.IsLeaf(), False),), body)
    verify(m)
    simpler = simplify(m)
    verify(simpler)
    nodes = [dict(n, x=rng.normal(0, 0.5, 6)) for n in random_nodes(rng, 12)]
    form = linearize(m, nodes)
    params = random_params(m, rng)
    before, after = run(m, params, form), run(simpler, params, form)
    for s in m.states:
        np.testing.assert_allclose(after[s.name], before[s.name], rtol=1e-10, atol=1e-10)
    assert simplify(simpler) == simpler


@pytest.mark.parametrize("model", [tree_lstm(), tree_fc()], ids=lambda m: m.name)
def test_models(model: ir.Model) -> None:
    rng = np.random.default_rng(0)
    nodes = random_nodes(rng, 20)
    if model.slots:
        nodes = [{"left": 2 * i + 1, "right": 2 * i + 2} if i < 7 else {"word": i % 7} for i in range(15)]
    form, params = linearize(model, nodes), random_params(model, rng)
    before, after = run(model, params, form), run(simplify(model), params, form)
    assert {n: x.shape for n, x in before.items()} == {n: x.shape for n, x in after.items()}
    for name in before:
        np.testing.assert_allclose(after[name], before[name], rtol=1e-12, atol=1e-12)
        assert np.abs(before[name]).max() > 0


def test_reprs_rebuild() -> None:
    for m in (tree_lstm(), simplify(tree_lstm()), replace(tree_fc(), name="it's")):
        assert eval(repr(m), vars(ir)) == m

"""Four-way agreement: PyTorch, the interpreter of RA, the interpreter of ILIR, and compiled code.

RA and ILIR are interpreted in float64: RA as traced and after the recursion steps, ILIR as lowered and as the very
program that was compiled, scheduled and after all passes. PyTorch and the compiled code run in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch

import cortex
from cortex.codegen.target import Target
from cortex.ilir import interp as ilir_interp
from cortex.ilir.ir import Func
from cortex.lower.linear_form import LinearForm
from cortex.lower.lower import lower
from cortex.ra import interp as ra_interp
from cortex.ra import ir as ra
from cortex.ra.shapes import terms
from cortex.runtime.linearize import linearize

Array = Any
States = Mapping[str, Array]


@dataclass(frozen=True)
class Report:
    """What a comparison saw: the worst absolute errors against float64, and whether ILIR was interpreted too."""

    compiled: float
    torch: float
    interpreted: bool


class Disagreement(AssertionError):
    """Two ways of running a model differ."""


class FourWays:
    """A model with its weights, to be run on batches of structures in all four ways."""

    def __init__(
        self,
        model: Any,
        weights: Mapping[str, Array] | None,
        examples: Sequence[Any],
        *,
        target: Target | None = None,
        early: bool = True,
        children: Any = None,
    ) -> None:
        """Compile for the kinds of `examples`: now (`early`), or when they are first met."""
        given = {"examples": examples} if early else {}
        self.fast = cortex.compile(model, weights, target=target, children=children, **given)  # type: ignore[arg-type]
        self.fast(list(examples))
        lanes = (target or Target.host()).lanes
        traced, used = self.fast.traced, self.fast.compiled
        self._models = {"traced": traced, "recursion": used.model}
        self._funcs = {"lowered": lower(used.model, lanes), "passes": used.func}

    def check(self, batch: list[Any], expected: Callable[[Any], States], most_operations: float = 2e5) -> Report:
        """Compare all ways on a batch; `expected(node)` gives PyTorch's states of a node by name.

        ILIR is interpreted only where that takes fewer than about `most_operations` operations.
        """
        m = self.fast.traced
        nodes = in_preorder(batch, lambda node: children_of(m, node))
        per_node = [expected(node) for node in nodes]
        wanted = {s.name: _stack([states[s.name] for states in per_node], s.type.shape) for s in m.states}
        exact = {stage: self._interpret_ra(used, batch) for stage, used in self._models.items()}
        reference = exact["traced"]
        for stage, states in exact.items():
            _same(f"PyTorch and ra.interp ({stage})", wanted, states)
        form = self.fast.linearize(batch)
        small = operations(self._models["recursion"], form) <= most_operations
        for stage, f in self._funcs.items() if small else ():
            _same(f"PyTorch and ilir.interp ({stage})", wanted, self._interpret_ilir(f, form))
        out = self.fast(batch)
        compiled = {s.name: out.nodes[s.name] for s in m.states}
        at_roots = {s.name: _stack([expected(r)[s.name] for r in batch], s.type.shape) for s in m.states}
        _same("PyTorch and compiled", wanted, compiled)
        _same("PyTorch and compiled, at the roots", at_roots, {s.name: out[s.name] for s in m.states})
        return Report(_worst(reference, compiled), _worst(reference, wanted), small)

    def _interpret_ra(self, m: ra.Model, batch: list[Any]) -> States:
        form = linearize(m, batch, accessors=self.fast._trace.accessors)
        states = ra_interp.run(m, self.fast.weights, form)
        return {name: values[form.arrays["order"]] for name, values in states.items()}

    def _interpret_ilir(self, f: Func, form: LinearForm) -> States:
        buffers = dict(self.fast.weights) | {f"field_{name}": value for name, value in form.fields.items()}
        result = ilir_interp.run(f, form.sizes, form.arrays, buffers)
        return {s.name: result.buffers[f"state_{s.name}"][form.arrays["order"]] for s in self.fast.traced.states}


def in_preorder(roots: Sequence[Any], below: Callable[[Any], Sequence[Any]]) -> list[Any]:
    """Every node once, by identity, in the order of first visit from the roots."""
    seen: set[int] = set()
    order: list[Any] = []
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            order.append(node)
            stack += reversed(below(node))
    return order


def children_of(m: ra.Model, node: Any) -> list[Any]:
    """The children of a node in the order of the model's relations."""
    slots = [getattr(node, s, None) for s in m.slots]
    return [c for c in slots if c is not None] + [c for r in m.lists for c in getattr(node, r, None) or ()]


def operations(m: ra.Model, form: LinearForm) -> int:
    """About how many scalar operations a model takes on a request."""
    total = 0
    for start, length, kind in zip(*(form.arrays[f"group_{x}"] for x in ("start", "len", "kind")), strict=True):
        for let in m.kinds[int(kind)].lets:
            ptr = None if let.over is None else form.arrays[f"{let.over}_ptr"]
            rows = int(length) if ptr is None else int(ptr[start + length] - ptr[start])
            total += rows * _operations_of(let, m.kinds[int(kind)].lets)
    return total


def _operations_of(let: ra.Let, lets: Sequence[ra.Let]) -> int:
    match let.op:
        case ra.Contract(spec, x, y):
            shapes = {other.name: other.type.shape for other in lets if other.name in (x, y)}
            a, b, _ = terms(spec)
            sizes = dict(zip(a + b, (*shapes[x], *shapes[y]), strict=True))
            return prod(sizes.values())
        case ra.Reduce(_, x, _):
            return prod(next(other.type.shape for other in lets if other.name == x))
        case _:
            return prod(let.type.shape)


def _stack(values: list[Any], shape: tuple[int, ...]) -> Array:
    rows = [v.numpy() if isinstance(v, torch.Tensor) else np.asarray(v) for v in values]
    return np.stack(rows) if rows else np.zeros((0, *shape), np.float32)


def _same(what: str, wanted: States, actual: States) -> None:
    for name, value in wanted.items():
        try:
            torch.testing.assert_close(
                torch.from_numpy(np.asarray(actual[name], np.float32)), torch.from_numpy(np.asarray(value, np.float32))
            )
        except AssertionError as error:
            raise Disagreement(f"{what} differ in state {name!r}: {error}") from None


def _worst(reference: States, actual: States) -> float:
    return max((float(np.abs(reference[n] - actual[n]).max(initial=0.0)) for n in reference), default=0.0)

"""Random models on random batches, checked in all four ways; what fails is shrunk and printed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import torch
import torch_functions
from four_ways import Disagreement, FourWays, Report, in_preorder
from random_models import RandomModel, compilable, execute, random_model, shrink, source
from random_structures import Node, random_batch

ILL_CONDITIONED = 0.25
"""Share of the tolerance that PyTorch's own float32 error may take; a model above it gets smaller weights."""


@dataclass
class Totals:
    """What a run of many cases has seen."""

    cases: int = 0
    interpreted: int = 0
    compiled_error: float = 0.0
    torch_error: float = 0.0
    left_out: list[int] = field(default_factory=list)

    def add(self, report: Report) -> None:
        """Count one more case."""
        self.cases += 1
        self.interpreted += report.interpreted
        self.compiled_error = max(self.compiled_error, report.compiled)
        self.torch_error = max(self.torch_error, report.torch)

    def text(self) -> str:
        """One line."""
        return (
            f"{self.cases} cases agree ({self.interpreted} of them interpreted as ILIR too); worst absolute error "
            f"against float64: compiled {self.compiled_error:.2e}, PyTorch {self.torch_error:.2e}; "
            f"{len(self.left_out)} ill-conditioned models left out"
        )


def batches(m: RandomModel, count: int) -> list[list[Node]]:
    """The batches a model is run on."""
    return [random_batch(1000 * m.seed + i, m.family, m.vector) for i in range(count)]


class InTorch:
    """The model in PyTorch eager mode, computed once per node."""

    def __init__(self, m: RandomModel, weights: dict[str, Any], dtype: torch.dtype) -> None:
        self._m = m
        self._dtype = dtype
        tensors = {name: torch.from_numpy(value).to(dtype) for name, value in weights.items()}
        self._weights = [] if m.closure else [SimpleNamespace(**tensors)]
        text = source(m, over_none=True)
        self._f = execute(m, text, {"cortex": torch_functions}, tensors if m.closure else {})
        self._copies: dict[int, Node] = {}

    def __call__(self, node: Node) -> dict[str, torch.Tensor]:
        """The states of a node, by the names that cortex gives them."""
        with _default_dtype(self._dtype):
            states = self._f(self._copy(node), *self._weights)
        match self._m.form:
            case "named":
                return dict(vars(states))
            case "tuple":
                return {str(i): s for i, s in enumerate(states)}
            case "bare":
                return {"out": states}

    def _copy(self, root: Node) -> Node:
        """The structure with tensors as fields; shared nodes stay shared."""
        made = self._copies
        for node in reversed(in_preorder([root], _below)):
            if id(node) not in made:
                numbers = {n: torch.as_tensor(getattr(node, n), dtype=self._dtype) for n in ("x", "s", "rank")}
                made[id(node)] = replace(node, **numbers)
        for node in in_preorder([root], _below):
            copy = made[id(node)]
            copy.children = [made[id(k)] for k in node.children]
            for slot in ("left", "right", "prev"):
                child = getattr(node, slot)
                setattr(copy, slot, None if child is None else made[id(child)])
        return made[id(root)]


def _below(node: Node) -> list[Node]:
    return [*node.children, *(c for c in (node.left, node.right, node.prev) if c is not None)]


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def well_conditioned_weights(m: RandomModel, given: list[list[Node]]) -> dict[str, Any] | None:
    """Weights with which PyTorch in float32 and in float64 agree well; None where halving them does not help."""
    for gain in (1.0,) if m.closure else (1.0, 0.5, 0.25):
        weights = m.arrays(gain)
        single, double = InTorch(m, weights, torch.float32), InTorch(m, weights, torch.float64)
        if all(_agrees(single(n), double(n)) for batch in given for n in in_preorder(batch, _below)):
            return weights
    return None


def _agrees(single: dict[str, torch.Tensor], double: dict[str, torch.Tensor]) -> bool:
    return all(
        torch.allclose(single[n].double(), double[n], rtol=1.3e-6 * ILL_CONDITIONED, atol=1e-5 * ILL_CONDITIONED)
        for n in double
    )


def check_model(m: RandomModel, structures: int, most_operations: float, totals: Totals | None = None) -> None:
    """Check one model on `structures` batches; raises where two ways disagree."""
    given = batches(m, structures)
    weights = well_conditioned_weights(m, given)
    if weights is None:
        if totals is not None:
            totals.left_out.append(m.seed)
        return
    every = [root for batch in given for root in batch]
    ways = FourWays(compilable(m), None if m.closure else weights, every, early=m.seed % 2 == 0)
    expected = InTorch(m, weights, torch.float32)
    for batch in given:
        report = ways.check(batch, expected, most_operations)
        if totals is not None:
            totals.add(report)


def check_seed(seed: int, structures: int, most_operations: float, totals: Totals, *, smaller: bool = False) -> None:
    """Check the model of a seed; a failure carries the model's text (shrunk with `smaller`) and how to see it again."""
    m = random_model(seed)
    try:
        check_model(m, structures, most_operations, totals)
    except Exception as found:
        error = found  # `found` ends with this block, and closures may not outlive it
        if smaller:
            m = shrink(m, lambda other: _fails_likewise(other, structures, most_operations, error))
        error.add_note(
            f"random model {seed} ({m.family}); again with: python -m pytest tests/fuzz --seed {seed} "
            f"--structures {structures}\n\n{source(m)}"
        )
        raise


def _fails_likewise(m: RandomModel, structures: int, most_operations: float, error: Exception) -> bool:
    """Does a model fail in the same way: two ways disagree, or the same kind of error?"""
    try:
        check_model(m, structures, most_operations)
    except Exception as other:
        if isinstance(error, Disagreement):
            return isinstance(other, Disagreement) and str(other).split(" differ")[0] == str(error).split(" differ")[0]
        return type(other) is type(error) and str(other)[:30] == str(error)[:30]
    return False

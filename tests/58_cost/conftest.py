"""Programs of the zoo's models, small, with small requests; nothing is compiled to machine code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import pytest

from cortex import zoo
from cortex.codegen.target import Target
from cortex.compiler import Stage, stages
from cortex.frontend.trace import Trace
from cortex.frontend.weights import Weights
from cortex.ilir.ir import Func
from cortex.lower.linear_form import LinearForm
from cortex.plan import Plan
from cortex.ra import interp
from cortex.ra import ir as ra
from cortex.runtime.linearize import linearize
from cortex.schedule.default import DEFAULT, Choices
from cortex.structures import generators
from cortex.structures.grid import grid
from cortex.structures.sequences import sequence
from cortex.structures.tree import BinaryNode, with_children

VOCAB = 30
# Fixed, so that the programs are the same on every machine.
TARGET = Target.x86("avx512")


@dataclass(frozen=True)
class Program:
    """A model of the zoo at all stages of the compiler."""

    name: str
    traced: ra.Model
    stages: tuple[Stage, ...]
    weights: Any

    @property
    def func(self) -> Func:
        return self.stages[-1].func

    @property
    def model(self) -> ra.Model:
        return self.stages[-1].model

    def linearize(self, structures: list[Any]) -> LinearForm:
        return linearize(self.model, structures)

    def inputs(self, form: LinearForm) -> dict[str, Any]:
        return {**interp.derived(self.model, self.weights), **form.fields}

    def small(self, rng: Random) -> Any:
        """One structure of a dozen nodes of the shape the model is for."""
        example = zoo.load(self.name).structures(Random(0), 1, VOCAB)[0]
        if hasattr(example, "prev"):
            return sequence([rng.randrange(VOCAB) for _ in range(rng.randint(1, 8))])
        if self.name == "dag_rnn":
            rows, columns = rng.randint(1, 3), rng.randint(1, 4)
            return grid(rows, columns, [rng.randrange(VOCAB) for _ in range(rows * columns)])
        if self.name.endswith("_words"):
            return generators.random_tree(rng, rng.randint(1, 12), VOCAB)
        tree = _binary(rng, rng.randint(1, 7))
        return tree if isinstance(example, BinaryNode) else with_children(tree)


def _binary(rng: Random, leaves: int) -> BinaryNode:
    if leaves == 1:
        return BinaryNode(None, None, rng.randrange(VOCAB))
    first = rng.randrange(1, leaves)
    return BinaryNode(_binary(rng, first), _binary(rng, leaves - first))


@cache
def _program(name: str, hidden: int, choices: Choices) -> Program:
    entry = zoo.load(name)
    weights = entry.weights(hidden, VOCAB)
    trace = Trace(entry.model, Weights(weights))
    trace.explore()
    trace.see(entry.structures(Random(0), 2, VOCAB))
    return Program(name, trace.model(), tuple(stages(trace.model(), Plan(TARGET, choices=choices))), weights)


@pytest.fixture
def program() -> Callable[..., Program]:
    """`program(name, hidden, choices)`."""
    return lambda name, hidden=18, choices=DEFAULT: _program(name, hidden, choices)

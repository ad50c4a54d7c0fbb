"""Running a model of the zoo, or any other, with further recursion steps: interpreted in float64 and compiled."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cortex import zoo
from cortex.codegen.target import Target
from cortex.compiler import build
from cortex.cost.choose import ALWAYS
from cortex.errors import ScheduleError
from cortex.frontend.trace import Trace
from cortex.frontend.weights import Weights
from cortex.ir.step import Step, apply, attempt
from cortex.lower.linear_form import LinearForm
from cortex.plan import Plan
from cortex.ra import interp
from cortex.ra import ir as ra
from cortex.ra.show import show
from cortex.ra.simplify import simplify
from cortex.ra.verify import verify
from cortex.runtime.executable import Executable
from cortex.runtime.linearize import linearizer

Steps = Sequence[Step[ra.Model]]
VOCABULARY = 50


class Traced:
    """A model whose kinds are known (those of `structures`, or all where there are none), before further steps."""

    def __init__(self, model: Any, weights: Any, structures: Sequence[Any]) -> None:
        self._trace = Trace(model, Weights(weights))
        if structures:
            self._trace.see(list(structures))
        else:
            self._trace.explore()
        self.model = apply(simplify(self._trace.model()), ALWAYS)

    def after(self, steps: Steps) -> ra.Model:
        """The model after `steps`."""
        m = apply(self.model, steps)
        verify(m)
        return m

    def interpret(self, m: ra.Model, batch: Sequence[Any]) -> dict[str, Any]:
        """The states that users see at every node in the user's order, in float64."""
        form = self.form(m, batch)
        states = interp.run(m, self.weights, form)
        return {s.name: states[s.name][form.arrays["order"]] for s in m.outputs}

    @property
    def weights(self) -> dict[str, Any]:
        """The parameters that the model was given."""
        return dict(self._trace.weights.arrays(p.name for p in self._trace.model().params))

    def form(self, m: ra.Model, batch: Sequence[Any]) -> LinearForm:
        """The linear form of `batch` for `m`."""
        return LinearForm(**linearizer(m, self._trace.accessors).linearize(list(batch)))

    def compile(self, steps: Steps) -> Executable:
        """The model compiled with `steps`."""
        return Executable(self._trace, lambda m, _: build(m, Plan(Target.host(), (*ALWAYS, *steps))))


def zoo_model(name: str, hidden: int, trees: Sequence[Any] = ()) -> Traced:
    """A model of the zoo."""
    entry = zoo.load(name)
    return Traced(entry.model, entry.weights(hidden, VOCABULARY), trees)


def zoo_trees(name: str, seed: int, count: int = 3) -> list[Any]:
    """Structures for a model of the zoo."""
    return list(zoo.load(name).structures(random.Random(seed), count, VOCABULARY))


def assert_same_meaning(traced: Traced, steps: Steps, batch: Sequence[Any]) -> None:
    """The interpreter gives the same states, to 1e-10, with and without `steps`."""
    m = traced.after(steps)
    before, after = traced.interpret(traced.model, batch), traced.interpret(m, batch)
    assert list(before) == list(after)
    for name, values in before.items():
        np.testing.assert_allclose(after[name], values, rtol=1e-10, atol=1e-10)


def assert_same_compiled(traced: Traced, steps: Steps, batch: Sequence[Any]) -> None:
    """Compiled code gives the same states, in float32, with and without `steps`, at the roots and at every node."""
    m = traced.model
    exact = traced.interpret(m, batch)
    out = traced.compile(steps)(list(batch))
    for s in m.outputs:
        np.testing.assert_allclose(out.nodes[s.name], exact[s.name], rtol=1e-4, atol=2e-5)
        assert out[s.name].shape == (len(batch), *s.type.shape)


def same_at_random(*steps: Step[ra.Model]) -> int:
    """Random models mean the same after each of `steps` that is not refused; how often one was not."""
    pytest.importorskip("torch")
    sys.path.insert(0, str(Path(__file__).parent / "fuzz"))
    from random_cases import batches
    from random_models import compilable, random_model

    taken = 0
    for seed in range(20, 80):
        model = random_model(seed)
        given = batches(model, 2)
        traced = Traced(compilable(model), None if model.closure else model.arrays(0.25), [r for b in given for r in b])
        for step in steps:
            if attempt(traced.model, step) is not None:
                taken += 1
                for batch in given:
                    assert_same_meaning(traced, [step], batch)
    return taken


def refusal(m: ra.Model, step: Step[ra.Model]) -> str:
    """What `step` says when it refuses `m`, which stays as it was."""
    before = show(m)
    with pytest.raises(ScheduleError) as refused:
        step.apply(m)
    assert show(m) == before
    return str(refused.value)

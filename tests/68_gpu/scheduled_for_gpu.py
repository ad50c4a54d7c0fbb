"""Models lowered and scheduled for a GPU, and what the interpreter makes of them."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np

import cortex
from cortex import zoo
from cortex.cost.choose import ALWAYS
from cortex.frontend.trace import Trace
from cortex.frontend.weights import Weights
from cortex.ilir import interp
from cortex.ilir.ir import Func
from cortex.ilir.verify import verify
from cortex.ir.step import Step, apply
from cortex.lower.lower import lower
from cortex.passes.pipeline import PASSES, run
from cortex.ra import interp as ra_interp
from cortex.ra import ir as ra
from cortex.ra.simplify import simplify
from cortex.runtime.linearize import linearize
from cortex.schedule.gpu_default import Grid, gpu_schedule

HIDDEN, VOCAB = 12, 20


class Scheduled:
    """A model of the zoo, or any, with a request, as loops for a grid."""

    def __init__(self, model: Any, weights: Any, structures: list[Any], grid: Grid) -> None:
        trace = Trace(model, Weights(weights))
        trace.explore()
        trace.see(structures)
        traced = trace.model()
        self.weights = trace.weights.arrays(p.name for p in traced.params)
        self.model: ra.Model = apply(simplify(traced), ALWAYS)
        self.lowered = lower(self.model, 1)
        self.steps: tuple[Step[Func], ...] = gpu_schedule(self.lowered, grid)
        scheduled = apply(self.lowered, self.steps)
        verify(scheduled)
        self.func = run(PASSES, scheduled)
        verify(self.func)
        self.form = linearize(self.model, structures, accessors=trace.accessors)

    def worst_error(self) -> float:
        """How far what the interpreter makes of the loops is from what the model means."""
        weights = ra_interp.derived(self.model, self.weights)
        fields = {f"field_{name}": values for name, values in self.form.fields.items()}
        got = interp.run(self.func, self.form.sizes, self.form.arrays, {**weights, **fields}).buffers
        want = ra_interp.run(self.model, weights, self.form)
        return max(float(np.abs(got[f"state_{s.name}"] - want[s.name]).max()) for s in self.model.outputs)


@cache
def of_zoo(name: str, grid: Grid, hidden: int = HIDDEN) -> Scheduled:
    """A model of the zoo with one structure."""
    entry = zoo.load(name)
    return Scheduled(entry.model, entry.weights(hidden, VOCAB), entry.structures(random.Random(0), 1, VOCAB), grid)


@cortex.model
def attentive(node: Any, w: Any) -> Any:
    """Sums of all kinds that a node has by itself: LayerNorm, softmax, a product of vectors, a maximum."""
    if node.is_leaf:
        return cortex.state(h=w.emb[node.word])
    total = cortex.sum(attentive(k).h for k in node.children)
    z = cortex.layer_norm(w.W @ total, w.g, w.b)
    p = cortex.softmax(w.V @ z)
    return cortex.state(h=cortex.tanh(p * (cortex.dot(p, z) + cortex.max(z)) + z))


def attentive_weights(hidden: int = HIDDEN) -> dict[str, Any]:
    """Weights of `attentive`, one of them called as the loop over groups is."""
    rng = np.random.default_rng(0)
    shapes = {"emb": (VOCAB, hidden), "W": (hidden, hidden), "V": (hidden, hidden), "g": (hidden,), "b": (hidden,)}
    return {name: (rng.standard_normal(shape) / 3).astype(np.float32) for name, shape in shapes.items()}

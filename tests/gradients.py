"""Gradients by the reference interpreter, in double precision, for tests of the backward pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cortex.gradient.backward import Gradient, backward, seed_field
from cortex.lower.linear_form import LinearForm
from cortex.ra import interp, verify
from cortex.ra.ir import Model
from cortex.runtime.backward_form import backward_form, row_fields
from cortex.runtime.parameter_sums import parameter_gradients, scattered
from cortex.runtime.training import dense_gradients


def interpreted(
    m: Model, params: Mapping[str, Any], form: LinearForm, seeds: Mapping[str, Any]
) -> tuple[Gradient, dict[str, Any]]:
    """The backward pass of a model, and the gradients of all parameters that it gives for these adjoints of states."""
    g = backward(m, seeds.keys(), params.keys())
    verify.verify(g.forward)
    verify.verify(g.backward)
    ahead = LinearForm(form.sizes, form.arrays, {**form.fields, **row_fields(g, form, params)})
    values = {**ahead.fields, **interp.run(g.forward, params, ahead)}
    back = backward_form(g, form)
    known = values | {seed_field(name): x for name, x in seeds.items()}
    back.fields.update({f.name: known[f.name][::-1] for f in g.backward.fields if f.type.dtype == "f32"})
    adjoints = interp.run(g.backward, params, back)
    found = parameter_gradients(g, form, values.__getitem__, adjoints.__getitem__, params)
    of_fields, tables = dict(g.fields), {}
    for r in g.rows:
        rows = adjoints[of_fields[r.name]][::-1]
        tables.setdefault(r.table, []).append(scattered(form.arrays[f"field_{r.index}"], rows))
    return g, dense_gradients(found, tables, {name: x.shape for name, x in params.items()})


def worst_against_differences(m: Model, params: Mapping[str, Any], form: LinearForm, seed: int = 0) -> float:
    """How far gradients along random directions are from central differences, at worst, relative to these."""
    rng = np.random.default_rng(seed)
    count = form.sizes["num_nodes"]
    seeds = {s.name: rng.normal(size=(count, *s.type.shape)) for s in m.states}
    _, found = interpreted(m, params, form, seeds)

    def loss(changed: Mapping[str, Any]) -> float:
        states = interp.run(m, changed, form)
        return float(sum((states[name] * x).sum() for name, x in seeds.items()))

    worst = 0.0
    for name, x in params.items():
        direction, step = rng.normal(size=x.shape), 1e-6
        ahead, behind = (loss({**params, name: x + sign * step * direction}) for sign in (1, -1))
        wanted = (ahead - behind) / (2 * step)
        worst = max(worst, abs((found[name] * direction).sum() - wanted) / max(abs(wanted), 1e-2))
    return worst

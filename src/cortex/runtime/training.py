"""A model with its backward pass: values, and what pulls adjoints of values back to gradients."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cortex.gradient.backward import Gradient, backward, seed_field
from cortex.lower.linear_form import LinearForm
from cortex.ra import ir as ra
from cortex.runtime.backward_form import backward_form, row_fields
from cortex.runtime.form_program import FormProgram
from cortex.runtime.linearize import Checked, linearizer
from cortex.runtime.parameter_sums import dense, parameter_gradients, scattered
from cortex.runtime.storage import Array

if TYPE_CHECKING:
    from cortex.runtime.executable import Compiled

Build = Callable[[ra.Model, int], "Compiled"]
Rows = tuple[Array, Array]
"""Numbers of rows of a table, ascending, and the gradients of these rows."""


class Pass:
    """What a forward pass has stored: every state of every node, in the order of ids."""

    def __init__(self, form: LinearForm, states: dict[str, Array], fields: dict[str, Array]) -> None:
        self.form = form
        self._states = states
        self._fields = fields

    def value(self, name: str) -> Array:
        """A state or a float field of all nodes."""
        return self._states[name] if name in self._states else self._fields[name]

    def at_roots(self, state: str) -> Array:
        """A state at the roots."""
        found: Array = np.ascontiguousarray(self._states[state][self.form.arrays["root"]])
        return found

    def at_nodes(self, state: str) -> Array:
        """A state at every node, in the user's order."""
        found: Array = np.ascontiguousarray(self._states[state][self.form.arrays["order"]])
        return found


class Training:
    """The compiled forward and backward pass of a traced model, for adjoints of the states `seeds`.

    `params` are those whose gradients are wanted. Parameters are given with every pass.
    """

    def __init__(
        self,
        m: ra.Model,
        accessors: Any,
        checked: Sequence[Checked],
        build: Build,
        threads: int,
        seeds: Collection[str],
        params: Collection[str],
        fields: Collection[str] = (),
    ) -> None:
        self.gradient: Gradient = backward(m, seeds, params, fields)
        self._forward = FormProgram(build(self.gradient.forward, threads))
        self._backward = FormProgram(build(self.gradient.backward, threads))
        self.windows = self._forward.windows or ()
        self.linearizer = linearizer(m, accessors, windows=self.windows, checked=checked)
        self._wanted = frozenset(params)

    def linearize(self, nodes: Any) -> LinearForm:
        """The linear form of a request."""
        return LinearForm(**self.linearizer.linearize(nodes, 1))

    def forward(self, form: LinearForm, params: Mapping[str, Array], threads: int) -> Pass:
        """Compute all states of a request."""
        program, count = self._forward, form.sizes["num_nodes"]
        program.take(params)
        values = dict(form.fields) | row_fields(self.gradient, form, params)
        fields = {}
        for f in program.model.fields:
            if f.type.dtype == "f32":
                whole, inner = program.field(f.name, count)
                inner[...] = values[f.name]
                fields[f.name], values[f.name] = whole, inner
        return Pass(form, program.run(form, fields, threads), values)

    def backward(
        self, made: Pass, seeds: Mapping[str, Array], params: Mapping[str, Array], threads: int
    ) -> tuple[dict[str, Array], dict[str, list[Rows]], dict[str, Array]]:
        """Gradients of parameters, rows of gradients of tables, and gradients of fields at nodes in the order of ids.

        `seeds` has adjoints of states at all nodes, in the order of ids; a state that it lacks has none.
        """
        g, program = self.gradient, self._backward
        form = backward_form(g, made.form, program.windows)
        program.take(params)
        of_seeds = {seed_field(s): s for s in g.seeds}
        fields = {}
        for f in program.model.fields:
            if f.type.dtype == "f32":
                whole, inner = program.field(f.name, form.sizes["num_nodes"])
                state = of_seeds.get(f.name)
                if state is None:
                    inner[...] = made.value(f.name)[::-1]
                elif state in seeds:
                    inner[...] = seeds[state][::-1]
                fields[f.name] = whole
        adjoints = program.run(form, fields, threads)
        found = parameter_gradients(g, made.form, made.value, adjoints.__getitem__, params)
        of_fields = dict(g.fields)
        tables: dict[str, list[Rows]] = {}
        for r in g.rows:
            if r.name in of_fields and r.table in self._wanted:
                rows = adjoints[of_fields.pop(r.name)][::-1]
                tables.setdefault(r.table, []).append(scattered(made.form.arrays[f"field_{r.index}"], rows))
        return found, tables, {name: adjoints[state][::-1] for name, state in of_fields.items()}


def dense_gradients(
    found: Mapping[str, Array], tables: Mapping[str, list[Rows]], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Array]:
    """The gradient of each of some parameters as an array of its shape; zeros where nothing depends on it."""
    whole: dict[str, Array] = {}
    for name, shape in shapes.items():
        array = dense(shape, tables[name][0]) if name in tables else np.zeros(shape, np.float32)
        for index, rows in tables.get(name, [])[1:]:
            array[index] += rows
        if name in found:
            array = array + found[name] if name in tables else np.array(np.broadcast_to(found[name], shape), order="C")
        whole[name] = array
    return whole

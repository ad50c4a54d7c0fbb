"""The self-check of model functions: nodes of the examples, computed by the function itself on NumPy arrays.

Each node that is checked is computed alone: what the function's calls for its children give is what the compiled model
computed for these. Where all nodes are right by themselves the whole is, errors do not add up on the way, and a
difference is at the node that it is told of. A few nodes of every kind are checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np

from cortex.errors import CortexError, ModelError, StructureError
from cortex.frontend.model import RecursiveModel
from cortex.frontend.numpy_meanings import read_only
from cortex.frontend.rounding import changed_in_the_last_bit, first_difference
from cortex.frontend.spans import span_of_error
from cortex.frontend.state import StateRecord
from cortex.frontend.trace import Trace
from cortex.frontend.uncompiled import Run
from cortex.frontend.weight_space import WeightSpace
from cortex.frontend.weights import Weights
from cortex.lower.linear_form import LinearForm
from cortex.runtime.executable import Executable
from cortex.runtime.storage import Array

PER_KIND = 8
MOST_NODES = 512
"""Nodes that are checked at most, where there are no more kinds than that."""
SHOWN = 8
"""Steps of a long way that are told, at its beginning and at its end."""


class FreshNode(BaseException):
    """A call for a node that the walk did not meet: reading the children makes new objects each time.

    An `except Exception` of the user's lets it pass.
    """


class Walk:
    """The nodes of a request in the user's order, which is that of `out.nodes`."""

    def __init__(self, run: Executable, trace: Trace, roots: list[Any], names: list[str]) -> None:
        m = run.compiled.model
        self.nodes: list[Any] = []
        self.row: dict[int, int] = {}
        self._above: list[tuple[int, str]] = []
        """For each node the row of the node that it was reached from, -1 for roots, and the step from there."""
        stack = [(root, -1, name) for root, name in zip(roots, names, strict=True)][::-1]
        while stack:
            node, above, step = stack.pop()
            if id(node) in self.row:
                continue
            row = self.row[id(node)] = len(self.nodes)
            self.nodes.append(node)
            self._above.append((above, step))
            below: list[tuple[Any, int, str]] = []
            for name in sorted(m.slots):
                child = trace.accessors.read(node, name, None)
                if child is not None:
                    below.append((child, row, f".{name}"))
            for name in sorted(m.lists):
                items = trace.accessors.items(node, name)
                below += [(child, row, f".{name}[{i}]") for i, child in enumerate(items)]
            stack += below[::-1]

    def place(self, row: int) -> str:
        """The way to a node: `examples[0].left`."""
        steps: list[str] = []
        while row >= 0:
            row, step = self._above[row]
            steps.append(step)
        steps.reverse()
        if len(steps) <= 2 * SHOWN:
            return "".join(steps)
        return f"{''.join(steps[:SHOWN])} ... {''.join(steps[-SHOWN:])} ({len(steps) - 1} steps)"


def check_function(run: Executable, trace: Trace, model: RecursiveModel, examples: list[Any]) -> None:
    """Raise a ModelError if the compiled model computes other numbers for nodes of the examples than the function."""
    names = [f"examples[{i}]" for i in range(len(examples))]
    try:
        _check(run, trace, model, examples, names)
    except StructureError:  # a call says so; examples need not be whole
        for name, example in zip(names, examples, strict=True):
            with suppress(StructureError):
                _check(run, trace, model, [example], [name])


def _check(run: Executable, trace: Trace, model: RecursiveModel, examples: list[Any], names: list[str]) -> None:
    form = run.linearize(examples)
    if run._require().is_exact_here:
        nodes = run(examples).nodes
        states = {name: nodes[name] for name in nodes._names}
    else:
        states = run.interpret(examples)
    walk = Walk(run, trace, examples, names)
    if any(len(array) != len(walk.nodes) for array in states.values()):
        return  # reading the structures again gives other ones
    nodewise = _Nodewise(trace, model, walk, states)
    for row in _chosen(form, run.compiled.model.lists):
        with suppress(FreshNode):
            _check_node(nodewise, row, trace)


def _check_node(nodewise: _Nodewise, row: int, trace: Trace) -> None:
    walk, model = nodewise.walk, nodewise.model
    got = {name: array[row] for name, array in nodewise.states.items()}
    try:
        want = nodewise.computed(row, None)
    except RecursionError:
        return
    except Exception as error:
        said = error.message if isinstance(error, ModelError) else f"{type(error).__name__}: {error}."
        raise ModelError(
            f"model '{model.name}' is compiled, but run uncompiled, as plain Python on NumPy arrays, it raises at "
            f"{walk.place(row)}: {said} A compiled model means what its function means; change the function, or "
            "compile it without this check: check=False.",
            span_of_error(error) or trace.knowledge.definition,
        ) from (None if isinstance(error, CortexError) else error)
    found = first_difference(got, want, lambda seed: nodewise.computed(row, np.random.default_rng(seed)))
    if found is not None:
        what = found.text(f"state '{found.name}'")
        raise ModelError(
            f"model '{model.name}' computes other numbers when it is compiled: at {walk.place(row)}, {what} (as plain "
            "Python on NumPy arrays, from the same states of the children). Do not use the compiled model. Unless the "
            "function depends on something else than its node, this is a defect of Cortex; "
            f"`{model.name}(tree, weights)` runs uncompiled, and check=False compiles without this check.",
            trace.knowledge.definition,
        )


class _Nodewise:
    """Computes single nodes, with compiled states for the nodes below."""

    def __init__(self, trace: Trace, model: RecursiveModel, walk: Walk, states: dict[str, Array]) -> None:
        self.trace = trace
        self.model = model
        self.walk = walk
        self.states = states

    def computed(self, row: int, rng: np.random.Generator | None) -> dict[str, Any]:
        """The states of a node by name; with `rng`, from inputs changed in the last bit."""

        def child(_: RecursiveModel, node: Any, __: dict[str, Any]) -> Any:
            below = self.walk.row.get(id(node))
            if below is None:
                raise FreshNode
            found = {name: array[below] for name, array in self.states.items()}
            if rng is not None:
                found = {name: changed_in_the_last_bit(x, rng) for name, x in found.items()}
            found = {name: np.asarray(x)[()] for name, x in found.items()}
            return self._in_form(found)

        weights: Any = WeightSpace(self.trace.weights)
        if rng is not None:
            weights = ChangedWeights(self.trace.weights, rng)
        arguments = self.model.arguments(weights)
        run = Run(self.model, arguments, lambda: self.trace.knowledge, views=True, recurse=child, space=weights)
        result = run.of(self.walk.nodes[row])
        match result:
            case StateRecord():
                return dict(result._tensors)
            case tuple():
                return {str(i): x for i, x in enumerate(result)}
            case _:
                return {"out": result}

    def _in_form(self, found: dict[str, Any]) -> Any:
        """States as a call of the model returns them."""
        form = self.trace.knowledge.states
        assert form is not None
        match form.form:
            case "named":
                return StateRecord({name: found[name] for name in form.names})
            case "tuple":
                return tuple(found[name] for name in form.names)
            case _:
                return found["out"]


class ChangedWeights(WeightSpace):
    """Weights that are changed in the last bit, each time they are read."""

    __slots__ = ("_rng",)

    def __init__(self, weights: Weights, rng: np.random.Generator, prefix: str = "") -> None:
        super().__init__(weights, prefix)
        self._rng = rng

    def _get(self, name: str) -> Any:
        found = super()._get(name)
        if isinstance(found, WeightSpace):
            return ChangedWeights(self._weights, self._rng, found._prefix)
        return read_only(changed_in_the_last_bit(found, self._rng))


def _chosen(form: LinearForm, lists: Iterable[str]) -> Iterator[int]:
    """Rows of nodes to check: of every kind some, from those with fewest to those with most children."""
    arrays = form.arrays
    order = np.asarray(arrays["order"])
    row_of = np.full(form.sizes["num_nodes"], -1)
    row_of[order[::-1]] = np.arange(len(order))[::-1]
    children = np.zeros(form.sizes["num_nodes"], int)
    for name in lists:
        children += np.diff(arrays[f"{name}_ptr"])
    starts, nodes = np.asarray(arrays["kind_start"]), np.asarray(arrays["kind_node"])
    kinds = [nodes[a:b] for a, b in pairwise(starts) if b > a]
    each = max(1, min(PER_KIND, MOST_NODES // max(1, len(kinds))))
    for ids in kinds:
        ranked = ids[np.argsort(children[ids], kind="stable")]
        picked = np.unique(np.linspace(0, len(ranked) - 1, each).astype(int))
        yield from sorted(int(row_of[i]) for i in ranked[picked])

"""Values of a model, and the function that pulls adjoints of them back: vector-Jacobian products."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np

from cortex.errors import ModelError
from cortex.ra import ir as ra
from cortex.runtime.compiled import Compiled
from cortex.runtime.known_kinds import Kinds
from cortex.runtime.output import Output, output_type
from cortex.runtime.result_rows import at_nodes
from cortex.runtime.storage import Array
from cortex.runtime.training import Pass, Training, dense_gradients

Key = tuple[frozenset[str], frozenset[str], frozenset[str]]


class Trainings:
    """The compiled passes of one model, for each choice of states, parameters and fields that was asked for."""

    def __init__(self, build: Callable[[ra.Model, int], Compiled] | None) -> None:
        self._build = build
        self._made: dict[Key, tuple[Any, int, Training]] = {}
        self._lock = Lock()
        self._traced: tuple[Any, ra.Model] | None = None

    def traced(self, trace: Kinds) -> ra.Model:
        """The model as it is traced now; it is put together once for each version."""
        known = self._traced
        if known is None or known[0] != trace.version:
            version = trace.version
            self._traced = known = version, trace.model()
        return known[1]

    def training(
        self, trace: Kinds, threads: int, of: Collection[str], params: Collection[str], fields: Collection[str] = ()
    ) -> Training:
        """The passes for a model as it is traced now."""
        if self._build is None:
            raise ModelError(
                f"'{trace.name}' has no gradients here: models that were loaded from a file, or compiled for a device, "
                "cannot be trained. Compile the model itself, without `target`."
            )
        key = frozenset(of), frozenset(params), frozenset(fields)
        with self._lock:
            version, built_for, made = self._made.get(key, (None, 0, None))
            if made is None or version != trace.version or built_for < min(threads, 2):
                checked = trace.checked_lengths()
                made = Training(self.traced(trace), trace.accessors, checked, self._build, threads, of, params, fields)
                self._made[key] = trace.version, threads, made
            return made

    def vjp(
        self, trace: Kinds, nodes: Any, single: bool, of: Sequence[str] | None, threads: int
    ) -> tuple[Output, Pullback]:
        """What a call returns, and what takes adjoints of it."""
        m = self.traced(trace)
        names = tuple(s.name for s in m.outputs)
        unknown = [name for name in of or () if name not in names]
        if unknown:
            raise ModelError(f"of={list(of or ())!r}: there is no state {unknown[0]!r}; there are {', '.join(names)}.")
        weights = trace.weights
        wanted = [p.name for p in m.params if not weights.is_constant(p.name)]
        training = self.training(trace, threads, names if of is None else of, wanted)
        params = {name: np.asarray(x) for name, x in weights.arrays(p.name for p in m.params).items()}
        made = training.forward(training.linearize(nodes), params, threads)
        output = output_type(names)(_Values(made, names, single))
        shapes = {name: params[name].shape for name in wanted}
        return output, Pullback(training, made, params, shapes, single, threads)


class _Values:
    """What an `Output` reads from a pass."""

    __slots__ = ("_made", "_names", "_single")

    def __init__(self, made: Pass, names: tuple[str, ...], single: bool) -> None:
        self._made = made
        self._names = names
        self._single = single

    def root(self, state: int) -> Array:
        """State number `state` at the roots."""
        found = self._made.at_roots(self._names[state])
        return found[0] if self._single else found

    def nodes(self, state: int) -> Array:
        """State number `state` at every node, in the user's order."""
        return self._made.at_nodes(self._names[state])


class Pullback:
    """Takes adjoints of states, at the roots or at every node, to the gradients of weights. It may be called again."""

    def __init__(
        self,
        training: Training,
        made: Pass,
        params: Mapping[str, Array],
        shapes: Mapping[str, tuple[int, ...]],
        single: bool,
        threads: int,
    ) -> None:
        self._training = training
        self._made = made
        self._params = params
        self._shapes = shapes
        self._single = single
        self._threads = threads

    def __call__(self, *, nodes: Mapping[str, Any] | None = None, **roots: Any) -> dict[str, Array]:
        """The gradients of the weights, by name."""
        adjoints = {name: self._at_roots(name, np.asarray(x, np.float32)) for name, x in roots.items()}
        for name, x in (nodes or {}).items():
            order = self._made.form.arrays["order"]
            given = self._checked(name, np.asarray(x, np.float32), len(order), "nodes")
            whole = adjoints.setdefault(name, np.zeros_like(self._made.value(name)))
            np.add.at(whole, order, given)
        found, tables, _ = self._training.backward(self._made, adjoints, self._params, self._threads)
        return dense_gradients(found, tables, self._shapes)

    def _at_roots(self, name: str, x: Array) -> Array:
        """Adjoints at the roots as those of all nodes."""
        root = self._made.form.arrays["root"]
        given = self._checked(name, x[None] if self._single else x, len(root), "structures")
        return at_nodes(self._made, name, root, given)

    def _checked(self, name: str, x: Array, rows: int, what: str) -> Array:
        seeds = self._training.gradient.seeds
        if name not in seeds:
            raise ModelError(f"pullback({name}=...): adjoints may be given for {', '.join(seeds)}.")
        shape = (rows, *self._made.value(name).shape[1:])
        if x.shape != shape:
            own = x.shape[1:] if self._single and what == "structures" else x.shape
            wanted = shape[1:] if self._single and what == "structures" else shape
            raise ModelError(f"pullback: the adjoint of {name} has shape {own}; that of {what} is {wanted}.")
        return x

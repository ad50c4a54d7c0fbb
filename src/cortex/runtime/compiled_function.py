"""A model function that does more than to call itself on children: compiled as modules are, it returns arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from cortex.errors import ModelError
from cortex.frontend.spans import span_of_function
from cortex.frontend.torch.function_entry import FunctionEntry
from cortex.frontend.torch.kept_objects import kept_objects
from cortex.frontend.torch.leaves import leaves
from cortex.frontend.torch.outside import Changes, Outside
from cortex.frontend.uncompiled import Meaning, run_uncompiled
from cortex.frontend.weights import Weights
from cortex.runtime.check_function import ChangedWeights
from cortex.runtime.check_module import Words, check_calls
from cortex.runtime.executable import Executable
from cortex.runtime.part import Save
from cortex.runtime.torch_module import Compile, CompiledHere

MOST_NODES = 2_000
"""Examples of more nodes are not computed by the function itself, which takes a while."""


class CompiledFunction(CompiledHere):
    """A model function that was compiled in this process: `fast(tree)`, or `fast([tree, ...])` for a row each."""

    _what = "function"

    def __init__(
        self,
        entry: FunctionEntry,
        weights: Weights,
        examples: list[Any] | None,
        compile: Compile,
        save: Save,
        check: Meaning | None,
    ) -> None:
        """`check` is what attributes mean where the examples are to be compared with the function itself."""
        calls = entry.calls(examples or [])
        super().__init__(entry.interface(calls), np.asarray, save, compile, weights)
        self._entry: FunctionEntry = entry
        self._examples = [self._interface.bind(call, {}) for call in calls]
        for arguments in self._examples:
            self._for(arguments)
        self._weights.own()
        for model, run, alike in self._examples_by_program():
            if model.result()[0].count == 0:
                raise ModelError(
                    f"model '{entry.name}' returned {model.result()[0].text()}. It has to return a tensor, a tuple of "
                    "tensors, or cortex.state(...).",
                    span_of_function(entry.routine.function.__code__),
                )
            if check is not None:
                check_calls(entry, model, run, alike, self._eager(run, check), Words("function"))

    def update(self, weights: Any) -> None:
        """Use other weights of the same names and shapes from now on, with the values that they have now."""
        with self._lock:
            self._take(weights)

    def _eager(self, run: Executable, meaning: Meaning) -> Any:
        def eager(arguments: dict[str, Any], seed: int | None) -> dict[str, Any]:
            weights: Any = run.given_weights
            if seed is not None:
                weights = ChangedWeights(weights, np.random.default_rng(seed))
            node, *_ = arguments.values()
            given = dict(list(arguments.items())[1:])
            with (
                kept_objects([*arguments.values(), *self._entry.closed_over]),
                Outside(self._entry.spaces, Changes()).watched(),
            ):
                return leaves(run_uncompiled(self._entry.called, node, weights, given, meaning))

        return eager

"""The self-check of modules: a few examples, run by the module itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cortex.errors import ModelError, StructureError
from cortex.frontend.rounding import first_difference
from cortex.frontend.spans import span_of_error, span_of_function
from cortex.runtime.executable import Executable

if TYPE_CHECKING:
    from cortex.frontend.torch.model import TorchModel
    from cortex.frontend.torch.torch_entry import TorchEntry

MOST_CALLS = 20_000
"""Calls of torch that a check makes at most, about a tenth of a second."""
LOOKED_AT = 256
"""Examples among which those to check are chosen."""


@dataclass(frozen=True)
class Example:
    """The arguments of a call, and what errors call them."""

    name: str
    arguments: dict[str, Any]


def check_module(entry: TorchEntry, model: TorchModel, run: Executable, examples: list[Example]) -> None:
    """Raise a ModelError if the compiled module gives other numbers for an example than the module itself."""
    from cortex.frontend.torch.eager import Counting, TooLong, leaves, run_eagerly
    from cortex.frontend.torch.kept_objects import TooMany
    from cortex.frontend.torch.torch_entry import tensor_of

    counting = Counting(MOST_CALLS)
    for example in _chosen(model, run, examples):
        try:
            states = _states(run, model.request(example.arguments))
            form, names = model.result()
            got = leaves(form.rebuild([tensor_of(states[name]) for name in names]))
        except StructureError:
            continue  # a call says so; the example need not be whole
        try:
            want = run_eagerly(entry, example.arguments, counting)
        except TooLong:
            return
        except (TooMany, RecursionError):
            continue
        except Exception as error:
            raise ModelError(
                f"{entry.name} is compiled, but the module itself raises {type(error).__name__} for {example.name}: "
                f"{error}. A compiled module does what the module does; change it, leave the example out, or compile "
                "without this check: check=False.",
                span_of_error(error) or span_of_function(entry.routine.function.__code__),
            ) from error

        def again(seed: int, arguments: dict[str, Any] = example.arguments) -> dict[str, Any]:
            return run_eagerly(entry, arguments, Counting(), seed)  # it has ended once

        found = first_difference(got, want, again)
        if found is not None:
            raise _wrong(entry, example, found.text(found.name))


def _wrong(entry: TorchEntry, example: Example, what: str) -> ModelError:
    training = any(part.training for module in entry.modules.values() for part in module.modules())
    mode = " The module is in training mode: call module.eval() first, what is compiled is for evaluation." * training
    return ModelError(
        f"{entry.name} gives other numbers when it is compiled: for {example.name}, {what}.{mode} Do not use the "
        "compiled module. Unless the module depends on something else than its arguments, this is a defect of Cortex; "
        "the module itself is right, and check=False compiles without this check.",
        span_of_function(entry.routine.function.__code__),
    )


def _states(run: Executable, request: Any) -> Any:
    """The states at the root of a request."""
    if run._require().is_exact_here:
        return run(request)
    return {name: np.asarray(array[0], np.float32) for name, array in run.interpret(request).items()}


def _chosen(model: TorchModel, run: Executable, examples: list[Example]) -> Iterator[Example]:
    """Small examples first; those that show kinds of node which no other one before has shown."""
    forms = []
    for example in examples[:LOOKED_AT]:
        try:
            form = run.linearize(model.request(example.arguments))
        except StructureError:
            continue
        starts = form.arrays["kind_start"]
        forms.append((form.sizes["num_nodes"], {i for i, n in enumerate(np.diff(starts)) if n}, example))
    shown: set[int] = set()
    for _, kinds, example in sorted(forms, key=lambda each: each[0]):
        if not kinds <= shown:
            shown |= kinds
            yield example

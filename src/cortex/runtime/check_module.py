"""The self-check of modules: a few examples, run by the module itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cortex.errors import ModelError, StructureError
from cortex.frontend.rounding import first_difference
from cortex.frontend.spans import span_of_error, span_of_function
from cortex.frontend.torch.leaves import leaves
from cortex.runtime.executable import Executable
from cortex.runtime.first_wrong_call import WrongCall, first_wrong_call

if TYPE_CHECKING:
    from cortex.frontend.torch.entry import Entry
    from cortex.frontend.torch.model import TorchModel
    from cortex.frontend.torch.recorded_results import Returned
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
    from cortex.frontend.torch.eager import Counting, TooLong, run_eagerly
    from cortex.frontend.torch.recorded_results import recorded_results

    counting = Counting(MOST_CALLS)

    def eager(arguments: dict[str, Any], seed: int | None) -> dict[str, Any] | None:
        try:
            return run_eagerly(entry, arguments, counting if seed is None else Counting(), seed)  # it has ended once
        except TooLong:
            return None

    training = any(part.training for module in entry.modules.values() for part in module.modules())
    mode = " The module is in training mode: call module.eval() first, what is compiled is for evaluation." * training
    check_calls(entry, model, run, examples, eager, Words("module", mode), partial(recorded_results, entry))


@dataclass(frozen=True)
class Words:
    """What messages call what is compiled, and what else there is to say of wrong numbers."""

    what: str
    mode: str = ""


Eager = Callable[[dict[str, Any], int | None], dict[str, Any] | None]
"""The numbers of a call of the code itself, with a seed from inputs changed in the last bit; None if it takes long."""


def check_calls(
    entry: Entry,
    model: TorchModel,
    run: Executable,
    examples: list[Example],
    eager: Eager,
    words: Words,
    returned: Callable[[dict[str, Any]], list[Returned]] | None = None,
) -> None:
    """Raise a ModelError if compiled calls give other numbers for an example than the code itself.

    `returned` has the results of all calls of an example, so that the first one that differs can be named.
    """
    from cortex.frontend.torch.kept_objects import TooMany

    for example in _chosen(model, run, examples):
        try:
            states = _states(run, model.request(example.arguments))
            form, names = model.result()
            got = leaves(form.rebuild([np.asarray(states(name)) for name in names]))
        except StructureError:
            continue  # a call says so; the example need not be whole
        try:
            want = eager(example.arguments, None)
        except (TooMany, RecursionError):
            continue
        except Exception as error:
            said = error.message if isinstance(error, ModelError) else f"{error}."
            raise ModelError(
                f"{entry.name} is compiled, but the {words.what} itself raises {type(error).__name__} for "
                f"{example.name}: {said} A compiled {words.what} does what the {words.what} does; change it, leave the "
                "example out, or compile without this check: check=False.",
                span_of_error(error) or span_of_function(entry.routine.function.__code__),
            ) from error
        if want is None:
            return

        def again(seed: int, arguments: dict[str, Any] = example.arguments) -> dict[str, Any]:
            return eager(arguments, seed) or {}

        found = first_difference(got, want, again)
        if found is not None:
            call = None
            if returned is not None and run._require().is_exact_here:
                call = first_wrong_call(model, run, example.arguments, returned(example.arguments))
            raise _wrong(entry, example, found.text(found.name), call, words)


def _wrong(entry: Entry, example: Example, said: str, call: WrongCall | None, words: Words) -> ModelError:
    what = words.what
    first = "" if call is None else f" {call.text}"
    return ModelError(
        f"{entry.name} gives other numbers when it is compiled: for {example.name}, {said}.{first}{words.mode} Do not "
        f"use the compiled {what}. Unless the {what} depends on something else than its arguments, this is a defect of "
        f"Cortex; the {what} itself is right, and check=False compiles without this check.",
        (None if call is None else call.span) or span_of_function(entry.routine.function.__code__),
    )


def _states(run: Executable, request: Any) -> Any:
    """What gives the states at the root of a request."""
    if run._require().is_exact_here:
        return partial(run(request).result, is_single=True)
    return {name: np.asarray(array[0], np.float32) for name, array in run.interpret(request).items()}.__getitem__


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

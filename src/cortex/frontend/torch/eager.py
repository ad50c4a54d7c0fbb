"""Running a module as torch runs it, on real arguments, and leaving everything as it was."""

from __future__ import annotations

import inspect
import math
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from cortex.frontend.rounding import LAST_BIT
from cortex.frontend.torch.kept_objects import kept_objects
from cortex.frontend.torch.leaves import leaves
from cortex.frontend.torch.outside import Changes, Outside

if TYPE_CHECKING:
    from cortex.frontend.torch.torch_entry import TorchEntry


class TooLong(BaseException):
    """The run does more than the caller wants to wait for. Code that catches its own errors lets it pass."""


class Counting(TorchFunctionMode):
    """Counts calls of torch, and stops at a number of them."""

    def __init__(self, most: float = math.inf) -> None:
        super().__init__()
        self.left = most

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function."""
        self.left -= 1
        if self.left < 0:
            raise TooLong
        return function(*args, **(kwargs or {}))


class LastBit(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Every operation gets inputs that are changed in the last bit; views, and what is written to, are left alone."""

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the operation."""
        declared = function._schema.arguments
        if not any(a.alias_info is not None and not a.alias_info.is_write for a in declared):
            kept = [a.alias_info is not None for a in declared]
            args = tuple(x if keep else self._changed(x) for x, keep in zip(args, kept, strict=False))
        return function(*args, **(kwargs or {}))

    def _changed(self, x: Any) -> Any:
        if isinstance(x, list | tuple):
            return type(x)(map(self._changed, x))
        if not isinstance(x, torch.Tensor) or x.dtype != torch.float32:
            return x
        up = torch.randint(0, 2, x.shape, generator=self._generator, dtype=torch.float32)
        return x * (1 + LAST_BIT * (2 * up - 1))


def run_eagerly(
    entry: TorchEntry, arguments: dict[str, Any], counting: Counting, seed: int | None = None
) -> dict[str, Any]:
    """The tensors and numbers that a call of the module gives, by where in its result they are.

    With `seed`, from inputs of operations that are changed in the last bit.
    """
    bound = inspect.BoundArguments(entry.routine.signature, OrderedDict(arguments))
    with ExitStack() as stack:
        stack.enter_context(kept_objects([*bound.args, *bound.kwargs.values(), *entry.closed_over]))
        stack.enter_context(Outside(entry.spaces, Changes()).watched())
        stack.enter_context(_evaluating(entry))
        stack.enter_context(torch.random.fork_rng(devices=[]))
        stack.enter_context(torch.no_grad())
        stack.enter_context(counting)
        if seed is not None:
            stack.enter_context(LastBit(seed))
        return leaves(entry.called(*bound.args, **bound.kwargs))


@contextmanager
def _evaluating(entry: TorchEntry) -> Iterator[None]:
    """Compiled modules compute what modules do in evaluation."""
    parts = [part for module in entry.modules.values() for part in module.modules() if part.training]
    for part in parts:
        part.training = False
    try:
        yield
    finally:
        for part in parts:
            part.training = True

"""Compiling PyTorch modules, and functions that use torch."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

from cortex.errors import ModelError
from cortex.frontend.model import TracedModel
from cortex.frontend.torch.entry import Entry, Signature
from cortex.frontend.torch.model import TorchModel
from cortex.runtime.executable import Executable
from cortex.runtime.torch_module import CompiledModule

Compile = Callable[[TracedModel, Any, list[Any] | None], Executable]


def compile_module(given: Any, weights: Any, examples: list[Any] | None, compile: Compile) -> Any:
    """A module or function as a `CompiledModule`; anything else as `compile` takes it."""
    if not isinstance(given, torch.nn.Module | FunctionType):
        return compile(given, weights, examples)
    if weights is not None:
        raise ModelError("weights= is given for a module, which has its own. Load them into it: load_state_dict(...).")
    calls = [example if type(example) is tuple else (example,) for example in examples or []]
    lists = any(len(call) == 1 and type(call[0]) is list for call in calls)
    is_function = isinstance(given, FunctionType)
    entry = Entry.of_function(given, lists) if is_function else Entry.of_module(given, lists)
    for module in entry.modules.values():
        _refuse_training(module)

    def make(arguments: dict[str, Any]) -> tuple[TorchModel, Executable]:
        signature, key = Signature.of(entry, arguments), entry.constants(arguments)
        model = TorchModel(entry, signature)
        alike = [bound for bound in (entry.bind(call, {}) for call in calls) if entry.constants(bound) == key]
        requests = [signature.request(bound) for bound in alike or [arguments]]
        return model, compile(model, entry.weights, requests)

    fast = CompiledModule(entry, make)
    for call in calls:
        fast.prepare(call)
    return fast


def _refuse_training(module: torch.nn.Module) -> None:
    """Dropout and the like are compiled as they are when the module is evaluated; that has to be what was meant."""
    for name, part in module.named_modules():
        drops = isinstance(part, torch.nn.modules.dropout._DropoutNd) and part.p > 0
        inner = isinstance(part, torch.nn.RNNBase) and part.dropout > 0
        norms = isinstance(part, torch.nn.modules.batchnorm._NormBase)
        if part.training and (drops or inner or norms):
            raise ModelError(
                f"the module is in training mode, in which '{name}' ({type(part).__name__}) does other things than "
                "when it is evaluated, and a compiled module is for evaluation. Call module.eval() first."
            )

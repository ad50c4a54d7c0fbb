"""A module, or a function that uses torch, as what is compiled."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType
from typing import Any

import torch
from torch.nn.modules.module import _global_forward_hooks as _EVERYWHERE  # noqa: N812 - constant here
from torch.nn.modules.module import _global_forward_pre_hooks as _BEFORE_EVERYWHERE  # noqa: N812

from cortex.errors import ModelError
from cortex.frontend.torch.entry import Entry
from cortex.frontend.torch.interface import refuse_other
from cortex.frontend.torch.rebuild import Rebuilt, written_name
from cortex.frontend.torch.record import start
from cortex.frontend.torch.routines import Routine, routines_of, shadowed
from cortex.frontend.torch.serving import Mode
from cortex.frontend.torch.torch_language import TORCHS


@dataclass(frozen=True, eq=False)
class TorchEntry(Entry):
    """A module with its methods, or a function with the modules that it takes from around it."""

    language = TORCHS

    @classmethod
    def of_module(cls, module: torch.nn.Module) -> TorchEntry:
        """A module; its parameters and buffers are known by their names in its state_dict."""
        rebuilt = Rebuilt(cls.language)
        routines = routines_of(module, rebuilt.rebuilt)
        routine = routines.get((id(module), "forward"))
        if routine is None:
            wrapped = next((name for name in ("module", "_orig_mod") if name in module._modules), None)
            if wrapped is not None:
                raise ModelError(
                    f"a {type(module).__name__} wraps the module that is to be compiled; give that one: "
                    f"cortex.compile(module.{wrapped}, ...)."
                )
            raise ModelError(
                f"a {type(module).__name__} has no forward of its own that could be traced; give a module of a class "
                "that defines forward(self, node)."
            )
        name, found = type(module).__name__, rebuilt.routines
        weights = _tensors(module)
        return cls(name, routine, {"": module}, routines, found, weights, rebuilt.scopes, rebuilt.cells, module)

    @classmethod
    def of_function(cls, function: FunctionType) -> TorchEntry:
        """A function; modules and tensors that it takes from the scopes around it are known by the names there."""
        rebuilt = Rebuilt(cls.language)
        routine = rebuilt.routine(function)
        around: dict[str, Any] = {}
        for each in rebuilt.routines.values():
            found = inspect.getclosurevars(each.function)
            around |= {**found.globals, **found.nonlocals}
        modules = {name: x for name, x in around.items() if isinstance(x, torch.nn.Module)}
        weights = {name: x for name, x in around.items() if isinstance(x, torch.Tensor)}
        routines: dict[tuple[int, str], Routine] = {}
        for name, module in modules.items():
            weights |= {f"{name}.{key}": tensor for key, tensor in _tensors(module).items()}
            routines |= routines_of(module, rebuilt.rebuilt)
        name = written_name(function)
        functions, scopes, cells = rebuilt.routines, rebuilt.scopes, rebuilt.cells
        return cls(name, routine, modules, routines, functions, weights, scopes, cells, function)

    def again(self, given: Any) -> TorchEntry | None:
        """The same of a module or function as it is now, which may be a copy; None of anything else."""
        if not isinstance(given, torch.nn.Module | FunctionType):
            return None
        return entry_again(given, self.name)

    def refuse_unfit(self) -> None:
        """Refuse modules that are being trained, that nobody can look into, and weights that are not here."""
        for module in self.modules.values():
            _refuse_training(module)
            _refuse_scripts(module)
        for name, weight in self.weights.items():
            _refuse_placement(name, weight)

    @cached_property
    def does_more(self) -> bool:
        """Does calling the module do more than to call forward: has it hooks, or its own `__call__`?"""
        module = self.modules.get("")
        if module is None:
            return False
        hooks = (module._forward_hooks, module._forward_pre_hooks, _EVERYWHERE, _BEFORE_EVERYWHERE)
        return any(hooks) or type(module).__call__ is not torch.nn.Module.__call__

    def start(self, mode: Mode, arguments: dict[str, Any]) -> tuple[dict[Hashable, Routine], Mode]:
        """The recursive routines and the mode to start tracing with, from a call of the module."""
        return start(self, mode, arguments)

    def call(self, arguments: dict[str, Any]) -> Any:
        """Call the module itself, hooks and all."""
        bound = inspect.BoundArguments(self.routine.signature, OrderedDict(arguments))
        return self.modules[""](*bound.args, **bound.kwargs)

    def current_weights(self) -> dict[str, torch.Tensor]:
        """The tensors that its modules have now, by the names of those that they had."""
        found = dict(self.weights)
        for name, module in self.modules.items():
            found |= {f"{name}.{key}" if name else key: tensor for key, tensor in _tensors(module).items()}
        return found

    def modes(self) -> tuple[bool, ...]:
        """Which of the modules are in training mode."""
        return tuple(part.training for module in self.modules.values() for part in module.modules())

    @property
    def is_training(self) -> bool:
        """Is the module in training mode, or any that the function uses?"""
        return any(module.training for module in self.modules.values())

    @property
    def versions(self) -> tuple[int, ...]:
        """What changes whenever elements of a weight are changed, or it is replaced."""
        return tuple(x for w in self.current_weights().values() if not w.is_inference() for x in (id(w), w._version))

    @property
    def is_trained(self) -> bool:
        """Has it parameters that gradients are computed for?"""
        return any(weight.requires_grad for weight in self.weights.values())

    @contextmanager
    def traced(self) -> Iterator[None]:
        """Let calls of methods be seen."""
        with shadowed(self.modules.values(), self.routines), torch.no_grad():
            yield


def entry_of(given: Any, weights: Any) -> TorchEntry | None:
    """What is to be compiled, if it is a module or a function; refused while it is being trained."""
    if not isinstance(given, torch.nn.Module | FunctionType):
        return None
    if weights is not None:
        raise ModelError("weights= is given for a module, which has its own. Load them into it: load_state_dict(...).")
    entry = TorchEntry.of_function(given) if isinstance(given, FunctionType) else TorchEntry.of_module(given)
    entry.refuse_unfit()
    return entry


def entry_again(given: Any, name: str) -> TorchEntry:
    """A module or function that new weights are read from; refused if it is not the one that was compiled as `name`."""
    if isinstance(given, FunctionType):
        refuse_other(name, written_name(given))
        return TorchEntry.of_function(given)
    refuse_other(name, type(given).__name__)
    return TorchEntry.of_module(given)


def _refuse_scripts(module: torch.nn.Module) -> None:
    for name, part in module.named_modules():
        if isinstance(part, torch.jit.ScriptModule):
            raise ModelError(
                f"'{name}' was compiled by torch.jit, which hides what it does. Give the module as it was before."
            )


def _refuse_placement(name: str, weight: torch.Tensor) -> None:
    if weight.is_meta:
        raise ModelError(f"'{name}' is on the meta device and has no values. Load the module's weights first.")
    if weight.device.type != "cpu":
        raise ModelError(f"'{name}' is on {weight.device}; compiled modules run on the processor. Call module.cpu().")
    if weight.is_floating_point() and weight.dtype != torch.float32 and isinstance(weight, torch.nn.Parameter):
        raise ModelError(
            f"'{name}' has elements of {weight.dtype}; compiled modules compute in torch.float32. Call module.float()."
        )


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


def _tensors(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by their names in the state_dict."""
    return dict([*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)])


tensor_of = torch.from_numpy
"""An array as torch has it."""


gradients_wanted = torch.is_grad_enabled
"""Would torch keep what gradients are computed from?"""

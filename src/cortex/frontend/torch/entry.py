"""What is compiled: a module or a function, its parameters, and what it is called with."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import torch

from cortex.errors import ModelError, StructureError
from cortex.frontend.spans import span_of_function
from cortex.frontend.torch.rebuild import Rebuilt
from cortex.frontend.torch.routines import Routine, routines_of, shadowed
from cortex.frontend.torch.standins import PLAIN, is_node

FRESH = (dict, list, set)


@dataclass(frozen=True, eq=False)
class Request:
    """The arguments of one call of the module."""

    arguments: dict[str, Any]
    tensors: dict[str, Any]
    only_node: Any


@dataclass(frozen=True, eq=False)
class Entry:
    """What is called, its methods and functions that may be called on nodes, and the modules it consists of."""

    name: str
    routine: Routine
    modules: dict[str, torch.nn.Module]
    routines: dict[tuple[int, str], Routine]
    functions: dict[int, Routine]
    weights: dict[str, torch.Tensor]
    takes_list: bool = False
    """Does it take a list of structures itself?"""

    @classmethod
    def of_module(cls, module: torch.nn.Module, takes_list: bool = False) -> Entry:
        """A module; its parameters and buffers are known by their names in its state_dict."""
        rebuilt = Rebuilt()
        routines = routines_of(module, rebuilt.rebuilt)
        routine = routines.get((id(module), "forward"))
        if routine is None:
            raise ModelError(
                f"a {type(module).__name__} has no forward of its own that could be traced; give a module of a class "
                "that defines forward(self, node)."
            )
        weights = _tensors(module)
        return cls(type(module).__name__, routine, {"": module}, routines, rebuilt.routines, weights, takes_list)

    @classmethod
    def of_function(cls, function: FunctionType, takes_list: bool = False) -> Entry:
        """A function; modules and tensors that it takes from the scopes around it are known by the names there."""
        rebuilt = Rebuilt()
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
        return cls(function.__name__, routine, modules, routines, rebuilt.routines, weights, takes_list)

    @cached_property
    def params(self) -> dict[int, str]:
        """The names of the weights by the identity of the tensors."""
        return {id(tensor): name for name, tensor in reversed(self.weights.items())}

    @cached_property
    def seen_code(self) -> set[CodeType]:
        """The code of all functions whose calls are seen."""
        return {r.function.__code__ for r in (*self.routines.values(), *self.functions.values())}

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments by parameter."""
        try:
            return self.routine.bind(args, kwargs)
        except TypeError as error:
            raise StructureError(f"call of {self.name}: {error}") from None

    def batch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
        """The structures of a call with one list of them; None where the list is what forward takes, or is none."""
        if len(args) != 1 or kwargs or type(args[0]) is not list:
            return None
        return None if self.takes_list else args[0]

    def constants(self, arguments: dict[str, Any]) -> tuple[Any, ...]:
        """What tells calls apart that have to be compiled separately."""
        found: list[Any] = []
        for name, value in arguments.items():
            plain = isinstance(value, PLAIN) or value is None
            is_data = isinstance(value, torch.Tensor | np.ndarray)
            found.append((name, type(value), value) if plain else (name, "tensor" if is_data else "node"))
        return tuple(found)

    @contextmanager
    def traced(self) -> Iterator[None]:
        """Let calls of methods be seen."""
        with shadowed(self.modules.values(), self.routines), torch.no_grad():
            yield


def entry_of(given: Any, weights: Any, examples: list[Any]) -> Entry | None:
    """What is to be compiled, if it is a module or a function; refused while it is being trained."""
    if not isinstance(given, torch.nn.Module | FunctionType):
        return None
    if weights is not None:
        raise ModelError("weights= is given for a module, which has its own. Load them into it: load_state_dict(...).")
    lists = any(len(call) == 1 and type(call[0]) is list for call in map(as_call, examples))
    entry = Entry.of_function(given, lists) if isinstance(given, FunctionType) else Entry.of_module(given, lists)
    for module in entry.modules.values():
        _refuse_training(module)
    return entry


def as_call(example: Any) -> tuple[Any, ...]:
    """The arguments of an example: a tuple of them, or the only one."""
    return example if type(example) is tuple else (example,)


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


@dataclass(frozen=True, eq=False)
class Signature:
    """What calls are like: an example of the arguments, and which are nodes, tensors, or constants."""

    example: dict[str, Any]
    nodes: tuple[str, ...]
    tensors: tuple[str, ...]

    @classmethod
    def of(cls, entry: Entry, arguments: dict[str, Any]) -> Signature:
        """From the arguments of a call."""
        nodes = tuple(name for name, value in arguments.items() if holds_nodes(value))
        if not nodes:  # structures of Python's own collections
            nodes = tuple(name for name, value in arguments.items() if type(value) in (dict, list, tuple) and value)
        data = (torch.Tensor, np.ndarray)
        if not nodes:
            raise ModelError(
                f"{entry.name} is given no structure, only {', '.join(arguments) or 'nothing'}. Give an object with "
                "the attributes that forward reads.",
                span_of_function(entry.routine.function.__code__),
            )
        return cls(arguments, nodes, tuple(name for name, value in arguments.items() if isinstance(value, data)))

    def request(self, arguments: dict[str, Any]) -> Request:
        """A call, ready to be walked."""
        tensors = {name: _array(arguments[name]) for name in self.tensors}
        return Request(arguments, tensors, arguments[self.nodes[0]])

    def given(self) -> tuple[str, dict[str, Any]]:
        """The parameter that is the node, and the other arguments."""
        others = {name: value for name, value in self.example.items() if name != self.nodes[0]}
        return self.nodes[0], {name: type(value) if type(value) in FRESH else value for name, value in others.items()}


def _tensors(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by their names in the state_dict."""
    return dict([*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)])


def holds_nodes(value: Any) -> bool:
    """Is it a node, or a list of nodes?"""
    if type(value) in (list, tuple):
        return bool(value) and any(map(holds_nodes, value))
    return is_node(value) and type(value) not in FRESH


def _array(tensor: Any) -> Any:
    return tensor.detach().cpu().numpy() if isinstance(tensor, torch.Tensor) else tensor

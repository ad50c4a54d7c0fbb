"""What is compiled: a module or a function, its parameters, and what it is called with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from cortex.errors import ModelError, StructureError
from cortex.frontend.spans import span_of_function
from cortex.frontend.torch.routines import Routine, routines_of, shadowed
from cortex.frontend.torch.standins import PLAIN, is_node

FRESH = (dict, list, set)


@dataclass(frozen=True, eq=False)
class Request:
    """The arguments of one call of the module."""

    arguments: dict[str, Any]
    tensors: dict[str, Any]
    only_node: Any


@dataclass(eq=False)
class Entry:
    """A module with what its `forward` is called with. `example` has arguments of one call."""

    name: str
    routine: Routine
    module: torch.nn.Module
    routines: dict[tuple[int, str], Routine]
    params: dict[int, str]
    example: dict[str, Any] = field(default_factory=dict)
    node_parameters: tuple[str, ...] = ()
    tensor_parameters: tuple[str, ...] = ()

    @classmethod
    def of_module(cls, module: torch.nn.Module) -> Entry:
        """A module; its parameters and buffers are known by their names in its state_dict."""
        routines = routines_of(module)
        routine = routines.get((id(module), "forward"))
        if routine is None:
            raise ModelError(
                f"a {type(module).__name__} has no forward of its own that could be traced; give a module of a class "
                "that defines forward(self, node)."
            )
        named = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
        params: dict[int, str] = {}
        for name, tensor in named:
            params.setdefault(id(tensor), name)
        return cls(type(module).__name__, routine, module, routines, params)

    def weights(self) -> dict[str, Any]:
        """The parameters and buffers by name."""
        return {
            name: tensor
            for name, tensor in [
                *self.module.named_parameters(remove_duplicate=False),
                *self.module.named_buffers(remove_duplicate=False),
            ]
        }

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments by parameter."""
        try:
            return self.routine.bind(args, kwargs)
        except TypeError as error:
            raise StructureError(f"call of {self.name}: {error}") from None

    def learn(self, arguments: dict[str, Any]) -> None:
        """Take the arguments of a call for an example of what calls are like."""
        self.example = arguments
        self.node_parameters = tuple(name for name, value in arguments.items() if holds_nodes(value))
        self.tensor_parameters = tuple(
            name for name, value in arguments.items() if isinstance(value, torch.Tensor | np.ndarray)
        )
        if not self.node_parameters:
            raise ModelError(
                f"{self.name} is given no structure: {', '.join(arguments) or 'nothing'}. Give an object with the "
                "attributes that forward reads.",
                span_of_function(self.routine.function.__code__),
            )

    def constants(self, arguments: dict[str, Any]) -> tuple[Any, ...]:
        """What tells calls apart that have to be compiled separately."""
        found: list[Any] = []
        for name, value in arguments.items():
            plain = isinstance(value, PLAIN) or value is None
            is_data = isinstance(value, torch.Tensor | np.ndarray)
            found.append((name, type(value), value) if plain else (name, "tensor" if is_data else "node"))
        return tuple(found)

    def request(self, arguments: dict[str, Any]) -> Request:
        """A call, ready to be walked."""
        tensors = {name: _array(arguments[name]) for name in self.tensor_parameters}
        return Request(arguments, tensors, arguments[self.node_parameters[0]])

    def given(self) -> tuple[str, dict[str, Any]]:
        """The parameter that is the node, and the other arguments."""
        node = self.node_parameters[0]
        others = {name: value for name, value in self.example.items() if name != node}
        return node, {name: type(value) if type(value) in FRESH else value for name, value in others.items()}

    @contextmanager
    def traced(self) -> Iterator[None]:
        """Let calls of methods be seen."""
        with shadowed(self.module, self.routines), torch.no_grad():
            yield


def holds_nodes(value: Any) -> bool:
    """Is it a node, or a list of nodes?"""
    if type(value) in (list, tuple):
        return bool(value) and any(map(holds_nodes, value))
    return is_node(value) and type(value) not in FRESH


def _array(tensor: Any) -> Any:
    return tensor.detach().cpu().numpy() if isinstance(tensor, torch.Tensor) else tensor



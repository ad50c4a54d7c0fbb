"""What is compiled: a module or a function, its parameters, and what it is called with."""

from __future__ import annotations

import inspect
import sys
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch.nn.modules.module import _global_forward_hooks as _EVERYWHERE  # noqa: N812 - constant here
from torch.nn.modules.module import _global_forward_pre_hooks as _BEFORE_EVERYWHERE  # noqa: N812

from cortex.errors import ModelError
from cortex.frontend.spans import is_library, span_of_function
from cortex.frontend.torch.categories import is_node
from cortex.frontend.torch.collections_passed import FRESH, Content
from cortex.frontend.torch.interface import Constants, Interface, nodes_among, refuse_other
from cortex.frontend.torch.kept_objects import closed_over, kept_collections
from cortex.frontend.torch.outside import ClassAttributes, Space
from cortex.frontend.torch.rebuild import Rebuilt, Scope, comparing_nodes, names_in, written_name
from cortex.frontend.torch.rewrite_is import rewrite_is
from cortex.frontend.torch.routines import Routine, routines_of, shadowed
from cortex.frontend.torch.serving import Request


@dataclass(frozen=True, eq=False)
class Entry:
    """What is called, its methods and functions that may be called on nodes, and the modules it consists of."""

    name: str
    routine: Routine
    modules: dict[str, torch.nn.Module]
    routines: dict[tuple[int, str], Routine]
    functions: dict[int, Routine]
    weights: dict[str, torch.Tensor]
    scopes: list[Scope]
    cells: list[tuple[CellType, CellType, str]]
    """Cells of functions that hold dictionaries: those that are traced with, the functions' own, and the names."""
    called: Any
    """The module or the function itself."""
    buffers_read: set[str] = field(default_factory=set)
    """Buffers of integers and truth values that traces have read: code is compiled for their elements."""

    @classmethod
    def of_module(cls, module: torch.nn.Module) -> Entry:
        """A module; its parameters and buffers are known by their names in its state_dict."""
        rebuilt = Rebuilt()
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
    def of_function(cls, function: FunctionType) -> Entry:
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
        name = written_name(function)
        functions, scopes, cells = rebuilt.routines, rebuilt.scopes, rebuilt.cells
        return cls(name, routine, modules, routines, functions, weights, scopes, cells, function)

    def again(self, given: Any) -> Entry | None:
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

    def call(self, arguments: dict[str, Any]) -> Any:
        """Call the module itself, hooks and all."""
        bound = inspect.BoundArguments(self.routine.signature, OrderedDict(arguments))
        return self.modules[""](*bound.args, **bound.kwargs)

    @property
    def is_trained(self) -> bool:
        """Has it parameters that gradients are computed for?"""
        return any(weight.requires_grad for weight in self.weights.values())

    @cached_property
    def closed_over(self) -> list[Any]:
        """The collections that its functions take from the scopes around them."""
        routines = (self.routine, *self.routines.values(), *self.functions.values())
        return closed_over(getattr(r.original, "__func__", r.original) for r in routines)

    def undisturbed(self) -> AbstractContextManager[None]:
        """Tracing leaves nothing in these collections."""
        return kept_collections(self.closed_over)

    @cached_property
    def params(self) -> dict[int, str]:
        """The names of the weights by the identity of the tensors."""
        return {id(tensor): name for name, tensor in reversed(self.weights.items())}

    @cached_property
    def seen_code(self) -> set[CodeType]:
        """The code of all functions whose calls are seen."""
        return {r.function.__code__ for r in (*self.routines.values(), *self.functions.values())}

    @cached_property
    def _methods_of_nodes(self) -> dict[CodeType, CodeType]:
        return {}

    def of_node(self, method: FunctionType) -> FunctionType:
        """A method of the user's nodes as it is run on what stands for one."""
        code = self._methods_of_nodes.setdefault(method.__code__, rewrite_is(method.__code__))
        self.seen_code.add(code)
        return comparing_nodes(method, code)

    def interface(self, calls: list[tuple[Any, ...]]) -> Interface:
        """How it is called, as these calls are."""
        lists = any(len(call) == 1 and type(call[0]) is list for call in calls)
        return Interface(
            self.name, self.routine.signature, lists, any(type(call[0]) is tuple for call in calls if call)
        )

    @cached_property
    def spaces(self) -> list[Space]:
        """Where calls can leave something behind."""
        found: dict[int, Space] = {}
        for label, module in self.modules.items():
            for path, part in module.named_modules():
                name = ".".join([label or "self", *([path] if path else [])])
                found[id(part)] = Space(name, (vars(part),))
                for cls in type(part).__mro__:
                    if not is_library(getattr(sys.modules.get(cls.__module__), "__file__", None) or ""):
                        found.setdefault(id(cls), Space(cls.__name__, (ClassAttributes(cls),)))
                for key, held in vars(part).items():
                    if is_node(held) and hasattr(held, "__dict__") and not isinstance(held, ModuleType | dict):
                        found.setdefault(id(held), Space(f"{name}.{key}", (vars(held),)))
        functions = [r.function for r in (*self.routines.values(), *self.functions.values())]
        for scope in {id(f.__globals__): f.__globals__ for f in functions}.values():
            names = frozenset(n for f in functions if f.__globals__ is scope for n in names_in(f.__code__))
            found[id(scope)] = Space("", (scope, *(s for s in self.scopes if s.outer is scope)), names)
        return list(found.values())

    def held(self) -> Iterator[dict[str, Any]]:
        """What code can read by name: from the spaces, parameters, variables of outer functions, and defaults."""
        yield from ({name: x for _, name, x in space.bound()} for space in self.spaces)
        for module in self.modules.values():
            for part in module.modules():
                yield part._parameters
                yield part._buffers
        for routine in (*self.routines.values(), *self.functions.values()):
            yield dict(inspect.getclosurevars(routine.function).nonlocals)
            defaults = routine.function.__defaults__ or ()
            names = routine.function.__code__.co_varnames[: routine.function.__code__.co_argcount]
            yield dict(zip(reversed(names), reversed(defaults), strict=False))

    def holds(self, x: Any) -> bool:
        """Is this an attribute of one of the modules, or a global variable that their code reads?

        Such an object is the same one in all calls, and code may ask whether it is.
        """
        return any(held is x for space in self.spaces for _, _, held in space.bound())

    @contextmanager
    def traced(self) -> Iterator[None]:
        """Let calls of methods be seen."""
        with shadowed(self.modules.values(), self.routines), torch.no_grad():
            yield


def entry_of(given: Any, weights: Any) -> Entry | None:
    """What is to be compiled, if it is a module or a function; refused while it is being trained."""
    if not isinstance(given, torch.nn.Module | FunctionType):
        return None
    if weights is not None:
        raise ModelError("weights= is given for a module, which has its own. Load them into it: load_state_dict(...).")
    entry = Entry.of_function(given) if isinstance(given, FunctionType) else Entry.of_module(given)
    entry.refuse_unfit()
    return entry


def entry_again(given: Any, name: str) -> Entry:
    """A module or function that new weights are read from; refused if it is not the one that was compiled as `name`."""
    if isinstance(given, FunctionType):
        refuse_other(name, written_name(given))
        return Entry.of_function(given)
    refuse_other(name, type(given).__name__)
    return Entry.of_module(given)


def as_call(example: Any) -> tuple[Any, ...]:
    """The arguments of an example: a tuple of them, or the only one."""
    return example if type(example) is tuple else (example,)


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


@dataclass(frozen=True, eq=False)
class Signature:
    """What calls are like: an example of the arguments, and which are nodes, tensors, or constants."""

    example: dict[str, Any]
    nodes: tuple[str, ...]
    tensors: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    """Those that are data of the request."""

    @classmethod
    def of(cls, entry: Entry, arguments: dict[str, Any], constants: Constants) -> Signature:
        """From the arguments of a call, and what they are."""
        nodes = nodes_among(arguments)
        data = (torch.Tensor, np.ndarray)
        if not nodes:
            given = ", ".join(f"'{name}' is a {type(value).__name__}" for name, value in arguments.items())
            raise ModelError(
                f"{entry.name} is given no structure: {given or 'it has no arguments'}. Give an object with the "
                "attributes that forward reads.",
                span_of_function(entry.routine.function.__code__),
            )
        for name, value in arguments.items():
            if type(value) in FRESH and value and name not in nodes and Content.of(value) is None:
                raise ModelError(
                    f"argument '{name}' of {entry.name} is a {type(value).__name__} of other things than constants. "
                    "Give nodes, tensors and constants as arguments of their own.",
                    span_of_function(entry.routine.function.__code__),
                )
        tensors = tuple(name for name, value in arguments.items() if isinstance(value, data))
        numbers = tuple(name for name, *what in constants if what in (["int"], ["float"]))
        return cls(arguments, nodes, tensors, numbers)

    def request(self, arguments: dict[str, Any]) -> Request:
        """A call, ready to be walked."""
        return Request.of(arguments, self.nodes[0], self.tensors)

    def given(self) -> tuple[str, dict[str, Any]]:
        """The parameter that is the node, and the other arguments."""
        others = {name: value for name, value in self.example.items() if name != self.nodes[0]}
        return self.nodes[0], {
            name: Content.of(value) or type(value) if type(value) in FRESH else value for name, value in others.items()
        }


def _tensors(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by their names in the state_dict."""
    return dict([*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)])


tensor_of = torch.from_numpy
"""An array as torch has it."""


gradients_wanted = torch.is_grad_enabled
"""Would torch keep what gradients are computed from?"""

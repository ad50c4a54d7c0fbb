"""Functions of the user's with other meanings for some of their global names.

Functions that call each other find each other by name. While they are traced, these names have to mean what sees the
calls, `type` has to tell the class of the user's nodes, not of what stands for them, and `id` and `is` have to tell
which ways lead to one node (identity.py). The user's module is left alone: the code runs with a scope in front of its
own.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Collection
from dataclasses import replace
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from cortex.frontend.model import RecursiveModel
from cortex.frontend.spans import fail
from cortex.frontend.state import returning_states
from cortex.frontend.torch.classes import (
    meaning_of_callable,
    meaning_of_hasattr,
    meaning_of_isinstance,
    meaning_of_isscalar,
    of_sizes,
)
from cortex.frontend.torch.identity import is_another, meaning_of_hash, meaning_of_id, meaning_of_is
from cortex.frontend.torch.language import Language
from cortex.frontend.torch.lookups import Lookup
from cortex.frontend.torch.nested import Nested
from cortex.frontend.torch.numbers_of_fields import CONVERSIONS, FUNCTIONS_OF_MATH, MATH
from cortex.frontend.torch.rewrite import NAME, SIZED, rewrite
from cortex.frontend.torch.routines import Routine, is_users, shadow
from cortex.frontend.torch.sorted_lists import meaning_of_sorted
from cortex.frontend.torch.standins import NodeField, TorchNode
from cortex.frontend.torch.unknown import known_length
from cortex.frontend.written import names_in, passes_on


class Scope(dict[str, Any]):
    """Global names: `own` ones, then those of the module, as they are when they are looked up."""

    def __init__(self, outer: dict[str, Any], own: dict[str, Any]) -> None:
        super().__init__(own)
        self["__builtins__"] = outer.get("__builtins__", builtins)
        self.outer = outer

    def __missing__(self, name: str) -> Any:
        return self.outer[name]


class _TypeOf(type):
    def __call__(cls, *args: Any) -> Any:
        if len(args) == 1 and issubclass(type(args[0]), TorchNode | NodeField):
            return args[0]._cortex_class()
        if len(args) == 1 and isinstance(args[0], Lookup):
            return args[0]._cortex_kind
        return type(*args)

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, type)


class TypeOf(metaclass=_TypeOf):
    """What `type` means: the class of the user's node for what stands for one."""


MEANINGS = {
    "type": TypeOf,
    "len": known_length,
    "id": meaning_of_id,
    "hash": meaning_of_hash,
    "isinstance": meaning_of_isinstance,
    "callable": meaning_of_callable,
    "hasattr": meaning_of_hasattr,
    "sorted": meaning_of_sorted,
}

FUNCTIONS = (
    (operator.is_, meaning_of_is),
    (operator.is_not, is_another),
    (id, meaning_of_id),
    (hash, meaning_of_hash),
    (isinstance, meaning_of_isinstance),
    (callable, meaning_of_callable),
    (hasattr, meaning_of_hasattr),
    (np.isscalar, meaning_of_isscalar),
    *FUNCTIONS_OF_MATH,
)
"""Functions of libraries that have another meaning under any name."""


class _Operator(ModuleType):
    """`operator` with the meaning of `is`."""

    is_ = staticmethod(meaning_of_is)
    is_not = staticmethod(is_another)

    def __getattr__(self, name: str) -> Any:
        return getattr(operator, name)


class _Numpy(ModuleType):
    """`numpy` with that of `isscalar`."""

    isscalar = staticmethod(meaning_of_isscalar)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


MODULES = ((operator, _Operator("operator")), (np, _Numpy("numpy")), (math, MATH))


def _refusing(said: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise fail(said)

    return refuse


class Rebuilt:
    """The user's functions that were rebuilt, each once."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self.routines: dict[int, Routine] = {}
        self._shadows: dict[int, Callable[..., Any]] = {}
        self.scopes: list[Scope] = []
        self.cells: list[tuple[CellType, CellType, str]] = []
        """Cells that hold dictionaries: the rebuilt function's, the function's own, and the name of the variable."""
        self.nested = Nested()
        self._alive: list[FunctionType] = []

    def routine(self, function: FunctionType) -> Routine:
        """A function as a routine whose calls are seen."""
        self._shadow(function)
        return self.routines[id(function)]

    def of_model(self, model: RecursiveModel) -> Routine:
        """A model function as a routine; what it returns are states."""
        self._find(model)
        return self.routines[id(model.function)]

    def _find(self, model: RecursiveModel) -> None:
        """Make the routine of a model function, and those of all that it can reach."""
        function: Any = model.function
        key = id(function)
        if key not in self._shadows:
            self._shadow(function)
            routine = self.routines[key]
            self.routines[key] = replace(routine, original=returning_states(routine.original))

    def rebuilt(self, function: FunctionType) -> FunctionType:
        """The function with other meanings of names; itself where no name has one."""
        names = set(names_in(function.__code__))
        scope = function.__globals__
        own: dict[str, Any] = {name: self._shadow(scope[name]) for name in names if _is_users(scope.get(name))}
        for name in names:
            if isinstance(scope.get(name), RecursiveModel):
                self._find(scope[name])
        meanings = {**MEANINGS, **self._language.meanings}
        meanings |= {name: meant for name, meant in CONVERSIONS.items() if not passes_on(function.__code__, name)}
        own |= {name: meant for name, meant in meanings.items() if name in names and name not in scope}
        own |= {name: meant for name in names if (meant := self._meant(scope.get(name), names)) is not None}
        refused = {name: self._language.refusal(scope.get(name), name) for name in names}
        own |= {name: _refusing(said) for name, said in refused.items() if said is not None}
        cells = function.__closure__ or ()
        seen = tuple(map(self._cell, cells, function.__code__.co_freevars))
        has_dictionaries = any(isinstance(scope.get(name), dict) for name in names)
        is_same = not own and not has_dictionaries and all(map(operator.is_, seen, cells))
        made_in = Scope(scope, own)
        rewritten = rewrite(function.__code__)
        made_in.update(CALLS)
        code = self.nested.seen(rewritten, made_in)
        if is_same and code is function.__code__:
            return function
        self.scopes.append(made_in)
        made = FunctionType(code, made_in, function.__name__, function.__defaults__, seen or None)
        made.__kwdefaults__ = function.__kwdefaults__
        made.__qualname__ = function.__qualname__
        vars(made).update(vars(function))  # what is decorated: `__wrapped__`
        return made

    def _shadow(self, function: FunctionType) -> Callable[..., Any]:
        key = id(function)
        if key not in self._shadows:
            self._alive.append(function)
            self._shadows[key] = lambda *args, **kwargs: seen(*args, **kwargs)
            made = self.rebuilt(function)
            self.routines[key] = Routine(key, written_name(function), made, function)
            seen = shadow(self.routines[key])
            self._shadows[key] = seen
        return self._shadows[key]

    def _meant(self, x: Any, names: Collection[str]) -> Any:
        """What the user's code gets in place of something of a library; None where it gets the thing itself."""
        for module, other in (*MODULES, *self._language.modules):
            if x is module:
                return other if not vars(type(other)).keys().isdisjoint(set(names) - {"__getattr__"}) else None
        return next((meant for usual, meant in (*FUNCTIONS, *self._language.functions) if x is usual), None)

    def _cell(self, cell: CellType, name: str) -> CellType:
        try:
            held = cell.cell_contents
        except ValueError:  # not assigned yet
            return cell
        if isinstance(held, RecursiveModel):
            self._find(held)
        if isinstance(held, dict):
            made = next((made for made, own, _ in self.cells if own is cell), None)
            if made is None:
                made = CellType(held)
                self.cells.append((made, cell, name))
            return made
        meant = self._shadow(held) if _is_users(held) else self._meant(held, ())
        return cell if meant is None else CellType(meant)


CALLS = {NAME: meaning_of_is, SIZED: of_sizes}
"""What the calls mean that `rewrite` puts into code."""
OF_NODES = {name: MEANINGS[name] for name in ("id", "hash", "isinstance", "callable", "hasattr")} | CALLS


def comparing_nodes(function: FunctionType, code: CodeType) -> FunctionType:
    """The function with this code, in which `id`, `is` and their like have their meanings for what stands for nodes."""
    scope = Scope(function.__globals__, {n: x for n, x in OF_NODES.items() if n not in function.__globals__})
    made = FunctionType(code, scope, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def written_name(function: FunctionType) -> str:
    """The name of a function as part of other names: `lambda` for one that has none."""
    return function.__name__.strip("<>")


def _is_users(x: Any) -> bool:
    return isinstance(x, FunctionType) and is_users(x)

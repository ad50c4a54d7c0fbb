"""How a module is called: its parameters, and what tells calls apart that are compiled separately. Without torch."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from cortex.errors import ModelError, StructureError
from cortex.frontend.torch.categories import PLAIN, is_data, is_node, row_form, whole_form
from cortex.frontend.torch.collections_passed import FRESH, Content

Constants = tuple[tuple[Any, ...], ...]
"""For each argument its name and what it is: ("node",), ("tensor",), ("int",) or ("float",) where the number is data of
the request, or the type and value of a constant."""
Numbers = Literal["usual", "data", "constants"]
"""Which numbers are data: all but defaults, all, or none."""

NUMBERS = (int, float)
COLLECTIONS = (*FRESH, tuple)
"""What may be a structure, or constants."""
MOST_KINDS = 64
CLASS = vars(object)["__class__"]
"""What says which class an object is of, unless a class says something else of its instances."""


@dataclass(frozen=True, eq=False)
class Interface:
    """The parameters of a module's forward, without `self`."""

    name: str
    signature: inspect.Signature
    takes_list: bool = False
    """Does it take a list of structures itself?"""
    takes_tuple: bool = False
    """Are structures tuples?"""
    outside: tuple[str, ...] = ()
    """Tensors that it computes with and that are in no state_dict."""
    compiled_in: Mapping[str, str] = field(default_factory=dict)
    """Digests of the tensors whose elements are part of the program; see held_tensors.py."""
    names_states: bool = False
    """Is it a model function, whose results are states by name?"""
    taken_whole: set[str] = field(default_factory=set)
    """Tensors that are taken as a whole, so that calls with another shape are compiled separately."""

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments by parameter, defaults included."""
        count = len(args)
        if not kwargs and (rest := self._defaults.get(count)) is not None:
            return dict(zip(self._names, args + rest, strict=True))
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise StructureError(f"call of {self.name}: {error}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def leaves(self, name: str) -> bool:
        """Is this no argument of the module's own?"""
        parameters = self.signature.parameters
        return name not in parameters and all(p.kind is not p.VAR_KEYWORD for p in parameters.values())

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(self.signature.parameters)

    @cached_property
    def _defaults(self) -> dict[int, tuple[Any, ...]]:
        """The defaults of the other parameters, by number of arguments that are given, where they need no names."""
        parameters = self.signature.parameters.values()
        if any(p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters):
            return {}
        defaults = tuple(p.default for p in parameters)
        needed = sum(default is inspect.Parameter.empty for default in defaults)
        return {count: defaults[count:] for count in range(needed, len(defaults) + 1)}

    def batch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
        """The structures of a call with one list of them; None where the list is what forward takes, or is none."""
        if len(args) != 1 or kwargs or type(args[0]) is not list:
            return None
        return None if self.takes_list else args[0]

    def element(self, given: Any) -> dict[str, Any]:
        """The arguments of a call in a list of them: a tuple, where there are several, or the only one."""
        is_call = type(given) is tuple and len(self._names) > 1 and not self.takes_tuple
        return self.bind(given if is_call else (given,), {})

    def are_alike(self, batch: list[Any]) -> bool:
        """Is it known by their classes alone that calls with one argument each are compiled together?"""
        if len(self._names) != 1:
            return False
        kinds = {self.kinds.get(each) for each in set(map(type, batch))}
        return len(kinds) == 1 and None not in kinds

    def constants(self, arguments: dict[str, Any], numbers: Numbers = "usual") -> Constants:
        """What tells calls apart that have to be compiled separately."""
        found: list[Any] = []
        nodes: tuple[str, ...] | None = None
        for name, value in arguments.items():
            kind = self.kinds.get(type(value))
            if kind is not None:
                found.append((name, self._form(name, value) if kind == "tensor" else kind))
                continue
            if type(value) in COLLECTIONS:
                if nodes is None:
                    is_only = len(arguments) == 1 and value and type(value) is not set
                    nodes = (name,) if is_only else nodes_among(arguments)
                content = Content("()", ()) if value == () else Content.of(value)
                if name not in nodes and content is not None:
                    found.append((name, type(value), content.text))
                    continue
            elif type(value) in NUMBERS and numbers != "constants" and not self._is_usual(name, value, numbers):
                found.append((name, type(value).__name__))
                continue
            elif value is None or isinstance(value, PLAIN):
                found.append((name, type(value), value))
                continue
            what = "tensor" if is_data(value) else "node"
            found.append((name, self._form(name, value) if what == "tensor" else what))
            if type(value) not in COLLECTIONS or (type(value) is tuple and len(arguments) == 1):
                self._remember(type(value), what)
        return tuple(found)

    def _form(self, name: str, value: Any) -> str:
        return whole_form(value) if name in self.taken_whole else row_form(value)

    def _is_usual(self, name: str, value: Any, numbers: Numbers) -> bool:
        """Is it the default of a parameter, where such numbers are constants?"""
        if numbers == "data" or (parameter := self.signature.parameters.get(name)) is None:
            return False
        return type(parameter.default) is type(value) and repr(parameter.default) == repr(value)

    @cached_property
    def kinds(self) -> dict[type, str]:
        """What arguments of these classes are, whatever they hold."""
        return {}

    def _remember(self, kind: type, what: str) -> None:
        if len(self.kinds) >= MOST_KINDS:
            self.kinds.clear()
        if kind.__class__ is type and inspect.getattr_static(kind, "__class__") is CLASS:
            self.kinds[kind] = what


def nodes_among(arguments: dict[str, Any]) -> tuple[str, ...]:
    """The arguments that are structures; lists and dictionaries of plain values only where no other argument is one."""
    nodes = tuple(name for name, value in arguments.items() if holds_nodes(value) or _is_tree(value))
    return nodes or tuple(name for name, value in arguments.items() if type(value) in (dict, list, tuple) and value)


def holds_nodes(value: Any) -> bool:
    """Is it a node, or a list of nodes?"""
    if type(value) in (list, tuple):
        return bool(value) and any(map(holds_nodes, value))
    return is_node(value) and type(value) not in FRESH


def _is_tree(value: Any) -> bool:
    """Is it a tuple that holds more than plain values: tuples, as a tree of words, or tensors?"""
    return type(value) is tuple and not all(x is None or isinstance(x, PLAIN) for x in value)


def refuse_other(known: str, given: str) -> None:
    """Refuse weights of another module than the one that was compiled."""
    if given != known:
        raise ModelError(
            f"update is given a {given}, and a {known} was compiled; give that one, another one of its class, or a "
            "state_dict."
        )

"""How a module is called: its parameters, and what tells calls apart that are compiled separately. Without torch."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from cortex.errors import StructureError
from cortex.frontend.torch.categories import PLAIN, is_data, is_node
from cortex.frontend.torch.collections_passed import FRESH, Content

Constants = tuple[tuple[Any, ...], ...]
"""For each argument its name and what it is: ("node",), ("tensor",), or the type and value of a constant."""


@dataclass(frozen=True, eq=False)
class Interface:
    """The parameters of a module's forward, without `self`."""

    name: str
    signature: inspect.Signature
    takes_list: bool = False
    """Does it take a list of structures itself?"""

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments by parameter, defaults included."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise StructureError(f"call of {self.name}: {error}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def batch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
        """The structures of a call with one list of them; None where the list is what forward takes, or is none."""
        if len(args) != 1 or kwargs or type(args[0]) is not list:
            return None
        return None if self.takes_list else args[0]

    def constants(self, arguments: dict[str, Any]) -> Constants:
        """What tells calls apart that have to be compiled separately."""
        found: list[Any] = []
        nodes = nodes_among(arguments)
        for name, value in arguments.items():
            if name not in nodes and type(value) in FRESH and (content := Content.of(value)) is not None:
                found.append((name, type(value), content.text))
                continue
            plain = isinstance(value, PLAIN) or value is None
            found.append((name, type(value), value) if plain else (name, "tensor" if is_data(value) else "node"))
        return tuple(found)


def nodes_among(arguments: dict[str, Any]) -> tuple[str, ...]:
    """The arguments that are structures; Python's own collections only where no other argument is one."""
    nodes = tuple(name for name, value in arguments.items() if holds_nodes(value))
    return nodes or tuple(name for name, value in arguments.items() if type(value) in (dict, list, tuple) and value)


def holds_nodes(value: Any) -> bool:
    """Is it a node, or a list of nodes?"""
    if type(value) in (list, tuple):
        return bool(value) and any(map(holds_nodes, value))
    return is_node(value) and type(value) not in FRESH

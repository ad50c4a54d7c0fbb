"""From calls of a module to requests, and from states to what the module returns. Without torch, once it is traced.

The nodes of a request are, by `mode`:

    plain    the user's own nodes: forward calls itself on children, and nothing else is recursive
    headed   the user's own nodes, and one more for each call of forward, which does more than to recurse
    calls    one node per call of a routine on a node of the user's (see calls.py)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cortex.frontend.torch.calls import Arguments, Calls, Relation
from cortex.frontend.torch.forms import Form
from cortex.frontend.torch.interface import Constants
from cortex.frontend.torch.routine_states import RoutineStates

Mode = Literal["plain", "headed", "calls"]


class Request:
    """The arguments of one call of the module."""

    __slots__ = ("arguments", "only_node", "tensors")

    def __init__(self, arguments: dict[str, Any], tensors: dict[str, Any], only_node: Any) -> None:
        self.arguments = arguments
        self.tensors = tensors
        self.only_node = only_node

    @classmethod
    def of(cls, arguments: dict[str, Any], node: str, tensors: Iterable[str]) -> Request:
        """A call, ready to be walked; of its arguments one is a node, and some are tensors."""
        return cls(arguments, {name: array_of(arguments[name]) for name in tensors}, arguments[node])

    def root(self, mode: Mode, relations: Mapping[str, Relation]) -> Any:
        """What the linearizer walks it from."""
        match mode:
            case "plain":
                return self.only_node
            case "headed":
                return Arguments(self.arguments)
            case "calls":
                return Calls(self.arguments, self.tensors, relations)


@dataclass(frozen=True, eq=False)
class Serving:
    """What calls with the same constants need of a module once it is compiled."""

    constants: Constants
    mode: Mode
    node: str
    """The parameter that is the node, or the first that is."""
    tensors: tuple[str, ...]
    relations: Mapping[str, Relation]
    """Between calls, where they are the nodes."""
    form: Form
    names: tuple[str, ...]
    """The states that the tensors of the result are."""
    routines: tuple[RoutineStates, ...] = ()
    """Of the recursive ones."""

    def request(self, arguments: dict[str, Any]) -> Request:
        """A call of the module, to be given to the compiled program."""
        return Request.of(arguments, self.node, self.tensors)

    def roots(self, requests: Iterable[Any]) -> list[Any]:
        """What the linearizer walks requests from; what is a node already stays as it is."""
        return [r.root(self.mode, self.relations) if isinstance(r, Request) else r for r in requests]

    def result(self) -> tuple[Form, tuple[str, ...]]:
        """The form of what the module returns, and the states that its tensors are, at the root."""
        return self.form, self.names

    def routine_states(self) -> tuple[RoutineStates, ...]:
        """Which states hold what recursive routines return and store."""
        return self.routines


def array_of(tensor: Any) -> Any:
    """A tensor that a call is given, as an array."""
    return tensor.detach().cpu().numpy() if hasattr(tensor, "detach") else tensor

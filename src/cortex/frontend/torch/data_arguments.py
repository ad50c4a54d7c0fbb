"""Which arguments of recursive calls are data of the call (passed_numbers.py), and which are constants of its role.

A number or a text that is a field, or computed from fields, is data. So is a number that calls of a routine make from
their own: one that they pass on changed, `depth + 1`. What is the same in all calls stays a constant.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from cortex.frontend.computed import constant
from cortex.frontend.torch.passed_numbers import Data, Numbers, is_number_or_text
from cortex.frontend.torch.passed_numbers import Number as Passed

if TYPE_CHECKING:
    from cortex.frontend.torch.model import TorchModel
    from cortex.frontend.torch.roles import Role
    from cortex.frontend.torch.routines import Routine
    from cortex.frontend.torch.tracing import TorchBuilder

FEW = 8
"""More different constants of one parameter are data."""


class DataArguments:
    """The parameters of routines whose arguments are data, learned while calls are seen."""

    def __init__(self) -> None:
        self._data: set[tuple[Hashable, str]] = set()
        self._constant: set[tuple[Hashable, str]] = set()
        """Those that have to be known: calls return results of different forms for different ones."""
        self._seen: dict[tuple[Hashable, str], set[Any]] = {}
        """Constants that calls were given."""

    def without_constants(self, b: TorchBuilder, routine: Routine, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call, in which numbers of fields stay what they are only where they are data."""
        found: dict[str, Any] = {}
        for name, value in arguments.items():
            field = b.language.as_field(value)
            if _is_field(field) and (routine.key, name) not in self._constant:
                self._add(b, routine, name)
                found[name] = field
            elif _is_field(field) and field is value:
                found[name] = field._cortex_tag()
            else:
                found[name] = b.language.known(value)
        return found

    def taken_out(self, b: TorchBuilder, routine: Routine, arguments: dict[str, Any]) -> Numbers:
        """The arguments that are data, which are no longer among the others."""
        found: dict[str, Passed] = {}
        for name, value in list(arguments.items()):
            if is_object(value):
                if b.model.mode != "calls":
                    b.model.need_calls()
                found[name] = value._cortex_steps
                del arguments[name]
                continue
            if (routine.key, name) not in self._data:
                continue
            if _is_field(value):
                found[name] = value._cortex_steps
            elif is_number_or_text(value) and (own := constant(value)) is not None:
                found[name] = own
            else:
                continue
            del arguments[name]
        return tuple(sorted(found.items()))

    def learn(self, model: TorchModel, b: TorchBuilder, routine: Routine, given: Mapping[str, Any]) -> None:
        """A call is given constants: are they others than those of its caller, and of calls before?"""
        for name, value in given.items():
            key = (routine.key, name)
            if type(value) not in (int, float) or key in self._constant:
                continue
            seen = self._seen.setdefault(key, set())
            seen.add((type(value), value))
            own = b.role.given.get(name)
            passes_on = b.role.routine is None or (type(own) is type(value) and own == value)
            if len(seen) > 1 and (not passes_on or len(seen) > FEW):
                self._add(b, routine, name)

    def must_be_known(self, model: TorchModel, role: Role) -> None:
        """The form or the number of calls depends on the data of a role, if it has any: it is constants from now on."""
        assert role.routine is not None
        names = [name for name, value in role.given.items() if isinstance(value, Data)]
        for name in names:
            self._data.discard((role.routine.key, name))
            self._constant.add((role.routine.key, name))
        if names:
            model.need_calls(again=True)

    def _add(self, b: TorchBuilder, routine: Routine, name: str) -> None:
        key = (routine.key, name)
        if key not in self._data:
            self._data.add(key)
            b.model.need_calls(again=True)


def is_object(x: Any) -> bool:
    """Does it stand for an object or a list that calls hand on beside their node?"""
    return hasattr(x, "_cortex_steps") and not hasattr(x, "_cortex_compute")


def _is_field(x: Any) -> bool:
    """Is it a number or a text that a node holds, that is computed from some, or that the call was given?"""
    return hasattr(x, "_cortex_steps") and hasattr(x, "_cortex_compute") and is_number_or_text(x._cortex_sample())

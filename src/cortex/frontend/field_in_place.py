"""`x += y` of fields: what a node holds is not changed, and a number is another one then, as Python says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cortex.frontend.builder import builder
from cortex.frontend.facts import ABSENT
from cortex.frontend.signals import NeedsExample
from cortex.frontend.spans import fail
from cortex.frontend.tensor import IN_PLACE, changes


class FieldsInPlace:
    """Operators of an attribute that change arrays and lists in place.

    An array that is computed from fields is another one then, and whoever has the first may not read it any more.
    """

    __slots__ = ()
    _cortex_name: str
    _cortex_sample: Callable[[], Any]
    _cortex_computed: Callable[[], Any]
    _cortex_is_numbers: Callable[[Any], bool]


def _in_place(name: str) -> Callable[[FieldsInPlace, Any], Any]:
    def operator(self: FieldsInPlace, other: Any) -> Any:
        sample = self._cortex_sample()
        if sample is ABSENT:
            raise NeedsExample(f"whether '{self._cortex_name}' is a number or an array")
        if not self._cortex_is_numbers(sample) and not isinstance(sample, list):
            return NotImplemented
        if self._cortex_computed() is None:
            raise fail(changes(f"node.{self._cortex_name}"))
        found = getattr(self, f"__{name}__")(other)
        builder().overwritten[id(self)] = self
        return found

    return operator


for _name in IN_PLACE:
    setattr(FieldsInPlace, f"__i{_name}__", _in_place(_name))

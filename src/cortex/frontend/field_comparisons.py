"""Comparisons of fields: questions about a node, with Python's own answers, and tensors of truth values for arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cortex.frontend.arity.counts import ask_compares, ask_equals
from cortex.frontend.builder import Value, builder
from cortex.frontend.compared import Compared
from cortex.frontend.computed import constant
from cortex.frontend.facts import ABSENT, ORDER
from cortex.frontend.field_arithmetic import FieldArithmetic, compute, is_exact, spread
from cortex.frontend.node_identity import tells_truth
from cortex.frontend.signals import NeedsExample, OneByOne
from cortex.frontend.spans import fail, user_frame
from cortex.frontend.tensor import value_of
from cortex.ra.ir import Each

PLAIN_TYPES = (str, int, float, bool)
NUMBERS = (int, float, np.number, np.bool_)


class FieldComparisons(FieldArithmetic):
    """Comparisons of an attribute."""

    __slots__ = ()
    _cortex_is_elementwise: Callable[[object], bool]
    _cortex_is_of_child: Callable[[], bool]

    def __eq__(self, other: object) -> Any:
        return self._cortex_compare("eq", other)

    def __ne__(self, other: object) -> Any:
        return self._cortex_compare("ne", other)

    def __lt__(self, other: Any) -> Any:
        return self._cortex_compare("lt", other)

    def __le__(self, other: Any) -> Any:
        return self._cortex_compare("le", other)

    def __gt__(self, other: Any) -> Any:
        return self._cortex_compare("gt", other)

    def __ge__(self, other: Any) -> Any:
        return self._cortex_compare("ge", other)

    def _cortex_compare(self, fn: str, other: Any) -> Any:
        """Tensors are compared elementwise, numbers of children one by one; else what the model does depends on it.

        Then what is asked of a number is how it compares: its values would be as many kinds of node.
        """
        if other is None and fn in ("eq", "ne"):
            return fn == "ne"
        is_exact_field = isinstance(other, FieldArithmetic) and is_exact(other)
        if self._cortex_is_elementwise(other) and not isinstance(other, list | tuple):
            if is_exact(self) and is_exact(other):
                return self._cortex_truths(compute(fn, (self, other)))
            return self._cortex_elementwise(f"__{fn}__", other)
        path = self._cortex_owner._cortex_path()
        is_each = any(isinstance(hop, Each) for hop in path)
        known: Any = other if type(other) in PLAIN_TYPES else getattr(constant(other), "value", ABSENT)
        if is_each and (fn in ORDER or is_exact_field) and (is_exact_field or isinstance(other, NUMBERS)):
            return self._cortex_truths(compute(fn, (self, other)))
        if is_each:
            raise OneByOne
        if fn in ORDER and type(known) in (bool, int, float):
            builder().knowledge.tags.setdefault(self._cortex_name)

            def ask() -> bool:
                return bool(known == known and ask_compares(self._cortex_name, fn, known, path))  # NaN has no order

            if not self._cortex_is_of_child():
                return ask()
            return Compared(ask, lambda: value_of(compute(fn, (self, other))._cortex_elementwise("__ne__", 0)))
        if fn == "eq" and known != known:
            # `in` takes a NaN for itself where it is the same object, and asks as `==` does, which does not.
            raise fail(
                f"node.{self._cortex_name} is compared with NaN, which equals nothing, not even itself. "
                f"Find NaN with `node.{self._cortex_name} != node.{self._cortex_name}`."
            )
        if fn == "ne" and known != known:
            return True
        if fn in ("eq", "ne") and type(known) in PLAIN_TYPES:
            builder().knowledge.tags.setdefault(self._cortex_name)
            return bool(ask_equals(self._cortex_name, known, path)) is (fn == "eq")
        if known is ABSENT and not isinstance(other, FieldArithmetic):
            raise fail(
                f"node.{self._cortex_name} is compared with a {type(other).__name__}; str, int, float and bool are "
                f'accepted. Pass e.g. fields={{"{self._cortex_name}": lambda node: node.{self._cortex_name}.name}} '
                "and compare with a string."
            )
        if self._cortex_is_of_child() or (is_exact_field and other._cortex_is_of_child()):
            return Compared(lambda: bool(compute(fn, (self, other))), lambda: self._cortex_compared(fn, other))
        return self._cortex_truths(compute(fn, (self, other)))

    def _cortex_compared(self, fn: str, other: Any) -> Value:
        """How a number of a child compares, as a tensor that is the same for every child."""
        found = compute(fn, (self, other))
        is_of_node = isinstance(found, FieldComparisons) and not found._cortex_is_of_child()
        return spread(fn, (self, other)) if is_of_node else value_of(found._cortex_elementwise("__ne__", 0))

    def _cortex_truths(self, found: Any) -> Any:
        """A comparison that was computed: a truth value of Python, or a tensor of them."""
        if not isinstance(found, FieldArithmetic):
            return found
        is_each = any(isinstance(hop, Each) for hop in found._cortex_owner._cortex_path())
        return found._cortex_elementwise("__ne__", 0) if is_each or found._cortex_is_array() else bool(found)

    def __hash__(self) -> int:
        raise NotImplementedError


def is_truth_by_identity(x: Any) -> bool:
    """Is it True or False, in code that tells these by identity (`node.flag is True`)? That takes the value itself."""
    frame = user_frame()
    if frame is None or not tells_truth(frame.f_code):
        return False
    sample = x._cortex_sample()
    if sample is ABSENT:
        raise NeedsExample(f"whether '{x._cortex_name}' is True or False")
    if not isinstance(sample, (*PLAIN_TYPES, np.generic)):
        return False
    return compute("is_truth", (x,))._cortex_tag() is True

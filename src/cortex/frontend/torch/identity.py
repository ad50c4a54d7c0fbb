"""Whether two ways lead to one object: a question that is asked of the real nodes.

    if node.parent.left is node: ...        asked: does node.parent.left lead to the node itself?

What stands for a node is another object for each way that leads there, so neither `is` nor `==` of Python may decide.
All of `==`, `in`, `list.index`, sets and dictionaries come down to `__eq__`, as all stand-ins have the same hash. `is`
and `id` cannot be overridden: the names and the comparisons of the user's code are given another meaning when it is
rebuilt (`rebuild.py`, `rewrite.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from cortex.frontend.builder import is_tracing
from cortex.frontend.computed import FUNCTIONS, SYMBOLS, Computed
from cortex.frontend.spans import fail, user_span
from cortex.frontend.torch.calls import said
from cortex.frontend.torch.steps import NOWHERE, Meant, Step, Steps, follow, text
from cortex.ra.ir import Value as ValueOf

if TYPE_CHECKING:
    from cortex.frontend.torch.tracing import TorchBuilder

HASH = 0x5EED
"""Of everything that stands for a node: Python compares what has the same hash, and comparing asks."""


@dataclass(frozen=True, eq=False)
class ComparedWith:
    """A function of a node: does a way from it lead to an object of the user's code?"""

    way: Steps
    other: Any
    how: Callable[[Any, Any], Any]

    def __call__(self, node: Any) -> bool | None:
        """None where the way leads nowhere."""
        try:
            return bool(self.how(follow(node, self.way), self.other))
        except NOWHERE:
            return None


def is_same(b: TorchBuilder, left: Any, right: Any) -> bool:
    """Do two things that a trace holds stand for one object? At least one of them stands for something."""
    if left is right:
        return True
    if not hasattr(left, "_cortex_steps"):
        left, right = right, left
    return _ask(b, left._cortex_steps, right, "is")


def is_equal(b: TorchBuilder, left: Any, right: Any) -> bool:
    """Are two nodes equal, by the `==` of their class?"""
    return _ask(b, left._cortex_steps, right, "equals")


def _ask(b: TorchBuilder, left: Steps, other: Any, how: Literal["is", "equals"]) -> bool:
    right: Steps | None = getattr(other, "_cortex_steps", None)
    if how == "is" and right is not None and _is_below(b, left, right):
        return False
    step: Step = Computed(how, (left, right), user_span())
    if right is None:
        b.model.kept.append(other)  # so that its id stays its own
        shown = f"({said(left)} {SYMBOLS[how]} object_{id(other)})"
        step = Meant(shown, ComparedWith(b.accessors.meant(left), other, FUNCTIONS[how]))
    name = b.accessors.name((step,))
    b.accessors.may_lack(name)
    b.knowledge.tags.setdefault(name)
    return bool(b.facts.ask(ValueOf(name)))


def _is_below(b: TorchBuilder, left: Steps, right: Steps) -> bool:
    """Is one the node itself, and the other one on which it calls its own routine? Else that would never end."""
    other = left or right
    return not (left and right) and any(cut.steps == other and cut.role is b.role and not cut.numbers for cut in b.cuts)


class NodeId(int):
    """What `id(node)` gives: equal to that of another way to the node."""

    _cortex_node: Any

    def __new__(cls, node: Any) -> NodeId:
        """The number itself means nothing."""
        made = super().__new__(cls, id(node))
        made._cortex_node = node
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeId) and _same(self._cortex_node, other._cortex_node)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return HASH

    def _refuse(self, *_: object) -> Any:
        raise fail(
            "a number is computed from id(node), or it is compared by size: what it is differs from run to run. "
            "Compare it with other ids by ==, or look it up in a set or a dictionary."
        )

    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __sub__ = __mul__ = __mod__ = __floordiv__ = __truediv__ = __and__ = __or__ = __xor__ = _refuse
    __radd__ = __rsub__ = __rmul__ = __rmod__ = __rfloordiv__ = __rtruediv__ = __rshift__ = __lshift__ = _refuse
    __float__ = __bool__ = __neg__ = __invert__ = __pow__ = __format__ = __str__ = __repr__ = _refuse


def _same(left: Any, right: Any) -> bool:
    from cortex.frontend.torch.standins import tracing

    return left is right or is_same(tracing(), left, right)


def meaning_of_is(left: Any, right: Any) -> bool:
    """What `left is right` means in the user's code."""
    from cortex.frontend.torch.unknown import refuse_unknown

    if left is right or left is None or right is None or not is_tracing():
        return left is right
    refuse_unknown([left, right])
    if isinstance(left, NodeId) or isinstance(right, NodeId):
        raise fail("`is` between numbers that id(node) gave: compare them by ==.")
    standing = [hasattr(x, "_cortex_steps") for x in (left, right)]
    return _same(left, right) if any(standing) else False


def is_another(left: Any, right: Any) -> bool:
    """What `left is not right` means."""
    return not meaning_of_is(left, right)


def meaning_of_id(x: Any) -> int:
    """What `id(x)` means in the user's code."""
    return NodeId(x) if hasattr(x, "_cortex_steps") and is_tracing() else id(x)


def meaning_of_hash(x: Any) -> int:
    """What `hash(x)` means in the user's code."""
    if hasattr(x, "_cortex_steps") and not hasattr(x, "_cortex_tag") and is_tracing():
        raise fail(
            f"hash({text(x._cortex_steps)}) is a number that differs from run to run, or that code of the node "
            "computes. Put the node itself into a set or a dictionary, or read a field of it."
        )
    return hash(x)

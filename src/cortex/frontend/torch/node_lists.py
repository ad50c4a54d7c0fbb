"""Lists and tuples of what stands for nodes, which know the way to the list that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cortex.frontend.builder import is_tracing
from cortex.frontend.spans import user_frame
from cortex.frontend.torch.calls import ARGUMENT
from cortex.frontend.torch.steps import At, Attr, Sliced, Steps
from cortex.frontend.written import has_fixed_operand, written


class NodeList(list[Any]):
    """What stands for the items of a list that the steps lead to."""

    def __init__(self, steps: Steps, items: list[Any], is_counted: bool = True) -> None:
        """`is_counted` if it has been asked how many there are."""
        super().__init__(items)
        self._cortex_steps, self._cortex_is_counted = steps, is_counted

    def __getitem__(self, key: Any) -> Any:
        return _item(self, key, super().__getitem__)


class NodeTuple(tuple[Any, ...]):
    """What stands for the items of a tuple."""

    _cortex_steps: Steps
    _cortex_is_counted: bool

    def __new__(cls, steps: Steps, items: list[Any], is_counted: bool = True) -> NodeTuple:
        """A tuple of what stands for the items; `is_counted` if it has been asked how many there are."""
        made = super().__new__(cls, items)
        made._cortex_steps, made._cortex_is_counted = steps, is_counted
        return made

    def __getitem__(self, key: Any) -> Any:
        return _item(self, key, super().__getitem__)


def _counting(method: str, of: Any) -> Any:
    """A method of lists or tuples, before which it is asked how many items there are."""
    own = getattr(of, method)

    def counted(self: NodeList | NodeTuple, *args: Any, **kwargs: Any) -> Any:
        count(self)
        return own(self, *args, **kwargs)

    return counted


WHOLE = (
    "__add__", "__contains__", "__eq__", "__ge__", "__gt__", "__iter__", "__le__", "__len__", "__lt__", "__mul__",
    "__ne__", "__repr__", "__reversed__", "__rmul__", "append", "clear", "copy", "count", "extend", "index", "insert",
    "pop", "remove", "reverse", "sort",
)  # fmt: skip
"""Methods that use a list as a whole."""

for _type, _of in ((NodeList, list), (NodeTuple, tuple)):
    for _method in WHOLE:
        if hasattr(_of, _method):
            setattr(_type, _method, _counting(_method, _of))


def _added_to(x: NodeList | NodeTuple, before: Any) -> Any:
    """`before + x`, which Python would join without calling any method of `x`."""
    count(x)
    return before + (tuple(x) if isinstance(x, tuple) else list(x))


NodeList.__radd__ = NodeTuple.__radd__ = _added_to  # type: ignore[attr-defined]


def count(x: NodeList | NodeTuple) -> None:
    """Ask how many items there are, if that has not been asked."""
    if x._cortex_is_counted or not is_tracing():
        return
    from cortex.frontend.torch.standins import tracing

    x._cortex_is_counted = True
    b = tracing()
    b.model.counts.ask(b, x._cortex_steps)


def _item(x: NodeList | NodeTuple, key: Any, own: Callable[[Any], Any]) -> Any:
    found = _part(x, key)
    if found is None:
        count(x)
        return own(key)
    return found if isinstance(key, slice) else next(iter(found))


def _part(x: NodeList | NodeTuple, key: Any) -> Any:
    """A slice of a list of nodes as a list of its own, where that has been found to be needed; else None.

    The item at a place that is the same for every node is the only item of such a slice.
    """
    start, stop, step = (key.start, key.stop, key.step) if isinstance(key, slice) else (key, None, None)
    if not all(type(n) in (int, type(None)) for n in (start, stop, step)) or is_nested(x._cortex_steps):
        return None
    if not is_tracing() or (frame := user_frame()) is None:
        return None
    from cortex.frontend.torch.standins import present, tracing

    b = tracing()
    slices, is_item, is_fixed = b.model.slices, not isinstance(key, slice), has_fixed_operand(frame)
    if is_item:
        slices.items_are_taken |= is_fixed
        stop = None if start == -1 else start + 1
    else:
        slices.are_taken |= is_fixed or written(frame.f_code) is None
    are_lists = slices.items_are_lists if is_item else slices.are_lists
    if not are_lists or not (is_fixed or (not is_item and written(frame.f_code) is None)):
        return None
    found = present(b, (*x._cortex_steps, Sliced(start, stop, step)))
    return found if not is_item or found else None


def is_nested(steps: Steps) -> bool:
    """Is a list or tuple there a node itself, of a structure that consists of them, rather than what a node holds?"""
    argument = bool(steps) and isinstance(steps[0], Attr) and steps[0].name.startswith(ARGUMENT)
    return all(isinstance(step, At) and isinstance(step.key, int) for step in steps[argument:])

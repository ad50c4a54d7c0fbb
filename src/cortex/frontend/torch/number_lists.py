"""Lists of numbers on nodes as Python's lists: items, slices, `+`, `*`, and methods that read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cortex.frontend.spans import fail
from cortex.frontend.torch.child_lists import refuse_many_items

if TYPE_CHECKING:
    from cortex.frontend.torch.standins import NodeField

READING = ("count", "index", "copy")
"""Methods of lists that change nothing."""


def item_or_slice(x: NodeField, key: int | slice) -> Any:
    """`x[key]`: the kind of node depends on the length of the list, also where nothing is taken of it."""
    sample, count = x._cortex_sample(), x._cortex_ask_length()
    if isinstance(key, slice):
        places = range(*key.indices(count))
        refuse_many_items(x._cortex_name, len(places))
        return type(sample)(x._cortex_item(i) for i in places)
    if not -count <= key < count:
        raise IndexError(f"{type(sample).__name__} index out of range")
    return x._cortex_item(key % count)


def joined(fn: str, operands: tuple[Any, ...]) -> Any:
    """What `+` and `*` of lists give: a longer list. None where the operator is one of numbers or arrays."""
    if len(operands) != 2 or fn not in ("add", "mul"):
        return None
    lists = [_is_list(x) for x in operands]
    if fn == "add" and all(lists):
        left, right = map(_items, operands)
        return left + right
    if fn == "mul" and any(lists):
        times = operands[lists.index(False)] if False in lists else None
        return _items(operands[lists.index(True)]) * times if type(times) is int else None
    return None


def method(x: NodeField, name: str) -> Any:
    """`x.name` of a list: a method of the items that there are now."""
    sample = x._cortex_sample()
    if not hasattr(type(sample), name):
        raise AttributeError(f"'{type(sample).__name__}' object has no attribute '{name}'")
    if name not in READING:
        raise fail(f"node.{x._cortex_name}.{name}(...) changes a list of the node's. Copy it first: list(...).")
    return getattr(_items(x), name)


def _is_list(x: Any) -> bool:
    return type(x) in (list, tuple) or (hasattr(type(x), "_cortex_ask_length") and x._cortex_is_list())


def _items(x: Any) -> Any:
    return x if type(x) in (list, tuple) else type(x._cortex_sample())(iter(x))

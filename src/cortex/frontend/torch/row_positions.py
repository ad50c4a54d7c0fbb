"""Which rows of a tensor that is given beside the structure an index takes: integers of nodes, and lists of them."""

from __future__ import annotations

from typing import Any, NoReturn

from cortex.frontend.arity.told import Count
from cortex.frontend.index_arithmetic import linear
from cortex.frontend.spans import fail
from cortex.frontend.standin import Attribute
from cortex.frontend.torch.content import Integers, Whole
from cortex.frontend.torch.mode import symbolic
from cortex.frontend.torch.number import Number, as_field
from cortex.frontend.torch.row_wise import Extent
from cortex.frontend.torch.standins import NodeField
from cortex.frontend.torch.steps import At, Steps
from cortex.frontend.torch.tensor import TorchTensor


def as_position(x: Any) -> int | Steps | None:
    """An integer, constant or of the node, that is one index; None where it is something else."""
    x = as_field(x) if type(x) in (Number, Count) else x
    if isinstance(x, NodeField) and not x._cortex_is_array():
        return x._cortex_steps if isinstance(x._cortex_sample(), int) else refuse_index(x)
    if isinstance(x, int) and not isinstance(x, bool | Attribute):
        return x
    return None


def as_positions(x: Any) -> tuple[tuple[int, ...], list[int | Steps]]:
    """The shape and the elements of a tensor or list of integers."""
    if isinstance(x, list | tuple):
        found = [as_position(each) for each in x]
        known = [each for each in found if each is not None]
        return ((len(known),), known) if len(known) == len(found) else refuse_index(x)
    tensor = symbolic(x)
    held = tensor._cortex_content() if isinstance(tensor, TorchTensor) else None
    if not isinstance(held, Integers):
        return refuse_index(x)
    return held.shape, [_element(e) for e in held.elements.flat]


def _element(x: Any) -> int | Steps:
    if isinstance(x, int):
        return x
    if not isinstance(x, Whole) or not isinstance(x.field, NodeField):
        return refuse_index(x)
    steps: Steps = x.field._cortex_steps
    return steps if x.at is None else (*steps, At(x.at))


def refuse_index(x: Any) -> NoReturn:
    """Refuse what is no integer of a node."""
    what = "a computed value" if isinstance(x, TorchTensor) else f"a {type(x).__name__}"
    raise fail(
        f"a tensor that is given beside the structure is indexed with {what}; integers of the node, and tensors and "
        "lists of them, are accepted: inputs[node.idx], inputs[node.idx - 1], inputs[torch.tensor(node.ids)]."
    )


def only_row(x: slice) -> int | Steps:
    """The position of the only row of a slice `i:i + 1`."""
    start, stop = as_position(x.start), as_position(x.stop)
    is_one = start == stop - 1 if isinstance(start, int) and isinstance(stop, int) else _is_next(x.start, x.stop)
    if start is None or not is_one or x.step not in (None, 1):
        raise fail(
            "several rows of a tensor that is given beside the structure are taken by a slice; one is accepted, "
            "inputs[i:i + 1]. Take others one by one: torch.stack([inputs[i] for i in node.ids])."
        )
    return start


def _is_next(start: Any, stop: Any) -> bool:
    """Is it `start + 1`, of integers of the node?"""
    fields = [as_field(x) for x in (start, stop)]
    if not all(isinstance(x, NodeField) for x in fields):
        return False
    (first, scale, offset), (other, same, end) = map(linear, fields)
    return (first._cortex_steps, scale, offset + 1) == (other._cortex_steps, same, end)


def place_of_rows(items: list[Any], extent: Extent) -> int | None:
    """Which item of an index is for the axis of rows."""
    used = sum(item is not None and item is not Ellipsis for item in items)
    axis = 0
    for number, item in enumerate(items):
        if item is None:
            continue
        if item is Ellipsis:
            axis += len(extent.sizes) - used
            if axis > extent.axis:
                return None
            continue
        if axis == extent.axis:
            return number
        axis += 1
    return None


def is_full(x: Any) -> bool:
    """Does it take all rows?"""
    return isinstance(x, slice) and x == slice(None)

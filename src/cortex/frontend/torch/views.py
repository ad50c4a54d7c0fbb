"""Views: tensors that share their elements with another one, their base.

A view is computed from its base whenever it is read, and what is written into it is written into its base. So a change
in place is seen through every alias, as in torch. Equal operations are one let, hence reading twice costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cortex.frontend.spans import fail
from cortex.frontend.torch.content import Content, cut, join, permute, reshape

if TYPE_CHECKING:
    from cortex.frontend.torch.tensor import TorchTensor

Ranges = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class View:
    """How a view is read from its base, and how its base changes when it is written: `write(base, part)`."""

    base: TorchTensor
    read: Callable[[Content], Content]
    write: Callable[[Content, Content], Content]

    def __post_init__(self) -> None:
        self.base._cortex_viewed = True


def reshaped(x: TorchTensor, shape: Sequence[int]) -> View:
    """The elements of `x`, row-major, in another shape."""
    own, sizes = tuple(x._cortex_shape), tuple(shape)
    return View(x, lambda base: reshape(base, sizes), lambda _, part: reshape(part, own))


def permuted(x: TorchTensor, perm: Sequence[int]) -> View:
    """`x` with its axes permuted."""
    order = tuple(perm)
    back = tuple(order.index(axis) for axis in range(len(order)))
    return View(x, lambda base: permute(base, order), lambda _, part: permute(part, back))


def sliced(x: TorchTensor, ranges: Ranges, shape: Sequence[int]) -> View:
    """A box of `x`, in `shape`, which may lack axes of size 1 or have more of them."""
    box = tuple(len(range(*r)) for r in ranges)
    sizes = tuple(shape)
    return View(
        x,
        lambda base: reshape(cut(base, ranges), sizes),
        lambda base, part: paste(base, ranges, reshape(part, box)),
    )


def repeated(x: TorchTensor, read: Callable[[Content], Content]) -> View:
    """`x` read so that several elements of the view are one of `x`, which cannot be written."""

    def write(_: Content, __: Content) -> Content:
        raise fail(
            "a tensor made by expand() is changed in place: several of its elements are one in memory, as torch "
            "says. Change a copy: x = x.clone()."
        )

    return View(x, read, write)


def read_only(x: TorchTensor, what: str, read: Callable[[Content], Content]) -> View:
    """Elements of `x` that are read in an order in which they cannot be written."""

    def write(_: Content, __: Content) -> Content:
        raise fail(f"what {what} gives is changed in place. Choose with torch.where, or change a copy: x = x.clone().")

    return View(x, read, write)


def paste(base: Content, ranges: Ranges, part: Content) -> Content:
    """`base` with the box at `ranges` replaced by `part`, which has the box's shape."""
    for axis, (start, stop, step) in enumerate(ranges):
        size = base.shape[axis]
        if (start, stop, step) == (0, size, 1):
            continue
        if step != 1:
            for k, position in enumerate(range(start, stop, step)):
                one = (*ranges[:axis], (position, position + 1, 1), *ranges[axis + 1 :])
                base = paste(base, one, _band(part, axis, k, k + 1))
            return base
        if stop <= start:
            return base
        whole = (*ranges[:axis], (0, stop - start, 1), *ranges[axis + 1 :])
        inner = paste(_band(base, axis, start, stop), whole, part)
        pieces = (_band(base, axis, 0, start), inner, _band(base, axis, stop, size))
        return join([piece for piece in pieces if piece.shape[axis]], axis)
    return part


def _band(x: Content, axis: int, start: int, stop: int) -> Content:
    return cut(x, tuple((start, stop, 1) if i == axis else (0, n, 1) for i, n in enumerate(x.shape)))

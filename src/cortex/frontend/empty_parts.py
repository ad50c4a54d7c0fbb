"""Reductions over an empty part of the children: `cortex.sum(f(k) for k in node.children[1:])` where there is one.

The result is 0, of the shape that the values of such children would have. To find it, the generator is run for one
child that is not in the list, and nothing is computed from what it gives. Only a generator that a reduction of Cortex
is running gets it: to everybody else the list is empty.
"""

from __future__ import annotations

import dis
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType
from typing import Any, TypeVar

from cortex.frontend.builder import Builder, Value, builder

T = TypeVar("T")

FOLDER = os.path.dirname(__file__)
INLINED = dis.opmap.get("LOAD_FAST_AND_CLEAR")
"""Begins a comprehension in the code around it, from Python 3.12 on. It must not get what its generator may get."""


class Part(list[T]):
    """A list of children, or of values of them. Where it is empty it still knows what an item of it would be."""

    def __init__(self, items: Iterable[T], item: Callable[[], T]) -> None:
        super().__init__(items)
        self._item = item

    def __iter__(self) -> Iterator[T]:
        return super().__iter__() if self else _supposed(builder(), self._item)

    def __reversed__(self) -> Iterator[T]:
        return super().__reversed__() if self else iter(self)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Part(found, self._item) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Any:
        return Part(super().__add__(other), self._item)


def _supposed(b: Builder, item: Callable[[], T]) -> Iterator[T]:
    """The supposed item if a reduction asks for it, and `b.supposed` knows while it is computed with; else nothing."""
    if not _is_reduced(sys._getframe().f_back):
        return
    token, found = object(), item()
    nodes = [other for other in b.supposed.values() if hasattr(other, "_cortex_path")]
    # Beside a supposed child of another list, the same one: values of children of two lists cannot be combined.
    b.supposed[token] = nodes[0] if nodes and hasattr(found, "_cortex_path") else found
    try:
        yield b.supposed[token]  # type: ignore[misc]  # an item like `found`
    finally:
        b.supposed.pop(token, None)


def next_of(b: Builder, iterator: Iterator[Any], end: object) -> Any:
    """The next item; while the user's generator makes it, `b.gathering` says that a reduction waits for it."""
    b.gathering += 1
    try:
        return next(iterator, end)
    finally:
        b.gathering -= 1


def _is_reduced(frame: FrameType | None) -> bool:
    """Is a reduction waiting for the items that are asked for in this frame, and nobody in between?"""
    while frame is not None and frame.f_code is not next_of.__code__:
        if not (_is_own(frame.f_code) or _is_at_loop_of_generator(frame)):
            return False
        frame = frame.f_back
    return frame is not None


def _is_own(code: CodeType) -> bool:
    """Is this one of the generators that hand on the children?"""
    return bool(code.co_flags & inspect.CO_GENERATOR) and os.path.dirname(code.co_filename) == FOLDER


def _is_at_loop_of_generator(frame: FrameType) -> bool:
    """Does this frame run a generator expression, which takes the next item for itself?"""
    code, at = frame.f_code.co_code, frame.f_lasti
    while at and dis.opname[code[at]] == "CACHE":
        at -= 2
    is_alone = INLINED is None or INLINED not in code[::2]
    return frame.f_code.co_name == "<genexpr>" and dis.opname[code[at]] == "FOR_ITER" and is_alone


class Supposed:
    """Tells values that are computed from supposed items from others, while a reduction gathers them."""

    def __init__(self, b: Builder) -> None:
        self._b = b
        self._before = set(b.supposed)
        self.values: list[Value] = []

    def takes(self, value: Value) -> bool:
        """Is the value one of a supposed item? Then it is kept here."""
        is_supposed = not self._b.supposed.keys() <= self._before
        if is_supposed:
            self.values.append(value)
        return is_supposed

    def end(self) -> None:
        """Nothing is gathered any more. An item that a `zip` took and did not use may still be there."""
        for token in self._b.supposed.keys() - self._before:
            del self._b.supposed[token]

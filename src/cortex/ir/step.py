"""Steps: the visible, optional transformations, as values.

A step is a frozen value whose fields are its arguments. Printing it gives the Python that rebuilds it, equal
steps are equal, and a schedule is a tuple of them, so a schedule can be a cache key. `apply` checks first and
rewrites second: a step that refuses raises `ScheduleError` and leaves nothing behind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

from cortex.errors import ScheduleError
from cortex.ir.node import node as step

__all__ = ["Step", "apply", "attempt", "step"]

T = TypeVar("T")


class Step(ABC, Generic[T]):
    """A transformation of a program of type `T`; subclasses are declared with `@step`."""

    __slots__ = ()

    @abstractmethod
    def apply(self, program: T) -> T:
        """`program`, transformed."""


def apply(program: T, steps: Iterable[Step[T]]) -> T:
    """`program` after all `steps`, in order."""
    for s in steps:
        program = s.apply(program)
    return program


def attempt(program: T, s: Step[T]) -> T | None:
    """`program` after `s`; None where it is refused."""
    try:
        return s.apply(program)
    except ScheduleError:
        return None

"""What the values of a trace are, seen from the children of the node.

A trace of a node with n children in a list reads `children[0].h`, ..., `children[n-1].h`. Rolling it up (see `roll`)
finds for each of its values which of these it is:

    Whole   one value for the node, whatever the children
    Part    what the child `index` contributes: the same expression for every child, taken at this one
    Fold    a sum, maximum or minimum of wholes and parts, so far
    Stack   several values one after the other along an axis, such as torch.stack of the children's states

Names are those of lets of the rolled graph, in which a part is per edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from cortex.ir.source import Span

Child: TypeAlias = "tuple[str, int | None]"
"""A list relation and an index into it; None stands for every child, as in a comprehension over children."""

FoldFn = Literal["add", "max", "min"]


class NotAlike(Exception):
    """The trace treats children in a way that no expression for every child has; the message is the reason."""

    def __init__(self, reason: str, span: Span | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span


class AsksItems(NotAlike):
    """What the trace asks depends on single items of a list."""


class CountedOtherwise(NotAlike):
    """A constant follows from the number of children in a way that no formula here has."""


@dataclass(frozen=True, slots=True)
class Whole:
    """The let `name`, per node."""

    name: str


@dataclass(frozen=True, slots=True)
class Part:
    """The let `name`, per edge, at one child."""

    name: str
    child: Child


@dataclass(frozen=True, slots=True)
class Fold:
    """All terms combined by `fn`, which is associative and commutative up to rounding."""

    fn: FoldFn
    terms: tuple[Whole | Part, ...]


@dataclass(frozen=True, slots=True)
class Stack:
    """Parts one after the other along `axis`; part i takes extents[i] of it."""

    axis: int
    parts: tuple[Value, ...]
    extents: tuple[int, ...]


Value: TypeAlias = "Whole | Part | Fold | Stack"

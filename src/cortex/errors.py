"""The four ways things go wrong, and how they are told.

A message's first line says what was asked, what is wrong and what would be accepted. Then comes the place:
the user's source line with a caret, or the marked loop. Internal frames are never shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cortex.ir.source import Span


class CortexError(Exception):
    """Base of everything Cortex raises on purpose."""


class ModelError(CortexError):
    """The model breaks a rule: control flow on computed values, wrong shapes, recursion that cannot be compiled."""

    def __init__(self, message: str, span: Span | None = None) -> None:
        self.message = message
        self.span = span
        super().__init__(message if span is None else f"{message}\n\n{excerpt(span)}")


class StructureError(CortexError):
    """The data breaks a rule: a cycle, a missing field, an id out of range."""

    says_where = False
    """Does the message say at which node?"""


class ScheduleError(CortexError):
    """A schedule step refuses to apply here."""


class InternalError(CortexError):
    """A bug in Cortex: an IR that does not verify, or a state that should not exist."""


def excerpt(span: Span) -> str:
    """The source line of `span` with a caret under its columns."""
    stripped = span.text.lstrip()
    indent = len(span.text) - len(stripped)
    start = max(span.column - indent, 0)
    width = max(1, min(span.end, len(span.text.rstrip())) - span.column)
    return f"  {span.file}, line {span.line}:\n    {stripped.rstrip()}\n    {' ' * start}{'^' * width}"


def printable(text: str) -> str:
    """`text` without control characters, which a terminal would obey: they are written as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)

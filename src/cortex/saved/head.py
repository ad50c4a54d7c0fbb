"""A saved model that was opened: its head, and its sections; the description is read only by who needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cortex.errors import ModelError, printable
from cortex.saved.container import unpack
from cortex.saved.seal import SEAL, seal_of
from cortex.saved.source import Source, read_source

ILL_FORMED = (
    *(ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError, OverflowError),
    *(RecursionError, MemoryError),
)
"""What reading a head or a record that is none may raise."""


@dataclass(frozen=True, eq=False)
class File:
    """The head of a file of `size` bytes, whose seal is right."""

    what: str
    size: int
    head: dict[str, Any]
    sections: list[memoryview]
    cortex: str
    code_format: int


def opened(source: Source, verify: bool = False) -> File:
    """A file whose checksums are right; ModelError for anything else. With `verify`, large sections are checked too."""
    what, content = read_source(source)
    head, sections, checksums = unpack(content, what, verify)
    cortex = head.get("cortex") if type(head) is dict else None
    try:
        if type(cortex) is not str or type(head["code_format"]) is not int:
            raise ValueError("head")
        if head.get(SEAL) != seal_of(head) or head["checksums"] != checksums:
            raise ValueError("seal")
    except ILL_FORMED:
        raise not_understood(what, cortex) from None
    return File(what, len(content), head, sections, cortex, head["code_format"])


def not_understood(what: str, cortex: Any) -> ModelError:
    """The checksum is right, so it is what some Cortex wrote."""
    by = f"Cortex {printable(cortex[:40])}" if type(cortex) is str else "something else"
    return ModelError(
        f"{what} was saved by {by}, and this Cortex does not understand its description; load it with that version, or "
        "compile the model and save it again."
    )

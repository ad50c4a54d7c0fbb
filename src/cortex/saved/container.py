"""The bytes of a saved model: a description and sections of raw data, each with a checksum.

    "cortex model\\n"              what it is
    4 bytes, little-endian        version of the format
    32 bytes                      SHA-256 of the length and the description
    8 bytes, little-endian        length of the description
    description                   JSON: {"sections": [[bytes, CRC-32] of each], "contents": ...}
    sections                      one after the other, each begins at a multiple of 64 bytes, zeros between them
    64 bytes                      zeros, so that code may read a little past the last array

Nothing is looked at before its checksum is right, and no size is believed that the file does not bear out. Sections of
more than `LARGE` bytes are the exception: to look at all of them would read what a process may never need.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from typing import Any, TypeAlias

from cortex.errors import ModelError

Buffer: TypeAlias = "bytes | memoryview"

MAGIC = b"cortex model\n"
VERSION = 2
ALIGNMENT = 64
LARGE = 64 << 20
_VERSION, _DIGEST, _LENGTH = 4, 32, 8
_CHECKED = len(MAGIC) + _VERSION + _DIGEST
_START = _CHECKED + _LENGTH


def table_of(sections: Sequence[Buffer]) -> list[list[int]]:
    """The size and the checksum of each section."""
    return [[memoryview(section).nbytes, zlib.crc32(section)] for section in sections]


def pack(contents: Any, sections: Sequence[Buffer]) -> list[Buffer]:
    """The file with these contents, which `json` can write, and sections; in pieces, as it may be large."""
    about = {"sections": table_of(sections), "contents": contents}
    description = json.dumps(about, separators=(",", ":")).encode("ascii")
    length = len(description).to_bytes(_LENGTH, "little")
    rest: list[Buffer] = [length, description]
    end = _START + len(description)
    for section in sections:
        gap = bytes(-end % ALIGNMENT)
        rest += [gap, section]
        end += len(gap) + memoryview(section).nbytes
    digest = hashlib.sha256(length + description).digest()
    return [MAGIC, VERSION.to_bytes(_VERSION, "little"), digest, *rest, bytes(-end % ALIGNMENT + ALIGNMENT)]


def unpack(content: memoryview | bytes, what: str, verify: bool = False) -> tuple[Any, list[memoryview], list[int]]:
    """What `pack` was given, and the checksums of the sections; `what` is the file's name in messages.

    With `verify`, large sections are checked too.
    """
    view = memoryview(content)
    if bytes(view[: len(MAGIC)]) != MAGIC:
        raise ModelError(f"{what} is no saved model; give a file that fast.save(path) wrote.")
    version = int.from_bytes(view[len(MAGIC) : len(MAGIC) + _VERSION], "little")
    if len(view) >= _START and version > VERSION:
        raise ModelError(
            f"{what} has format {version}, and this Cortex reads formats up to {VERSION}; load it with the version of "
            "Cortex that saved it, or save it again with this one."
        )
    if len(view) >= _START and version == 1:
        raise ModelError(f"{what} has format 1 of an earlier Cortex; compile the model and save it again.")
    end = _START + int.from_bytes(view[_CHECKED:_START], "little")
    if len(view) < _START or version < 1 or end > len(view):
        raise damaged(what, "it ends within its description")
    if hashlib.sha256(view[_CHECKED:end]).digest() != bytes(view[_CHECKED - _DIGEST : _CHECKED]):
        raise damaged(what, "its checksum is wrong")
    try:
        about = json.loads(bytes(view[_START:end]))
        table, contents = about["sections"], about["contents"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise damaged(what, "its description cannot be read") from None
    return contents, _sections(view, end, table, what, verify), [checksum for _, checksum in table]


def _sections(view: memoryview, at: int, table: Any, what: str, verify: bool) -> list[memoryview]:
    if type(table) is not list or not all(map(_is_entry, table)):
        raise damaged(what, "its sections have no sizes")
    found = []
    for size, checksum in table:
        gap = -at % ALIGNMENT
        section = view[at + gap : at + gap + size]
        if len(section) != size or any(view[at : at + gap]):
            raise damaged(what, "its sections are not where it says")
        if (size <= LARGE or verify) and zlib.crc32(section) != checksum:
            raise damaged(what, "the checksum of a section is wrong")
        found.append(section)
        at += gap + size
    if at + -at % ALIGNMENT + ALIGNMENT != len(view) or any(view[at:]):
        raise damaged(what, "its sections are not where it says")
    return found


def _is_entry(entry: Any) -> bool:
    return type(entry) is list and len(entry) == 2 and all(type(n) is int and n >= 0 for n in entry)


def damaged(what: str, how: str) -> ModelError:
    """What to say of a file that was cut short or changed since it was written."""
    return ModelError(f"{what} is damaged or incomplete: {how}. Copy it again, or save the model again.")

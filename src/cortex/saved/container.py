"""The bytes of a saved model: a description and sections of raw data, under one checksum.

    "cortex model\\n"              what it is
    4 bytes, little-endian        version of the format
    32 bytes                      SHA-256 of all that follows
    8 bytes, little-endian        length of the description
    description                   JSON: {"sections": [bytes of each], "contents": ...}
    sections                      one after the other, each begins at a multiple of 64 bytes

Nothing is looked at before the checksum is right, and no size is believed that the file does not bear out.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from cortex.errors import ModelError

MAGIC = b"cortex model\n"
VERSION = 1
ALIGNMENT = 64
_VERSION, _DIGEST, _LENGTH = 4, 32, 8
_CHECKED = len(MAGIC) + _VERSION + _DIGEST
_START = _CHECKED + _LENGTH


def pack(contents: Any, sections: list[bytes]) -> list[bytes]:
    """The file with these contents, which `json` can write, and sections; in pieces, as it may be large."""
    about = {"sections": [len(section) for section in sections], "contents": contents}
    description = json.dumps(about, separators=(",", ":")).encode("ascii")
    rest = [len(description).to_bytes(_LENGTH, "little"), description]
    end = _START + len(description)
    for section in sections:
        rest += [bytes(-end % ALIGNMENT), section]
        end += len(rest[-2]) + len(section)
    digest = hashlib.sha256()
    for piece in rest:
        digest.update(piece)
    return [MAGIC, VERSION.to_bytes(_VERSION, "little"), digest.digest(), *rest]


def unpack(content: bytes, what: str) -> tuple[Any, list[memoryview]]:
    """What `pack` was given; `what` is the file's name in messages."""
    if not content.startswith(MAGIC):
        raise ModelError(f"{what} is no saved model; give a file that fast.save(path) wrote.")
    version = int.from_bytes(content[len(MAGIC) : len(MAGIC) + _VERSION], "little")
    if len(content) >= _START and version > VERSION:
        raise ModelError(
            f"{what} has format {version}, and this Cortex reads formats up to {VERSION}; load it with the version of "
            "Cortex that saved it, or save it again with this one."
        )
    digest = hashlib.sha256(memoryview(content)[_CHECKED:]).digest()
    if len(content) < _START or version < 1 or digest != content[_CHECKED - _DIGEST : _CHECKED]:
        raise damaged(what, "its checksum is wrong")
    end = _START + int.from_bytes(content[_CHECKED:_START], "little")
    if end > len(content):
        raise damaged(what, "it ends within its description")
    try:
        about = json.loads(content[_START:end])
        sizes, contents = about["sections"], about["contents"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise damaged(what, "its description cannot be read") from None
    return contents, _sections(content, end, sizes, what)


def _sections(content: bytes, at: int, sizes: Any, what: str) -> list[memoryview]:
    if type(sizes) is not list or any(type(size) is not int or size < 0 for size in sizes):
        raise damaged(what, "its sections have no sizes")
    view, found = memoryview(content), []
    for size in sizes:
        at += -at % ALIGNMENT
        found.append(view[at : at + size])
        at += size
    if at != len(content):
        raise damaged(what, "its sections are not where it says")
    return found


def damaged(what: str, how: str) -> ModelError:
    """What to say of a file that was cut short or changed since it was written."""
    return ModelError(f"{what} is damaged or incomplete: {how}. Copy it again, or save the model again.")

"""What is kept of a compiled model, as bytes.

    "cortex object code 1\\n"      the format
    32 bytes                      SHA-256 of all that follows
    8 bytes, little-endian        length of the description
    description                   JSON: the key, the entry's name, and the nodes of `PARTS` (see encoding)
    the rest                      object code

The program itself is not kept: whoever asks for it (reports, explanations) has it made again by the kept schedule.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from cortex.cache.encoding import decode, encode
from cortex.cost.choose import Considered
from cortex.errors import ScheduleError
from cortex.ra import ir as ra
from cortex.runtime.signature import Signature
from cortex.schedule.schedule import Schedule

MAGIC = b"cortex object code 1\n"
_DIGEST, _LENGTH = 32, 8
_START = len(MAGIC) + _DIGEST


@dataclass(frozen=True)
class Entry:
    """The model after the steps on its recursion, all steps, and code with what is needed to call it."""

    model: ra.Model
    schedule: Schedule
    considered: tuple[Considered, ...]
    signature: Signature
    code: bytes
    name: str  # of the function in the code

    def to_bytes(self, key: str) -> bytes:
        """The file of this entry; ValueError where something in it has no written form."""
        parts = [encode(part) for part in (self.model, self.schedule.steps, self.considered, self.signature)]
        description = json.dumps([key, self.name, *parts], separators=(",", ":")).encode("ascii")
        rest = len(description).to_bytes(_LENGTH, "little") + description + self.code
        return MAGIC + hashlib.sha256(rest).digest() + rest

    @staticmethod
    def from_bytes(content: bytes, key: str) -> Entry | None:
        """What `to_bytes` wrote for `key`; None for anything else, whole or damaged."""
        rest = content[_START:]
        if not content.startswith(MAGIC) or hashlib.sha256(rest).digest() != content[len(MAGIC) : _START]:
            return None
        length = int.from_bytes(rest[:_LENGTH], "little")
        end = _LENGTH + length
        if len(rest) < _LENGTH or end > len(rest):
            return None
        try:
            written, name, *parts = json.loads(rest[_LENGTH:end])
            m, steps, considered, signature = map(decode, parts)
            schedule = Schedule(steps)
        except (ValueError, TypeError, RecursionError, ScheduleError):
            return None
        known = isinstance(m, ra.Model) and isinstance(signature, Signature) and isinstance(considered, tuple)
        if written != key or not isinstance(name, str) or not known:
            return None
        return Entry(m, schedule, considered, signature, rest[end:], name)

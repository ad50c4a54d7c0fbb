"""A digest of a whole description.

Object code is called as the description says: with these arguments, on requests that are linearized so. Nobody can
tell from the code whether that is true, so a description that was changed since it was written is not believed. A
file without a seal is from a Cortex that wrote none, whose code is not used. Seals tell changes, not intent.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

SEAL = "seal"


def seal_of(contents: dict[str, Any]) -> str:
    """The seal that belongs to a description."""
    rest = {name: value for name, value in contents.items() if name != SEAL}
    return hashlib.sha256(json.dumps(rest, separators=(",", ":")).encode("ascii")).hexdigest()

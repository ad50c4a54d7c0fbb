"""Numbers of children that a kind of any arity is for, as JSON: its lists, and the numbers in each.

null                                                        the kind is not of any arity, or needs no check
{"lists": ["children"], "asked": [], "most": 512, "lengths": [[1], [2], [5]]}
{"lists": ["left", "right"], ..., "bits": "..."}    of very many: a bit for each entry of the table, in base 64
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import numpy as np

from cortex.frontend.arity.lengths import MOST, CheckedLengths

MANY = 1024


def encode_checked(checked: CheckedLengths | None) -> Any:
    """The numbers as what `json` writes."""
    if checked is None:
        return None
    about: dict[str, Any] = {"lists": list(checked.lists), "asked": sorted(checked.asked)}
    lengths = np.argwhere(checked.table).tolist()
    about["most"] = checked.most
    if len(lengths) > MANY:
        return {**about, "bits": b64encode(np.packbits(checked.table).tobytes()).decode("ascii")}
    return {**about, "lengths": lengths}


def decode_checked(data: Any) -> CheckedLengths | None:
    """What `encode_checked` was given; ValueError and the like for anything else."""
    if data is None:
        return None
    lists = tuple(map(str, data["lists"]))
    if not 1 <= len(lists) <= 16:
        raise ValueError("lists of children")
    most = data.get("most", 256)  # which it was in files that do not say it
    if type(most) is not int or not 0 < most <= MOST:
        raise ValueError("the largest number of children")
    checked = CheckedLengths(lists, frozenset(map(str, data["asked"])), most=most)
    if "bits" in data:
        bits = np.unpackbits(np.frombuffer(b64decode(data["bits"], validate=True), np.uint8))
        if not 0 <= len(bits) - checked.table.size < 8:
            raise ValueError("numbers of children")
        checked.table[...] = bits[: checked.table.size].reshape(checked.table.shape)
        return checked
    for lengths in data["lengths"]:
        if any(type(n) is not int or n < 0 for n in lengths):
            raise ValueError("numbers of children")
        checked.add(dict(zip(lists, lengths, strict=True)))
    return checked

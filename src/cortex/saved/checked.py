"""Numbers of children that a kind of any arity has been checked for, as JSON: its lists, and the numbers in each.

null                                   the kind is not of any arity, or needs no check
{"lists": ["children"], "asked": [], "lengths": [[1], [2], [5]]}
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cortex.frontend.arity.lengths import CheckedLengths


def encode_checked(checked: CheckedLengths | None) -> Any:
    """The numbers as what `json` writes."""
    if checked is None:
        return None
    lengths = np.argwhere(checked.table).tolist()
    return {"lists": list(checked.lists), "asked": sorted(checked.asked), "lengths": lengths}


def decode_checked(data: Any) -> CheckedLengths | None:
    """What `encode_checked` was given; ValueError and the like for anything else."""
    if data is None:
        return None
    lists = tuple(map(str, data["lists"]))
    if not 1 <= len(lists) <= 16:
        raise ValueError("lists of children")
    checked = CheckedLengths(lists, frozenset(map(str, data["asked"])))
    for lengths in data["lengths"]:
        if any(type(n) is not int or n < 0 for n in lengths):
            raise ValueError("numbers of children")
        checked.add(dict(zip(lists, lengths, strict=True)))
    return checked

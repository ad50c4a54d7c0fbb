"""Numbers of children that a kind of any arity has been checked for, as JSON: its lists, and the numbers in each.

null                                   the kind is not of any arity, or needs no check
{"lists": ["children"], "asked": [], "most": 512, "lengths": [[1], [2], [5]]}
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cortex.frontend.arity.lengths import MOST, CheckedLengths


def encode_checked(checked: CheckedLengths | None) -> Any:
    """The numbers as what `json` writes."""
    if checked is None:
        return None
    lengths = np.argwhere(checked.table).tolist()
    lists, asked = list(checked.lists), sorted(checked.asked)
    return {"lists": lists, "asked": asked, "most": checked.most, "lengths": lengths}


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
    for lengths in data["lengths"]:
        if any(type(n) is not int or n < 0 for n in lengths):
            raise ValueError("numbers of children")
        checked.add(dict(zip(lists, lengths, strict=True)))
    return checked

"""Plain data as JSON: numbers, strings, None, tuples, lists, dictionaries with any such keys, small arrays.

[x, ...]                        a tuple
{"list": [x, ...]}              a list
{"dict": [[key, value], ...]}   a dictionary
{"array": [dtype, shape, text]} an array of integers or truth values, in base 64
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import numpy as np

KINDS_OF_ARRAYS = "biu"


def plain(value: Any) -> Any:
    """`value` as what `json` writes; ValueError where it holds anything else, as functions."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is tuple:
        return [plain(item) for item in value]
    if kind is list:
        return {"list": [plain(item) for item in value]}
    if kind is dict:
        return {"dict": [[plain(key), plain(item)] for key, item in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in KINDS_OF_ARRAYS:
        content = b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
        return {"array": [value.dtype.str, list(value.shape), content]}
    raise ValueError(f"{value!r} is no plain data")


def from_plain(data: Any) -> Any:
    """What `plain` was given; ValueError for anything else."""
    kind = type(data)
    if kind is list:
        return tuple([from_plain(item) for item in data])
    if kind is not dict:
        return data
    match data:
        case {"list": [*items], **rest} if not rest:
            return [from_plain(item) for item in items]
        case {"dict": [*items], **rest} if not rest:
            return {from_plain(key): from_plain(item) for key, item in items}
        case {"array": [str(dtype), [*shape], str(content)], **rest} if not rest:
            found = np.frombuffer(b64decode(content, validate=True), np.dtype(dtype)).reshape(shape)
            if found.dtype.kind not in KINDS_OF_ARRAYS:
                raise ValueError("an array")
            return found.copy()
    raise ValueError("plain data")

"""What calls of a list return that several programs make: arrays with a row for each call, or lists of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def shape_of_rows(column: Any) -> tuple[int, ...]:
    """The shape of what a call gives, or of its rows."""
    shape: tuple[int, ...] = (column[0] if type(column) is list else column).shape[1:]
    return shape


def in_order(parts: Sequence[Any], numbers: Sequence[int], joined: Callable[[Sequence[Any]], Any]) -> Any:
    """What calls of these numbers give by several programs, in the order of the numbers; `joined` concatenates."""
    order = np.argsort(numbers)
    if type(parts[0]) is not list:
        return joined(parts)[order]
    every = [rows for part in parts for rows in part]
    return [every[i] for i in order]

"""Numbers that guards compare with, as a package in C has them."""

from __future__ import annotations

import math
import operator
from typing import Any

import pytest

from cortex.package.decisions import _last_double, _last_integer


@pytest.mark.parametrize("is_float", [True, False])
@pytest.mark.parametrize("fn", ["lt", "le", "gt", "ge"])
def test_bounds_of_packages_are_exact(fn: Any, is_float: bool) -> None:
    """C compares with the last number that is in order, of doubles or of integers of 64 bits."""
    edges = [0, 1, -1, 2**53, 2**63 - 1, -(2**63), 2**63, 10**400, -(10**400)]
    bounds = [*edges, 0.5, -0.5, 1e300, -1e300, math.inf, -math.inf, 2**53 + 1, 5e-324]
    numbers: list[Any] = [0, 1, -1, 2**53, 2**53 + 2, 2**63 - 1, -(2**63)]
    if is_float:
        numbers = [float(n) for n in numbers] + [0.5, -0.5, 5e-324, 1e300, -1e300, math.inf, -math.inf, math.nan]
    for bound in bounds:
        last = _last_double(fn, bound) if is_float else _last_integer(fn, bound)
        for n in numbers:
            got = last is not None and (n <= last if fn in ("lt", "le") else n >= last)
            assert got == getattr(operator, fn)(n, bound), (n, fn, bound, last)

"""Which differences between two computations of the same numbers are rounding, and which are not.

Numbers that were added up in another order differ, and by how much depends on what was computed. `rtol` and `atol` are
those of torch.testing for float32. Where they are exceeded, the computation is run again with its inputs changed in
the last bit: what such changes do to a result is what rounding can do to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

RTOL, ATOL = 1.3e-6, 1e-5
WIDER = 1e-5
"""Of a result's size, where a sum has many terms."""
RUNS = 8
MARGIN = 16
LAST_BIT = 2.0**-23

Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """The result and the element that differ most, and both numbers; `index` is None where shapes differ."""

    name: str
    index: tuple[int, ...] | None
    compiled: Any
    uncompiled: Any

    def text(self, called: str) -> str:
        """`h[3] is 1.0 compiled and 2.0 uncompiled`, where the result is `called` h."""
        if self.index is None:
            return f"{called} has shape {self.compiled} compiled and {self.uncompiled} uncompiled"
        place = "".join(f"[{i}]" for i in self.index)
        return f"{called}{place} is {self.compiled} compiled and {self.uncompiled} uncompiled"


def first_difference(got: Arrays, want: Arrays, again: Callable[[int], Arrays]) -> Difference | None:
    """A difference that is more than rounding, if there is one.

    `again(seed)` computes `want` with inputs changed in the last bit.
    """
    only = next((name for name in (*got, *want) if (name in got) != (name in want)), None)
    if only is not None:
        return Difference(only, None, *(np.shape(x[only]) if only in x else "none" for x in (got, want)))
    suspects = [name for name in want if not _is_close(got[name], want[name])]
    shapes = next((name for name in suspects if np.shape(got[name]) != np.shape(want[name])), None)
    if shapes is not None:
        return Difference(shapes, None, np.shape(got[shapes]), np.shape(want[shapes]))
    if not suspects:
        return None
    noisy: list[Arrays] = []
    with suppress(Exception):  # some code cannot be run with other numbers; what it gave is compared as it is
        noisy += [again(seed) for seed in range(RUNS)]
    for name in suspects:
        found = _worst(name, np.asarray(got[name], float), np.asarray(want[name], float), [n[name] for n in noisy])
        if found is not None:
            return found
    return None


def changed_in_the_last_bit(x: Any, rng: np.random.Generator) -> Any:
    """`x` in double precision, each number larger or smaller by what the last bit of a float32 is worth."""
    x = np.asarray(x, np.float64)
    return x * (1 + LAST_BIT * rng.choice((-1.0, 1.0), x.shape))


def _is_close(got: Any, want: Any) -> bool:
    if np.shape(got) != np.shape(want):
        return False
    return bool(np.isclose(got, want, rtol=RTOL, atol=ATOL, equal_nan=True).all())


def _worst(name: str, got: Any, want: Any, noisy: list[Any]) -> Difference | None:
    with np.errstate(all="ignore"):
        changed = [np.asarray(n, float) for n in noisy]
        noise = np.max([np.abs(n - want) for n in changed], 0) if changed else np.zeros_like(want)
        overflows = np.any([np.isfinite(n) != np.isfinite(want) for n in changed], 0)  # for some inputs, or not
        allowed = ATOL + WIDER * np.abs(want) + MARGIN * np.nan_to_num(noise)
        same = (got == want) | (np.isnan(got) & np.isnan(want)) | overflows
        excess = np.where(same, 0, np.abs(got - want) / allowed)
    excess = np.where(np.isnan(excess), np.inf, excess)
    if not excess.size or excess.max() <= 1:
        return None
    index = tuple(int(i) for i in np.unravel_index(int(excess.argmax()), excess.shape))
    return Difference(name, index, str(np.float32(got[index])), str(np.float32(want[index])))

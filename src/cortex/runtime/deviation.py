"""How far results are from those of another program: what narrow weights cost in precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def worst_difference(got: Array, want: Array) -> float:
    """The greatest difference of two arrays. What is not finite in the one must be the same in the other, else NaN."""
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    differences = np.where(same, 0.0, np.abs(got.astype(np.float64) - np.where(same, 0.0, want)))
    return float(differences.max(initial=0.0)) if np.isfinite(differences).all() else float("nan")


def deviation_text(deviation: Mapping[str, float]) -> str:
    """One line, for a report."""
    states = ", ".join(f"{name} {worst:.1e}" for name, worst in deviation.items())
    return f"weights are narrow: worst deviation from weights in f32, at any node: {states}"

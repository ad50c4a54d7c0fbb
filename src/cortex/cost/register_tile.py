"""What one step of a register tile's sums takes: for recursive models and for primitives alike.

A tile of r rows by v vectors takes, for each step of its sums, the longest of

    r * sums * v multiply-adds        weights * v loads and r broadcasts        one link of the chain of sums
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from cortex.cost.machine import Machine

Height = TypeVar("Height", float, npt.NDArray[np.float64])


def step_limits(
    m: Machine, height: Height, vectors: int, sums: int = 1, weights: int = 1, broadcasts: int = 1
) -> tuple[Height, Height, float]:
    """Nanoseconds that each of the three takes, with all data in the nearest cache; the longest counts.

    `sums` sums per element of the tile are fed by `weights` vectors of weights per vector of columns, and by
    `broadcasts` single elements per row. Heights may be an array of them.
    """
    return height * (sums * vectors * m.fma), height * (broadcasts * m.broadcast) + weights * vectors * m.load, m.chain

"""Make packed buffers from params, as a function's `Packing`s say. Done once, when weights are loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cortex.errors import InternalError
from cortex.ilir.ir import Packing, Storage
from cortex.ilir.show import show_expr
from cortex.ilir.storage_types import as_stored, scales
from cortex.ir.scalar import Binary, Expr, Int, Select, Var

Array = npt.NDArray[Any]

_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "floordiv": np.floor_divide, "mod": np.mod,
    "min": np.minimum, "max": np.maximum, "and": np.logical_and, "or": np.logical_or,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip


def pack(p: Packing, params: Mapping[str, Array], dtype: Storage = "f32") -> Array:
    """The packed array of the packing's shape, zero beyond the last column and step, as it lies in memory.

    "f32" leaves the type of the params.
    """
    values = _panels(p, params)
    whose = " or ".join(dict.fromkeys(repr(g.param) for g in p.gates))
    match p.part:
        case "scales_i8":
            return scales(values, "i8", whose)
        case "scales_i16":
            return scales(values, "i16", whose)
        case _:
            return side_by_side(as_stored(values, dtype, whose), p.steps)


def side_by_side(packed: Array, steps: int) -> Array:
    """Panels (..., depth, gates, width) with `steps` steps of the reduction next to each other in a last axis."""
    if steps == 1:
        return packed
    *before, depth, gates, width = packed.shape
    rounded: Array = np.zeros((*before, -(-depth // steps) * steps, gates, width), packed.dtype)
    rounded[..., :depth, :, :] = packed
    return np.moveaxis(rounded.reshape(*before, -1, steps, gates, width), -3, -1)


def _panels(p: Packing, params: Mapping[str, Array]) -> Array:
    panels = -(-p.columns // p.width)
    dtype = np.result_type(*(params[g.param] for g in p.gates))
    out: Array = np.zeros((*p.outer, panels, p.depth, len(p.gates), p.width), dtype)
    names = [*(f"o{i}" for i in range(len(p.outer))), "j", "k"]
    extents = (*p.outer, p.columns, p.depth)
    grid = dict(zip(names, np.ogrid[tuple(slice(n) for n in extents)], strict=True))
    for gate, source in enumerate(p.gates):
        param = params[source.param]
        index = tuple(np.broadcast_to(_values(e, grid), extents) for e in source.index)
        for i, limit in zip(index, param.shape, strict=True):
            if i.size and not 0 <= i.min() <= i.max() < limit:
                raise InternalError(f"packing of {p.buffer!r} reads {source.param!r} out of bounds")
        columns = np.zeros((*p.outer, panels * p.width, p.depth), dtype)
        columns[..., : p.columns, :] = param[index]
        out[..., gate, :] = columns.reshape(*p.outer, panels, p.width, p.depth).swapaxes(-1, -2)
    return out


def _values(e: Expr, grid: Mapping[str, Array]) -> Array:
    match e:
        case Int(value):
            return np.asarray(value)
        case Var(name):
            return grid[name]
        case Binary(fn, x, y) if fn in _BINARY:
            values: Array = _BINARY[fn](_values(x, grid), _values(y, grid))
            return values
        case Select(cond, x, y):
            return np.where(_values(cond, grid), _values(x, grid), _values(y, grid))
        case _:
            raise InternalError(f"the index `{show_expr(e)}` of a packing is not arithmetic on its variables")

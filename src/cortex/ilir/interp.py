"""Run any ILIR program, and count what it does.

The interpreter defines the meaning of a program up to rounding: it computes in double precision. Weights are
rounded as they are stored, and so is what the program stores in narrow buffers. Loops run in
order whatever their kind. Memory nobody wrote holds NaN, so a read of it shows in the result; an access outside a
buffer (rows include their padding) is an InternalError that names the element and the loop variables.

    r = run(f, {"num_nodes": 5, ...}, {"child_left": ..., ...}, {"W": ..., ...})
    r.buffers["h"], r.counts.flops["add"]
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from cortex.errors import InternalError
from cortex.ilir.count import Counts
from cortex.ilir.ir import Accumulate, Buffer, Func, Packing, Scope, Storage, Store, value_type
from cortex.ilir.pack import pack
from cortex.ilir.show import show_expr
from cortex.ilir.storage_types import as_stored, widened
from cortex.ilir.to_python import extents, to_python
from cortex.ilir.verify import READ_ONLY
from cortex.ir.node import walk
from cortex.ir.scalar import DType, Expr, Index, Int, Load
from cortex.ir.simplify import simplify, substitute

Array = npt.NDArray[Any]

_CODES: dict[DType, str] = {"f32": "d", "i64": "q", "bool": "b"}
_DTYPES: dict[DType, npt.DTypeLike] = {"f32": np.float64, "i64": np.int64, "bool": np.int8}
_UNWRITTEN: dict[DType, float] = {"f32": math.nan, "i64": -(2**63), "bool": 0}


@dataclass(frozen=True)
class Result:
    """What a run left in its state and scratch buffers (without padding), and what it did."""

    buffers: dict[str, Array]
    counts: Counts


def run(
    f: Func,
    sizes: Mapping[str, int],
    index: Mapping[str, Array],
    buffers: Mapping[str, Array],
    *,
    check_bounds: bool = True,
) -> Result:
    """Run a verified function.

    `index` gives the arrays of the index functions, `buffers` the params and float fields; packed buffers are made
    from the params. Arrays the body does not read may be missing.
    """
    used = set(_used(f))
    functions = [
        _index_values(i.name, _extent(i.extent, sizes), index) if i.name in used else [] for i in f.index_functions
    ]
    shapes = {b.name: tuple(_extent(e, sizes) for e in b.shape) for b in f.buffers}
    packings = [p for p in f.packings if p.buffer in used]
    used |= {g.param for p in packings for g in p.gates}
    inputs = [b for b in f.buffers if b.scope in READ_ONLY and b.scope is not Scope.PACKED and b.name in used]
    given = {b.name: _given(b, shapes[b.name], buffers) for b in inputs}
    dtypes = {b.name: b.dtype for b in f.buffers}
    given |= {p.buffer: _packed(p, given, dtypes[p.buffer]) for p in packings}
    memory = {b.name: _allocate(b, sizes, given.get(b.name)) for b in f.buffers}
    function, counted = _translated(f, check_bounds)
    try:
        runs = function(*(sizes[s] for s in f.sizes), *functions, *memory.values())
    except ZeroDivisionError as error:  # of integers: a quotient of floats is infinite or NaN
        raise InternalError(f"{f.name!r} divides an integer by zero") from error
    counts = Counts()
    for n, once in zip(runs, counted, strict=True):
        counts.add(once, n)
    results = [b for b in f.buffers if b.scope in (Scope.STATE, Scope.SCRATCH)]
    return Result({b.name: _contents(b, memory[b.name], shapes[b.name], sizes) for b in results}, counts)


@lru_cache(maxsize=8)
def _translated(f: Func, check_bounds: bool) -> tuple[Callable[..., list[int]], tuple[Counts, ...]]:
    """The program as a Python function, and what its counters count. Programs run many times in a row."""
    program = to_python(f, check_bounds)
    namespace = dict(_FUNCTIONS)
    exec(compile(program.source, f"<ilir {f.name}>", "exec"), namespace)
    return namespace["run"], program.counts


@lru_cache(maxsize=8)
def _used(f: Func) -> frozenset[str]:
    """The index functions and buffers that the body names."""
    accesses = (n for s in f.body for n in walk(s) if isinstance(n, Index | Load | Store | Accumulate))
    return frozenset(n.fn if isinstance(n, Index) else n.buffer for n in accesses)


def _extent(e: Expr, sizes: Mapping[str, int]) -> int:
    value = simplify(substitute(e, {name: Int(int(n)) for name, n in sizes.items()}))
    if not isinstance(value, Int):
        raise InternalError(f"the extent `{show_expr(e)}` needs a size that was not given")
    return value.value


def _index_values(name: str, extent: int, index: Mapping[str, Array]) -> list[int]:
    if name not in index:
        raise InternalError(f"no array was given for index function {name!r}")
    values = np.asarray(index[name])
    if values.ndim != 1 or len(values) < extent:
        raise InternalError(f"index function {name!r} needs {extent} values, its array has shape {values.shape}")
    return [int(x) for x in values[:extent].tolist()]


def _given(b: Buffer, shape: tuple[int, ...], given: Mapping[str, Array]) -> Array:
    if b.name not in given:
        raise InternalError(f"no array was given for {b.scope.value} buffer {b.name!r}")
    value = np.asarray(given[b.name])
    if value.shape != shape:
        raise InternalError(f"{b.scope.value} buffer {b.name!r} has shape {shape}, the array given has {value.shape}")
    return value


def _packed(p: Packing, params: Mapping[str, Array], dtype: Storage) -> Array:
    """The values that a packed buffer holds: what its type has room for."""
    return widened(pack(p, params, dtype), dtype)


def _allocate(b: Buffer, sizes: Mapping[str, int], value: Array | None) -> array[Any]:
    """The flat memory of a buffer: `value`, and what marks an unwritten element where it says nothing."""
    padded = tuple(_extent(e, sizes) for e in extents(b))
    dtype = value_type(b.dtype)
    memory: Array = np.full(padded, _UNWRITTEN[dtype], _DTYPES[dtype])
    if value is not None:
        memory[tuple(slice(n) for n in value.shape)] = value
    return array(_CODES[dtype], memory.tobytes())


def _contents(b: Buffer, memory: array[Any], shape: tuple[int, ...], sizes: Mapping[str, int]) -> Array:
    padded = tuple(_extent(e, sizes) for e in extents(b))
    dtype = _DTYPES[value_type(b.dtype)]
    whole = np.frombuffer(memory, dtype) if memory else np.zeros(0, dtype)
    return whole.reshape(padded)[tuple(slice(n) for n in shape)].copy()


def _out_of_bounds(name: str, index: tuple[int, ...], shape: tuple[int, ...], where: dict[str, int]) -> NoReturn:
    element = ", ".join(map(str, index))
    loops = ", ".join(f"{var} = {value}" for var, value in where.items()) or "no loop"
    raise InternalError(f"{name}[{element}] is out of bounds of {shape}, at {loops}")


def _div(x: float, y: float) -> float:
    if y:
        return x / y
    if x == 0 or x != x:
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _log(x: float) -> float:
    if x > 0:
        return math.log(x)
    return -math.inf if x == 0 else math.nan


def _sqrt(x: float) -> float:
    return math.nan if x < 0 else math.sqrt(x)


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + _exp(-x))


def _round(x: float) -> float:
    return math.copysign(round(x), x) if math.isfinite(x) else x


def _ldexp(x: float, n: float) -> float:
    if not math.isfinite(n):
        return math.nan if n != n else x * (math.inf if n > 0 else 0.0)
    try:
        return math.ldexp(x, int(n))
    except OverflowError:
        return math.copysign(math.inf, x)


def _min(x: float, y: float) -> float:
    return x if x < y or x != x else y


def _max(x: float, y: float) -> float:
    return x if x > y or x != x else y


def _to_bf16(x: float) -> float:
    return float(widened(as_stored(np.array(x), "bf16", ""), "bf16"))


def _to_i16(x: float) -> float:
    return 0.0 if x != x else float(max(-32768, min(32767, round(max(-1e6, min(1e6, x))))))


def _truncate(x: float) -> int:
    """f32 -> i64; what is not an integer's size has no meaning and gives the most negative one, as x86 does."""
    return int(x) if math.isfinite(x) else -(2**63)


_FUNCTIONS: dict[str, Any] = {
    "out_of_bounds": _out_of_bounds,
    "float_div": _div,
    "float_exp": _exp,
    "float_log": _log,
    "float_sqrt": _sqrt,
    "float_tanh": math.tanh,
    "float_sigmoid": _sigmoid,
    "float_round": _round,
    "float_ldexp": _ldexp,
    "float_copysign": math.copysign,
    "float_min": _min,
    "float_max": _max,
    "to_bf16": _to_bf16,
    "to_i16": _to_i16,
    "truncate": _truncate,
}

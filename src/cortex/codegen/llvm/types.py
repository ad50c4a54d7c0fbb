"""Values of the generated code and their spelling in LLVM's textual IR."""

from __future__ import annotations

import math
import struct
from functools import lru_cache
from typing import NamedTuple

from cortex.ir.scalar import DType

_SCALAR = {
    "f32": "float", "i64": "i64", "bool": "i1", "i32": "i32", "i16": "i16", "f16": "half", "bf16": "bfloat", "i8": "i8",
}  # fmt: skip
_SUFFIX = {name: {"float": "f32", "half": "f16", "bfloat": "bf16"}.get(text, text) for name, text in _SCALAR.items()}


class Value(NamedTuple):
    """What an expression evaluates to: one value, or one per lane of the surrounding vectorized loop.

    For f32 and bool, `text` is an LLVM operand of `lanes` elements (1: a scalar, the same in all lanes). An i64
    of one element is kept as `text` + `offset` + `step` * lane, with an empty `text` for a constant: so the
    stride of an address in the lane is known without an analysis, and constant offsets end up in the address of
    the instruction. An i64 that is not of this form is a vector of `lanes` elements, like any other.
    """

    text: str
    dtype: DType
    lanes: int = 1
    step: int = 0
    offset: int = 0

    @property
    def constant(self) -> int | None:
        """The value of an integer that is known here and the same in all lanes."""
        return self.offset if not self.text and not self.step else None

    @property
    def uniform(self) -> bool:
        """Whether all lanes have the same value."""
        return self.lanes == 1 and self.step == 0


@lru_cache(maxsize=4096)
def integer(value: int) -> Value:
    """A constant i64."""
    return Value("", "i64", 1, 0, value)


def float_text(value: float) -> str:
    """A single-precision constant: LLVM spells it as the bits of the equal double."""
    return _float_text(value, math.copysign(1.0, value))  # 0.0 and -0.0 are one key of a cache


@lru_cache(maxsize=4096)
def _float_text(value: float, sign: float) -> str:
    if value != value:
        return "0x7FF8000000000000"
    try:
        (single,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        single = float("inf") if value > 0 else float("-inf")
    return f"0x{struct.unpack('<Q', struct.pack('<d', single))[0]:016X}"


@lru_cache(maxsize=256)
def type_text(dtype: str, lanes: int = 1) -> str:
    """The LLVM type of `lanes` elements of `dtype` (or of the storage types i32, i16, f16, bf16 and i8)."""
    return _SCALAR[dtype] if lanes == 1 else f"<{lanes} x {_SCALAR[dtype]}>"


@lru_cache(maxsize=256)
def suffix(dtype: str, lanes: int = 1) -> str:
    """How intrinsics spell a type at the end of their name: `f32`, `v16f32`."""
    return _SUFFIX[dtype] if lanes == 1 else f"v{lanes}{_SUFFIX[dtype]}"


def constant_vector(dtype: str, items: list[int]) -> str:
    """A vector of integer constants."""
    ty = _SCALAR[dtype]
    return "<" + ", ".join(f"{ty} {i}" for i in items) + ">"

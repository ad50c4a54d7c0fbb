"""Narrow numbers from memory as f32, on `n` lanes at once. Every one of them is an f32 exactly."""

from __future__ import annotations

from cortex.codegen.llvm import floats
from cortex.codegen.llvm.types import Value, type_text
from cortex.codegen.llvm.writer import Writer

_HALF_TO_SINGLE = 2.0**112  # the difference of the exponents' biases
_HALF_INFINITY = 0x7C00 << 13
_SINGLE_EXPONENT = 0x7F800000


def to_f32(w: Writer, storage: str, n: int, x: str) -> str:
    """The f32 equal to `x`, of the LLVM type `storage`."""
    f32, i32 = type_text("f32", n), type_text("i32", n)
    match storage:
        case "half" if w.target.has("f16c") or w.target.has("neon"):
            return w.pure(f"fpext {type_text('f16', n)} {x} to {f32}")
        case "bfloat":
            return w.pure(f"fpext {type_text('bf16', n)} {x} to {f32}")
        case "half":
            return _half_by_arithmetic(w, n, x)
        case "i8" | "i16" | "i32":
            return w.pure(f"sitofp {i32} {to_i32(w, storage, n, x)} to {f32}")
        case _:
            return x


def to_i32(w: Writer, storage: str, n: int, x: str) -> str:
    """An integer of up to 32 bits as one of 32."""
    return x if storage == "i32" else w.pure(f"sext {type_text(storage, n)} {x} to {type_text('i32', n)}")


def half(w: Writer, n: int, word: str, which: Value) -> str:
    """The f32 whose upper 16 bits are the upper (`which` 1) or the lower half (0) of a word of 32 bits.

    One operation where it is known which, as it is in an unrolled sum.
    """
    i32 = type_text("i32", n)
    if which.constant == 1:
        return floats.from_bits(w, n, w.pure(f"and {i32} {word}, {floats.integers(-65536, n)}"))
    if which.constant is None:
        wide = type_text("i64", n)
        bits = w.pure(f"shl {wide} {w.vector(which, n)}, {'4' if n == 1 else 'splat (i64 4)'}")
        word = w.pure(f"lshr {i32} {word}, {w.pure(f'trunc {wide} {bits} to {i32}')}")
    return floats.from_bits(w, n, w.pure(f"shl {i32} {word}, {floats.integers(16, n)}"))


def _half_by_arithmetic(w: Writer, n: int, x: str) -> str:
    """Half precision where there is no instruction for it, and LLVM would call a library.

    The bits below the sign, moved to their place in an f32, are the number but for the bias of the exponent: one
    exact product puts that right, for numbers without a leading one too. Infinities and NaN get the largest exponent.
    """
    i32 = type_text("i32", n)
    half = w.pure(f"bitcast {type_text('f16', n)} {x} to {type_text('i16', n)}")
    wide = w.pure(f"zext {type_text('i16', n)} {half} to {i32}")
    moved = w.pure(f"shl {i32} {w.pure(f'and {i32} {wide}, {floats.integers(0x7FFF, n)}')}, {floats.integers(13, n)}")
    scale = floats.constant(_HALF_TO_SINGLE, n)
    finite = floats.bits(w, n, floats.operation(w, "fmul", n, floats.from_bits(w, n, moved), scale))
    large = w.pure(f"or {i32} {moved}, {floats.integers(_SINGLE_EXPONENT, n)}")
    is_large = w.pure(f"icmp uge {i32} {moved}, {floats.integers(_HALF_INFINITY, n)}")
    size = w.pure(f"select {type_text('bool', n)} {is_large}, {i32} {large}, {i32} {finite}")
    sign = w.pure(f"shl {i32} {w.pure(f'and {i32} {wide}, {floats.integers(0x8000, n)}')}, {floats.integers(16, n)}")
    return floats.from_bits(w, n, w.pure(f"or {i32} {size}, {sign}"))

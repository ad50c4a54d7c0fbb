"""f32 rounded to the narrow numbers that memory holds, on `n` lanes at once."""

from __future__ import annotations

from cortex.codegen.llvm import floats
from cortex.codegen.llvm.types import type_text
from cortex.codegen.llvm.writer import Writer


def to_bf16(w: Writer, n: int, x: str) -> str:
    """The bf16 nearest to `x`, ties to even.

    Where there is no instruction for it LLVM would call a library: there, half of the last place that stays is added to
    the bits, and what is below it dropped. A NaN is made quiet, lest that made an infinity of it.
    """
    f32, i32, bf16 = type_text("f32", n), type_text("i32", n), type_text("bf16", n)
    if w.target.has("avx512bf16") and w.target.has("avx512vl"):
        return w.pure(f"fptrunc {f32} {x} to {bf16}")
    bits = floats.bits(w, n, x)
    odd = w.pure(f"and {i32} {w.pure(f'lshr {i32} {bits}, {floats.integers(16, n)}')}, {floats.integers(1, n)}")
    nearly_half = w.pure(f"add {i32} {bits}, {floats.integers(0x7FFF, n)}")
    up = w.pure(f"add {i32} {nearly_half}, {odd}")
    quiet = w.pure(f"or {i32} {bits}, {floats.integers(0x400000, n)}")
    is_nan = w.pure(f"fcmp uno {f32} {x}, {x}")
    chosen = w.pure(f"select {type_text('bool', n)} {is_nan}, {i32} {quiet}, {i32} {up}")
    upper = w.pure(f"lshr {i32} {chosen}, {floats.integers(16, n)}")
    i16 = type_text("i16", n)
    return w.pure(f"bitcast {i16} {w.pure(f'trunc {i32} {upper} to {i16}')} to {bf16}")


def to_integer(w: Writer, storage: str, n: int, x: str) -> str:
    """The integer nearest to `x`, ties to even; the nearest there is, where `storage` does not reach, and 0 for NaN."""
    lanes = "" if n == 1 else f"v{n}"
    operand = f"{type_text('f32', n)} {floats.round_even(w, n, x)}"
    return w.pure(w.call(f"llvm.fptosi.sat.{lanes}{storage}.{lanes}f32", type_text(storage, n), operand))

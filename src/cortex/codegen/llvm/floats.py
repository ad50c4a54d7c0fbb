"""Single-precision operations as LLVM instructions, on `n` lanes at once.

Everything is IEEE arithmetic in the order written: no fast-math flag is ever set, and nothing becomes a call
into a math library.
"""

from __future__ import annotations

from typing import Literal

from cortex.codegen.llvm.types import Value, float_text, suffix, type_text
from cortex.codegen.llvm.writer import Writer

_INTEGER_ABOVE = 2.0**23  # every f32 of this size or more is an integer
_SHIFTER = 1.5 * 2.0**23  # x + _SHIFTER has the integer nearest x in its low mantissa bits, for |x| < 2**22
_ONE_BITS = 0x3F800000


def constant(value: float, n: int) -> str:
    """The operand of a constant in all lanes."""
    return float_text(value) if n == 1 else f"splat (float {float_text(value)})"


def operation(w: Writer, op: str, n: int, x: str, y: str) -> str:
    """`x op y` for fadd, fsub, fmul, fdiv."""
    return w.pure(f"{op} {type_text('f32', n)} {x}, {y}")


def fused(w: Writer, n: int, x: str, y: str, z: str) -> str:
    """x * y + z, rounded once where the target can."""
    if w.target.has_fma:
        return intrinsic(w, "fma", n, x, y, z)
    return operation(w, "fadd", n, operation(w, "fmul", n, x, y), z)


def intrinsic(w: Writer, name: str, n: int, *operands: str) -> str:
    """An LLVM intrinsic of f32 operands and result."""
    ty = type_text("f32", n)
    return w.pure(w.call(f"llvm.{name}.{suffix('f32', n)}", ty, *(f"{ty} {o}" for o in operands)))


def extremum(w: Writer, fn: Literal["min", "max"], n: int, x: Value, y: Value) -> str:
    """The greater or the smaller, NaN if either is NaN.

    `a > b ? a : b` is one machine instruction and gives b when either is NaN. With a constant as `a` that is
    all; else a NaN in `a` is put back.
    """
    if is_number(y):
        x, y = y, x
    ty, a, b = type_text("f32", n), w.vector(x, n), w.vector(y, n)
    test = w.pure(f"fcmp {'ogt' if fn == 'max' else 'olt'} {ty} {a}, {b}")
    chosen = w.pure(f"select {type_text('bool', n)} {test}, {ty} {a}, {ty} {b}")
    if is_number(x):
        return chosen
    unordered = w.pure(f"fcmp uno {ty} {a}, {a}")
    return w.pure(f"select {type_text('bool', n)} {unordered}, {ty} {a}, {ty} {chosen}")


def is_number(v: Value) -> bool:
    """Whether an f32 value is a constant other than NaN."""
    return v.text.startswith("0x") and v.text != float_text(float("nan"))


def round_even(w: Writer, n: int, x: str) -> str:
    """To the nearest integer, ties to even.

    SSE2 has no instruction for this and LLVM would call a library: there, adding and subtracting 2**23 rounds.
    """
    if not w.target.triple.startswith("x86_64") or w.target.has("sse4.1"):
        return intrinsic(w, "roundeven", n, x)
    ty, size = type_text("f32", n), intrinsic(w, "fabs", n, x)
    large = constant(_INTEGER_ABOVE, n)
    rounded = operation(w, "fsub", n, operation(w, "fadd", n, size, large), large)
    small = w.pure(f"fcmp olt {ty} {size}, {large}")
    signed = intrinsic(w, "copysign", n, rounded, x)
    return w.pure(f"select {type_text('bool', n)} {small}, {ty} {signed}, {ty} {x}")


def scale(w: Writer, n: int, x: str, power: str) -> str:
    """x * 2**power for an integer `power` in -252..254, rounded once if x is normal; NaN if x is NaN.

    AVX-512 has an instruction for it. Elsewhere, 2**power is made by writing the exponent field, in two halves,
    so that results that overflow or are denormal come out right; the first product is exact.
    """
    if w.target.has("avx512f") and n in (4, 8, 16) and w.target.has("avx512vl"):
        ty = type_text("f32", n)
        # The mask is all ones, so the third operand is never taken; the widest form also has a rounding mode.
        mask = ("i16 -1", "i32 4") if n == 16 else ("i8 -1",)
        operands = (f"{ty} {x}", f"{ty} {power}", f"{ty} {x}", *mask)
        return w.pure(w.call(f"llvm.x86.avx512.mask.scalef.ps.{32 * n}", ty, *operands))
    shifter = constant(_SHIFTER, n)
    shifted = fused(w, n, power, constant(0.5, n), shifter)
    half = operation(w, "fsub", n, shifted, shifter)
    rest = operation(w, "fadd", n, operation(w, "fsub", n, power, half), shifter)
    return operation(w, "fmul", n, operation(w, "fmul", n, x, _power(w, n, shifted)), _power(w, n, rest))


def _power(w: Writer, n: int, shifted: str) -> str:
    """2**k from k + _SHIFTER: the low bits of the mantissa, moved to the exponent field."""
    exponent = w.pure(f"shl {type_text('i32', n)} {bits(w, n, shifted)}, {integers(23, n)}")
    return from_bits(w, n, w.pure(f"add {type_text('i32', n)} {exponent}, {integers(_ONE_BITS, n)}"))


def bits(w: Writer, n: int, x: str) -> str:
    """The bits of f32 lanes as i32 lanes."""
    return w.pure(f"bitcast {type_text('f32', n)} {x} to {type_text('i32', n)}")


def from_bits(w: Writer, n: int, x: str) -> str:
    """The f32 lanes with the given bits."""
    return w.pure(f"bitcast {type_text('i32', n)} {x} to {type_text('f32', n)}")


def integers(value: int, n: int) -> str:
    """The operand of an i32 constant in all lanes."""
    return str(value) if n == 1 else f"splat (i32 {value})"

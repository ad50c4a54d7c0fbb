"""The natural logarithm.

It is written here and not by `expand_math`, because it takes the exponent out of the bits of its argument and
ILIR has no operations on bits.

x = 2**e * m with sqrt(1/2) <= m < sqrt(2), and log x = e * log 2 + log(1 + f) with f = m - 1, where log(1 + f) =
f - f**2/2 + f**3 * P(f). P is Cephes' polynomial of degree 8. Denormals are scaled first. Negative arguments give
NaN, zero gives -inf, and +inf and NaN give themselves.

Error at most 1 ULP (measured: 0.79, over all exponents, with and without fused multiply-add).
"""

from __future__ import annotations

from cortex.codegen.llvm.floats import bits, constant, from_bits, fused, integers, operation
from cortex.codegen.llvm.types import type_text
from cortex.codegen.llvm.writer import Writer

_SMALLEST_NORMAL = 2.0**-126
_SQRT_HALF_BITS = 0x3F3504F3
_LN2_HIGH = 0.693359375
_LN2_LOW = -2.12194440e-4
_POLYNOMIAL = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip


def natural_log(w: Writer, n: int, x: str) -> str:
    """log(x) in `n` lanes."""
    f32, i32, i1 = type_text("f32", n), type_text("i32", n), type_text("bool", n)

    def choose(test: str, a: str, b: str) -> str:
        return w.pure(f"select {i1} {test}, {f32} {a}, {f32} {b}")

    denormal = w.pure(f"fcmp olt {f32} {x}, {constant(_SMALLEST_NORMAL, n)}")
    normal = choose(denormal, operation(w, "fmul", n, x, constant(2.0**23, n)), x)
    # Counting from the bits of sqrt(1/2) puts the boundary between two exponents there instead of at 1.
    above = w.pure(f"sub {i32} {bits(w, n, normal)}, {integers(_SQRT_HALF_BITS, n)}")
    exponent = w.pure(f"ashr {i32} {above}, {integers(23, n)}")
    low = w.pure(f"and {i32} {above}, {integers(0x007FFFFF, n)}")
    mantissa = from_bits(w, n, w.pure(f"add {i32} {low}, {integers(_SQRT_HALF_BITS, n)}"))
    e = w.pure(f"sitofp {i32} {exponent} to {f32}")
    e = choose(denormal, operation(w, "fsub", n, e, constant(23.0, n)), e)

    f = operation(w, "fsub", n, mantissa, constant(1.0, n))
    square = operation(w, "fmul", n, f, f)
    p = constant(_POLYNOMIAL[0], n)
    for c in _POLYNOMIAL[1:]:
        p = fused(w, n, p, f, constant(c, n))
    p = operation(w, "fmul", n, operation(w, "fmul", n, p, f), square)
    p = fused(w, n, e, constant(_LN2_LOW, n), p)
    p = fused(w, n, square, constant(-0.5, n), p)
    result = fused(w, n, e, constant(_LN2_HIGH, n), operation(w, "fadd", n, f, p))

    infinite = w.pure(f"fcmp oeq {f32} {x}, {constant(float('inf'), n)}")
    positive = w.pure(f"fcmp ogt {f32} {x}, {constant(0.0, n)}")
    zero = w.pure(f"fcmp oeq {f32} {x}, {constant(0.0, n)}")
    outside = choose(zero, constant(float("-inf"), n), constant(float("nan"), n))
    return choose(infinite, x, choose(positive, result, outside))

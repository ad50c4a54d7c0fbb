"""Sums of products: pairs of narrow numbers by one instruction where the target has it, else one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cortex.codegen.llvm import floats, memory
from cortex.codegen.llvm.expressions import evaluate
from cortex.codegen.llvm.types import Value, type_text
from cortex.codegen.llvm.writer import Writer
from cortex.errors import InternalError
from cortex.ir.scalar import Binary, Expr, Load

_WIDTHS = (4, 8, 16)
_MULTIPLY_WORDS = {4: ("sse2", "sse2.pmadd.wd"), 8: ("avx2", "avx2.pmadd.wd"), 16: ("avx512bw", "avx512.pmaddw.d.512")}


class Term(NamedTuple):
    """A product that is summed."""

    x: Expr
    y: Expr


def terms_of(e: Expr) -> tuple[Term, ...] | None:
    """The products that `e` is a sum of, in order; None if it is something else."""
    match e:
        case Binary("mul", x, y):
            return (Term(x, y),)
        case Binary("add", x, y):
            first, second = terms_of(x), terms_of(y)
            return None if first is None or second is None else (*first, *second)
        case _:
            return None


def add_products(w: Writer, total: Value, terms: tuple[Term, ...]) -> Value:
    """`total` and all products, one after the other; two of bf16 that lie side by side are added at once."""
    for term, next_to_it in _pairs(terms):
        words = None if next_to_it is None else _bf16(w, term, next_to_it)
        if words is not None:
            total = _dot_bf16(w, total, *words)
            continue
        for each in (term,) if next_to_it is None else (term, next_to_it):
            a, b = evaluate(w, each.x), evaluate(w, each.y)
            n = max(a.lanes, b.lanes, total.lanes)
            total = Value(floats.fused(w, n, w.vector(a, n), w.vector(b, n), w.vector(total, n)), "f32", n)
    return total


def add_integers(w: Writer, total: str, terms: tuple[Term, ...]) -> str:
    """The same for products of integers of 8 and 16 bits, and a `total` of 32 bits."""
    i32 = type_text("i32", w.lanes)
    for term, next_to_it in _pairs(terms):
        words = None if next_to_it is None else _i16(w, term, next_to_it)
        if words is not None:
            total = _dot_i16(w, total, *words)
            continue
        for each in (term,) if next_to_it is None else (term, next_to_it):
            product = w.pure(f"mul {i32} {_integer(w, each.x)}, {_integer(w, each.y)}")
            total = w.pure(f"add {i32} {total}, {product}")
    return total


def _pairs(terms: tuple[Term, ...]) -> Iterator[tuple[Term, Term | None]]:
    """Each term with the next one of the same two buffers: steps of one sum are told by these."""
    left = list(terms)
    while left:
        first = left.pop(0)
        other = next((t for t in left if _buffers(t) is not None and _buffers(t) == _buffers(first)), None)
        if other is not None:
            left.remove(other)
        yield first, other


def _buffers(t: Term) -> tuple[str, str] | None:
    return (t.x.buffer, t.y.buffer) if isinstance(t.x, Load) and isinstance(t.y, Load) else None


def _bf16(w: Writer, first: Term, second: Term) -> tuple[str, str] | None:
    """Vectors of bf16, two for each lane, whose products are those of two terms, if there is an instruction for it."""
    if not w.target.has("avx512bf16") or w.lanes not in _WIDTHS:
        return None
    x, y = _neighbours(w, first.x, second.x, "bf16"), _neighbours(w, first.y, second.y, "bf16")
    return None if x is None or y is None else (x, y)


def _i16(w: Writer, first: Term, second: Term) -> tuple[str, str] | None:
    """The same for integers, widened to 16 bits."""
    if w.lanes not in _WIDTHS or not w.target.has(_MULTIPLY_WORDS[w.lanes][0]):
        return None
    x, y = _neighbours(w, first.x, second.x, "i16"), _neighbours(w, first.y, second.y, "i16")
    return None if x is None or y is None else (x, y)


def _neighbours(w: Writer, low: Expr, high: Expr, dtype: str) -> str | None:
    """In each lane `low` and `high`, as two numbers of 16 bits, if that is how they lie in memory."""
    if not isinstance(low, Load) or not isinstance(high, Load):
        return None
    array, twice = w.arrays[low.buffer], type_text(dtype, 2 * w.lanes)
    first, second = ([evaluate(w, i) for i in load.index] for load in (low, high))
    if array.in_halves:
        at, other = memory.position(w, array, first[:-1]), memory.position(w, array, second[:-1])
        if at != other or (first[-1].constant, second[-1].constant) != (0, 1):
            return None
    else:
        at, other = memory.position(w, array, first), memory.position(w, array, second)
        if at._replace(offset=at.offset + 1) != other:
            return None
        if array.storage in ("i8", "i16") and at.step == 2:
            numbers = memory.load_neighbours(w, array, at)
            return numbers if array.storage == "i16" else w.pure(f"sext <{2 * w.lanes} x i8> {numbers} to {twice}")
        if array.storage not in ("bfloat", "i16") or not at.uniform:
            return None
    return w.pure(f"bitcast {type_text('i32', w.lanes)} {memory.load_words(w, array, at)} to {twice}")


def _integer(w: Writer, e: Expr) -> str:
    """A factor of a product of integers, in every lane."""
    if not isinstance(e, Load):
        raise InternalError(f"{e} is no integer in memory")
    array = w.arrays[e.buffer]
    return memory.load_integers(w, array, memory.position(w, array, [evaluate(w, i) for i in e.index]))


def _dot_bf16(w: Writer, total: Value, x: str, y: str) -> Value:
    """`total` and, in each lane, both products of two pairs."""
    n = w.lanes
    f32, pairs = type_text("f32", n), type_text("bf16", 2 * n)
    name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * n}"
    call = w.call(name, f32, f"{f32} {w.vector(total, n)}", f"{pairs} {x}", f"{pairs} {y}")
    return Value(w.pure(call), "f32", n)


def _dot_i16(w: Writer, total: str, x: str, y: str) -> str:
    """The same for integers, by one instruction or, without VNNI, by two."""
    n = w.lanes
    i32, pairs = type_text("i32", n), type_text("i16", 2 * n)
    operands = (f"{pairs} {x}", f"{pairs} {y}")
    if w.target.has("avx512vnni") and w.target.has("avx512vl"):
        return w.pure(w.call(f"llvm.x86.avx512.vpdpwssd.{32 * n}", i32, f"{i32} {total}", *operands))
    both = w.pure(w.call(f"llvm.x86.{_MULTIPLY_WORDS[n][1]}", i32, *operands))
    return w.pure(f"add {i32} {total}, {both}")

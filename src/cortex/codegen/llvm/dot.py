"""Sums of products: of pairs of bf16 by one instruction where the target has it, else by multiply-adds."""

from __future__ import annotations

from typing import NamedTuple

from cortex.codegen.llvm import floats, memory
from cortex.codegen.llvm.expressions import evaluate
from cortex.codegen.llvm.types import Value, type_text
from cortex.codegen.llvm.writer import Writer
from cortex.ir.scalar import Binary, Expr, Load

_WIDTHS = (4, 8, 16)


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
    """`total` and all products, added in order; a pair of bf16 with another counts as one product of its own kind."""
    while terms:
        pair = next(((i, found) for i, t in enumerate(terms[1:], 1) if (found := _pair(w, terms[0], t))), None)
        if pair is None:
            a, b = evaluate(w, terms[0].x), evaluate(w, terms[0].y)
            n = max(a.lanes, b.lanes, total.lanes)
            total = Value(floats.fused(w, n, w.vector(a, n), w.vector(b, n), w.vector(total, n)), "f32", n)
            terms = terms[1:]
        else:
            other, (x, y) = pair
            total = _dot(w, total, x, y)
            terms = (*terms[1:other], *terms[other + 1 :])
    return total


def _pair(w: Writer, first: Term, second: Term) -> tuple[str, str] | None:
    """Two words of two bf16 each whose products are `first` and `second`, if the target can multiply such words."""
    if not w.target.has("avx512bf16") or w.lanes not in _WIDTHS:
        return None
    x, y = _word(w, first.x, second.x), _word(w, first.y, second.y)
    return None if x is None or y is None else (x, y)


def _word(w: Writer, low: Expr, high: Expr) -> str | None:
    """In each lane, the word of 32 bits whose halves are `low` and `high`; None if they are no such halves."""
    if not isinstance(low, Load) or not isinstance(high, Load) or low.buffer != high.buffer:
        return None
    array = w.arrays[low.buffer]
    places = [[evaluate(w, i) for i in load.index] for load in (low, high)]
    if array.storage == "i32" and array.dtype == "f32":
        at, other = (memory.position(w, array, place[:-1]) for place in places)
        halves = [place[-1].constant for place in places]
        return memory.load_words(w, array, at) if at == other and halves == [0, 1] else None
    if array.storage != "bfloat":
        return None
    at, other = (memory.position(w, array, place) for place in places)
    return memory.load_words(w, array, at) if at.uniform and at._replace(offset=at.offset + 1) == other else None


def _dot(w: Writer, total: Value, x: str, y: str) -> Value:
    """`total` and, in each lane, both products of the halves of two words."""
    n = w.lanes
    f32, words, halves = type_text("f32", n), type_text("i32", n), type_text("bf16", 2 * n)
    operands = [f"{halves} {w.pure(f'bitcast {words} {word} to {halves}')}" for word in (x, y)]
    name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * n}"
    return Value(w.pure(w.call(name, f32, f"{f32} {w.vector(total, n)}", *operands)), "f32", n)

"""Integer expressions as sums of products: the form in which equal affine expressions are equal.

A polynomial maps a product of atoms (a sorted tuple; the empty one stands for 1) to its integer coefficient.
An atom is any i64 expression that is not itself a sum, difference, product or constant: a variable, an index
function's value, a quotient. `expand` reads an expression into this form and `rebuild` writes it back, always
in the same order: positive terms before negative ones, large coefficients before small, the constant last.

    i + 16*j + 3 - i + j*0 + i   ->   {(j,): 16, (i,): 1, (): 3}   ->   j*16 + i + 3
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import product
from typing import TypeAlias

from cortex.ir.scalar import Binary, Expr, Index, Int, Unary, Var

Monomial: TypeAlias = tuple[Expr, ...]
Polynomial: TypeAlias = dict[Monomial, int]
Bounds: TypeAlias = Mapping[str, tuple[int, int]]
Interval: TypeAlias = tuple[float, float]

CONSTANT: Monomial = ()
EVERYTHING: Interval = (-math.inf, math.inf)


def expand(e: Expr, atom: Callable[[Expr], Expr]) -> Polynomial:
    """The polynomial of an i64 expression; `atom` simplifies what is not a sum or product."""
    match e:
        case Int(value):
            return {CONSTANT: value} if value else {}
        case Var():
            return {(e,): 1}
        case Binary("add", x, y):
            return combine(expand(x, atom), expand(y, atom))
        case Binary("sub", x, y):
            return combine(expand(x, atom), expand(y, atom), -1)
        case Binary("mul", x, y):
            return multiply(expand(x, atom), expand(y, atom))
        case Unary("neg", x):
            return combine({}, expand(x, atom), -1)
        case _:
            simple = atom(e)
            return expand(simple, lambda x: x) if is_arithmetic(simple) else {(simple,): 1}


def is_arithmetic(e: Expr) -> bool:
    """Whether `expand` looks inside `e` (given that `e` is an i64 expression)."""
    return isinstance(e, Int | Binary | Unary) and (isinstance(e, Int) or e.fn in ("add", "sub", "mul", "neg"))


def combine(p: Polynomial, q: Polynomial, scale: int = 1) -> Polynomial:
    """p + scale * q."""
    out = dict(p)
    for monomial, c in q.items():
        total = out.get(monomial, 0) + scale * c
        if total:
            out[monomial] = total
        else:
            out.pop(monomial, None)
    return out


def multiply(p: Polynomial, q: Polynomial) -> Polynomial:
    """p * q, expanded."""
    out: Polynomial = {}
    for (m, a), (n, b) in product(p.items(), q.items()):
        out = combine(out, {tuple(sorted(m + n, key=order)): a * b})
    return out


def rebuild(p: Polynomial) -> Expr:
    """The canonical expression of a polynomial."""
    constant = p.get(CONSTANT, 0)
    terms = sorted(((m, c) for m, c in p.items() if m), key=_term_order)
    if not terms:
        return Int(constant)
    if terms[0][1] < 0 < constant:  # nothing positive to begin with but the constant: 5 - i
        total: Expr = Int(constant)
        constant = 0
    else:
        (first, c), *terms = terms
        total = _term(first, c)
    for monomial, c in terms:
        total = Binary("add" if c > 0 else "sub", total, _term(monomial, abs(c)))
    if constant:
        total = Binary("add" if constant > 0 else "sub", total, Int(abs(constant)))
    return total


def _term(monomial: Monomial, coefficient: int) -> Expr:
    e = monomial[0]
    for x in monomial[1:]:
        e = Binary("mul", e, x)
    return e if coefficient == 1 else Binary("mul", e, Int(coefficient))


def _term_order(term: tuple[Monomial, int]) -> tuple[object, ...]:
    monomial, c = term
    return (c < 0, -abs(c), -len(monomial), tuple(order(x) for x in monomial))


def order(e: Expr) -> tuple[int, str]:
    """A total order of atoms: values of index functions, then variables by name, then the rest."""
    match e:
        case Index():
            return (0, repr(e))
        case Var(name):
            return (1, name)
        case _:
            return (2, repr(e))


def interval(p: Polynomial, bounds: Bounds) -> Interval:
    """Inclusive limits of the values of `p`, given inclusive limits of variables; infinite where unknown."""
    lo: float = 0
    hi: float = 0
    for monomial, c in p.items():
        limits: Interval = (c, c)
        for x in monomial:
            limits = _product(limits, _atom_interval(x, bounds))
        lo, hi = lo + limits[0], hi + limits[1]
    return lo, hi


def interval_of(e: Expr, bounds: Bounds) -> Interval:
    """Inclusive limits of the values of an i64 expression whose atoms are simplified already."""
    return interval(expand(e, lambda x: x), bounds)


def _product(a: Interval, b: Interval) -> Interval:
    corners = [0 if x == 0 or y == 0 else x * y for x, y in product(a, b)]
    return min(corners), max(corners)


def _atom_interval(e: Expr, bounds: Bounds) -> Interval:
    match e:
        case Var(name):
            return bounds.get(name, EVERYTHING)
        case Binary("mod", x, Int(c)) if c > 0:
            lo, hi = interval_of(x, bounds)
            return (0, min(c - 1, hi)) if lo >= 0 else (0, c - 1)
        case Binary("floordiv", x, Int(c)) if c > 0:
            lo, hi = interval_of(x, bounds)
            return lo if math.isinf(lo) else lo // c, hi if math.isinf(hi) else hi // c
        case Binary("min" | "max" as fn, x, y):
            of_x, of_y = interval_of(x, bounds), interval_of(y, bounds)
            pick = min if fn == "min" else max
            return pick(of_x[0], of_y[0]), pick(of_x[1], of_y[1])
        case _:
            return EVERYTHING

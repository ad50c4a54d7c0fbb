"""Simplification of scalar expressions, and the small functions that build and inspect them.

Integers are put into one canonical form (see `polynomial`), so that two affine expressions that are equal as
functions are equal as values. Floating point is left as written but for identities that keep every bit,
NaN and signed zeros included: x*1, x/1, x-0, -(-x), -(constant).

The constants true and false, which the grammar does not have, are the casts of 1 and 0 to bool.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from cortex.ilir.ir import For, Let
from cortex.ir.node import Node, map_operands, walk
from cortex.ir.polynomial import (
    CONSTANT,
    Bounds,
    Polynomial,
    combine,
    expand,
    interval,
    is_arithmetic,
    order,
    rebuild,
)
from cortex.ir.scalar import Binary, BinaryFn, Cast, Expr, Float, Int, Select, Unary, Var, dtype_of

Tree = TypeVar("Tree", bound="Node | tuple[Node, ...]")

TRUE = Cast(Int(1), "bool")
FALSE = Cast(Int(0), "bool")

_NO_BOUNDS: Bounds = {}
_LARGEST_EXACT = 2**24  # integers up to here are single-precision numbers
_NEGATED: dict[str, BinaryFn] = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def simplify(e: Expr, bounds: Bounds | None = None) -> Expr:
    """An expression with the same value as `e`, in canonical form.

    `bounds` gives inclusive limits of variables; they decide quotients, remainders, minima and comparisons.

    before:  (i_o*16 + i_i + 0) // 16      with 0 <= i_i <= 15
    after:   i_o
    """
    known = bounds or _NO_BOUNDS

    def go(x: Expr) -> Expr:
        if is_arithmetic(x) and dtype_of(x) == "i64":
            return rebuild(expand(x, go))
        return _fold(map_operands(x, go), known)

    return go(e)


def _fold(e: Expr, bounds: Bounds) -> Expr:
    """`e` simplified at its root; its operands are in canonical form."""
    match e:
        case Unary():
            return _fold_unary(e)
        case Binary("floordiv", x, Int(c)) if c > 0:
            return _fold_quotient(x, c, bounds)
        case Binary("mod", x, Int(c)) if c > 0:
            return _fold_remainder(x, c, bounds)
        case Binary("floordiv" | "mod", _, _):
            return e
        case Binary("lt" | "le" | "gt" | "ge" | "eq" | "ne", x, _) if dtype_of(x) == "i64":
            return _fold_comparison(e, bounds)
        case Binary("and" | "or", _, _):
            return _fold_logical(e)
        case Binary("min" | "max", x, _):
            return _fold_extremum(e, bounds) if dtype_of(x) == "i64" else e
        case Binary():
            return _fold_float(e)
        case Select(cond, x, y):
            if cond in (TRUE, FALSE):
                return x if cond == TRUE else y
            return x if x == y else e
        case Cast():
            return _fold_cast(e)
        case _:
            return e


def _fold_unary(e: Unary) -> Expr:
    match e:
        case Unary("neg", Float(c)):
            return Float(-c)
        case Unary("neg", Unary("neg", x)) | Unary("not", Unary("not", x)):
            return x
        case Unary("not", Cast(Int(c), "bool")):
            return FALSE if c else TRUE
        case Unary("not", Binary(fn, x, y)) if fn in _NEGATED and (fn in ("eq", "ne") or dtype_of(x) == "i64"):
            return Binary(_NEGATED[fn], x, y)  # not so for an ordering of floats: NaN is neither below nor above
        case Unary("abs", Int(c)):
            return Int(abs(c))
        case _:
            return e


def _fold_float(e: Binary) -> Expr:
    match e:
        case Binary("mul" | "div", x, Float(1.0)) | Binary("mul", Float(1.0), x):
            return x
        case Binary("sub", x, Float(c)) if c == 0 and math.copysign(1.0, c) > 0:
            return x
        case Binary("add", x, Float(c)) if c == 0 and math.copysign(1.0, c) < 0:
            return x
        case _:
            return e


def _fold_quotient(x: Expr, c: int, bounds: Bounds) -> Expr:
    """x // c for c > 0: takes out what c divides, when the rest is known not to be negative."""
    p = _polynomial(x)
    whole = {m: k // c for m, k in p.items() if k % c == 0}
    rest = {m: k for m, k in p.items() if k % c}
    lo, hi = interval(rest, bounds)
    if not math.isinf(lo) and not math.isinf(hi) and lo // c == hi // c:
        return rebuild(combine(whole, {CONSTANT: int(lo // c)} if lo // c else {}))
    if whole and lo >= 0:
        return rebuild(combine(whole, _polynomial(_quotient(_without_small(rest, c, bounds)[0], c))))
    return _quotient(_without_small(p, c, bounds)[0], c)


def _quotient(p: Polynomial, c: int) -> Expr:
    """p // c with the common factor of c and the terms cancelled, and nested quotients joined."""
    g = _common_factor(p, c)
    x, c = rebuild({m: k // g for m, k in p.items() if k // g}), c // g
    match x:
        case _ if c == 1:
            return x
        case Binary("floordiv", y, Int(d)) if d > 0:
            return _quotient(_polynomial(y), c * d)
        case _:
            return Binary("floordiv", x, Int(c))


def _fold_remainder(x: Expr, c: int, bounds: Bounds) -> Expr:
    """x mod c for c > 0: drops what c divides, when the rest is known not to be negative."""
    p = _polynomial(x)
    rest = {m: k for m, k in p.items() if k % c}
    lo, hi = interval(rest, bounds)
    if not math.isinf(lo) and not math.isinf(hi) and lo // c == hi // c:
        return rebuild(combine(rest, {CONSTANT: -int(lo // c) * c} if lo // c else {}))
    if lo >= 0:
        p = rest
    p, small = _without_small(p, c, bounds)
    if small:
        return rebuild(combine(_polynomial(_fold_remainder(rebuild(p), c, bounds)), small))
    g = _common_factor(p, c)
    constant = p.get(CONSTANT, 0) % g
    x, c = rebuild({m: k // g for m, k in p.items() if k // g}), c // g
    if c == 1:
        return Int(constant)
    scaled: Polynomial = {(Binary("mod", x, Int(c)),): g}
    return rebuild(combine(scaled, {CONSTANT: constant} if constant else {}))


def _without_small(p: Polynomial, c: int, bounds: Bounds) -> tuple[Polynomial, Polynomial]:
    """p as a multiple of some g that divides c, and what is left if that is known to be from 0 to g - 1.

    before:  24*o + 8*v + l, c = 16       with 0 <= l <= 7
    after:   24*o + 8*v and l: they have the same quotient by 16, and remainders that differ by l
    """
    for g in sorted({math.gcd(k, c) for m, k in p.items() if m}, reverse=True):
        small = {m: k for m, k in p.items() if k % g}
        if small and len(small) < len(p):
            lo, hi = interval(small, bounds)
            if lo >= 0 and hi < g:
                return {m: k for m, k in p.items() if k % g == 0}, small
    return p, {}


def _common_factor(p: Polynomial, c: int) -> int:
    """The greatest divisor of c and of every coefficient but the constant's."""
    return math.gcd(c, *(k for m, k in p.items() if m))


def _fold_comparison(e: Binary, bounds: Bounds) -> Expr:
    lo, hi = interval(combine(_polynomial(e.x), _polynomial(e.y), -1), bounds)
    match e.fn:
        case "lt" | "ge":
            holds = True if hi < 0 else False if lo >= 0 else None
        case "le" | "gt":
            holds = True if hi <= 0 else False if lo > 0 else None
        case _:
            holds = True if lo == hi == 0 else False if lo > 0 or hi < 0 else None
    if holds is None:
        return e
    return TRUE if holds == (e.fn in ("lt", "le", "eq")) else FALSE


def _fold_extremum(e: Binary, bounds: Bounds) -> Expr:
    """min and max of integers: decided where the bounds allow; constants are gathered on the right."""
    lo, hi = interval(combine(_polynomial(e.x), _polynomial(e.y), -1), bounds)
    if hi <= 0 or lo >= 0:
        return e.x if (hi <= 0) == (e.fn == "min") else e.y
    x, y = sorted((e.x, e.y), key=lambda operand: (isinstance(operand, Int), order(operand)))
    match x, y:
        case Binary(fn, inner, Int(a)), Int(b) if fn == e.fn:
            return Binary(e.fn, inner, Int(min(a, b) if fn == "min" else max(a, b)))
        case _:
            return Binary(e.fn, x, y)


def _fold_logical(e: Binary) -> Expr:
    unit, zero = (TRUE, FALSE) if e.fn == "and" else (FALSE, TRUE)
    if zero in (e.x, e.y):
        return zero
    if e.x == unit or e.x == e.y:
        return e.y
    return e.x if e.y == unit else e


def _fold_cast(e: Cast) -> Expr:
    match e:
        case Cast(x, dtype) if dtype_of(x) == dtype:
            return x
        case Cast(Int(c), "f32") if abs(c) <= _LARGEST_EXACT:
            return Float(float(c))
        case Cast(Int(c), "bool"):
            return TRUE if c else FALSE
        case Cast(Cast(Int(c), "bool"), "i64"):
            return Int(c)
        case Cast(Cast(Int(c), "bool"), "f32"):
            return Float(float(c))
        case _:
            return e


def _polynomial(e: Expr) -> Polynomial:
    """The polynomial of an expression in canonical form."""
    return expand(e, lambda x: x)


def expr(x: Expr | int) -> Expr:
    """`x`, with a Python integer made a constant."""
    return Int(x) if isinstance(x, int) else x


def add(a: Expr | int, b: Expr | int) -> Expr:
    """a + b."""
    match expr(a), expr(b):
        case Int(x), Int(y):
            return Int(x + y)
        case (Int(0), e) | (e, Int(0)):
            return e
        case Int() as x, y:
            return add(y, x)
        case Binary("add", x, Int(c)), Int(d):
            return add(x, c + d)
        case Binary("sub", x, Int(c)), Int(d):
            return add(x, d - c)
        case x, Int(c) if c < 0:
            return Binary("sub", x, Int(-c))
        case x, y:
            return Binary("add", x, y)


def sub(a: Expr | int, b: Expr | int) -> Expr:
    """a - b."""
    match expr(a), expr(b):
        case x, Int(c):
            return add(x, -c)
        case x, y:
            return Int(0) if dtype_of(x) == "i64" and x == y else Binary("sub", x, y)


def mul(a: Expr | int, b: Expr | int) -> Expr:
    """a * b."""
    match expr(a), expr(b):
        case Int(x), Int(y):
            return Int(x * y)
        case (Int(0), _) | (_, Int(0)):
            return Int(0)
        case (Int(1), e) | (e, Int(1)):
            return e
        case Int() as x, y:
            return mul(y, x)
        case Binary("mul", x, Int(c)), Int(d):
            return mul(x, c * d)
        case x, y:
            return Binary("mul", x, y)


def floordiv(a: Expr | int, b: Expr | int) -> Expr:
    """a // b, rounded down."""
    match expr(a), expr(b):
        case Int(x), Int(y) if y:
            return Int(x // y)
        case x, Int(1):
            return x
        case Binary("mul", x, Int(c)), Int(d) if d and c % d == 0:
            return mul(x, c // d)
        case x, y:
            return Binary("floordiv", x, y)


def mod(a: Expr | int, b: Expr | int) -> Expr:
    """a - (a // b) * b."""
    match expr(a), expr(b):
        case Int(x), Int(y) if y:
            return Int(x % y)
        case _, Int(1):
            return Int(0)
        case Binary("mul", _, Int(c)), Int(d) if d and c % d == 0:
            return Int(0)
        case x, y:
            return Binary("mod", x, y)


def ceildiv(a: Expr | int, b: Expr | int) -> Expr:
    """a / b, rounded up."""
    return floordiv(add(a, sub(b, 1)), b)


def minimum(a: Expr | int, b: Expr | int) -> Expr:
    """The smaller of a and b."""
    return _extremum("min", min, expr(a), expr(b))


def maximum(a: Expr | int, b: Expr | int) -> Expr:
    """The larger of a and b."""
    return _extremum("max", max, expr(a), expr(b))


def _extremum(fn: BinaryFn, of: Callable[[int, int], int], a: Expr, b: Expr) -> Expr:
    if isinstance(a, Int) and isinstance(b, Int):
        return Int(of(a.value, b.value))
    return a if a == b and dtype_of(a) == "i64" else Binary(fn, a, b)


def substitute(tree: Tree, values: Mapping[str, Expr]) -> Tree:
    """An expression, statement or tuple of statements with variables replaced, by name.

    Names bound inside `tree` (loop variables, lets) are left alone; they are unique, so nothing is captured.
    """

    def visit(n: Node) -> Node:
        match n:
            case Var(name):
                return values.get(name, n)
            case Let(var, value):
                new = cast("Expr", visit(value))
                return n if new is value else Let(var, new)
            case _:
                return map_operands(n, visit)

    if isinstance(tree, tuple):
        return cast("Tree", tuple(visit(n) for n in tree))
    return cast("Tree", visit(tree))


def free_vars(tree: Node | tuple[Node, ...]) -> frozenset[str]:
    """Names that an expression, statement or tuple of statements uses and does not bind."""
    used: set[str] = set()
    bound: set[str] = set()
    for root in tree if isinstance(tree, tuple) else (tree,):
        for n in walk(root):
            if isinstance(n, Var):
                used.add(n.name)
            elif isinstance(n, For):
                bound.add(n.var)
            elif isinstance(n, Let):
                bound.add(n.var.name)
    return frozenset(used - bound)


def affine(e: Expr, var: str) -> tuple[int, Expr] | None:
    """(c, rest) with e = c*var + rest and `var` not in rest; None when `e` is not of that form."""
    if dtype_of(e) != "i64":
        return None
    p = expand(e, simplify)
    coefficient = p.pop((Var(var),), 0)
    if any(var in free_vars(m) for m in p):
        return None
    return coefficient, rebuild(p)

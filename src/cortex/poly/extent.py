"""How many iterations a loop has, and what divides that."""

from __future__ import annotations

from cortex.ilir.ir import For, Func
from cortex.ir.node import walk
from cortex.ir.polynomial import Polynomial, combine, expand
from cortex.ir.scalar import Expr, Index, Int, Load, Var
from cortex.ir.simplify import maximum, simplify, sub


def extent_of(f: Func, loop: For) -> Expr | None:
    """The number of iterations, never negative; None when the bounds read memory, which the loop may change.

    for e in ptr(n)..ptr(n + 1)   ->   ptr(n + 1) - ptr(n)        (ptr is increasing)
    for k in 1..m                 ->   max(m - 1, 0)
    """
    if any(isinstance(n, Load) for bound in (loop.lo, loop.hi) for n in walk(bound)):
        return None
    count = simplify(sub(loop.hi, loop.lo))
    if isinstance(count, Int):
        return Int(max(count.value, 0))
    return count if not_negative(f, expand(count, simplify)) else maximum(count, 0)


def not_negative(f: Func, p: Polynomial) -> bool:
    """Do sizes, constants and declared facts make `p` a sum of terms that are not negative?"""
    facts = {i.name: i.facts for i in f.index_functions}

    def known(e: Expr) -> bool:
        match e:
            case Var(name):
                return name in f.sizes
            case Index(fn, _):
                return "non_negative" in facts.get(fn, ())
            case _:
                return False

    p = dict(p)
    for monomial in [m for m, c in p.items() if c == -1]:
        match monomial:
            case (Index(fn, (low,)),) if "increasing" in facts.get(fn, ()):
                above = [m for m, c in p.items() if c == 1 and len(m) == 1 and _at_least(f, m[0], fn, low)]
                if above:
                    del p[above[0]], p[monomial]
            case _:
                pass
    return all(c > 0 and all(known(x) for x in monomial) for monomial, c in p.items())


def _at_least(f: Func, e: Expr, fn: str, low: Expr) -> bool:
    """Is `e` the increasing function `fn` at `low` or above?"""
    match e:
        case Index(name, (high,)) if name == fn:
            return not_negative(f, combine(expand(high, simplify), expand(low, simplify), -1))
        case _:
            return False


def is_multiple(factor: int, extent: Expr) -> bool:
    """Is `extent` a multiple of `factor`, by the coefficients of its terms, whatever its variables are?"""
    return all(c % factor == 0 for c in expand(extent, simplify).values())

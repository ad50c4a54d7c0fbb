"""Completing a fold: the terms of all children become one reduction over children.

before:  ((0 + t_0) + t_1) + t_2                          for 3 children
after:   sum over children of t_k

Terms need not come in order, nor one by one: `s = s + U @ h_k + b` in a loop over children has the terms U @ h_0, b,
U @ h_1, b, ..., which is the sum over children of U @ h_k, and n times b.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from cortex.frontend.arity.values import Fold, NotAlike, Part, Whole
from cortex.ra import ir

if TYPE_CHECKING:
    from cortex.frontend.arity.roll import Rolling


def settle(r: Rolling, fold: Fold) -> Whole | Part:
    """The fold with every complete set of parts reduced; what is left must be of one child."""
    terms = fold.terms
    while True:
        left = _incomplete(r, fold.fn, terms)
        if len({part.child for part in left}) <= 1:
            return _combined(r, fold, terms, left)
        opened = tuple(inner for term in terms for inner in (_opened(r, fold.fn, term) if term in left else (term,)))
        if opened == terms:
            raise NotAlike(f"{_named_children(left)} enter {SAID[fold.fn]} differently")
        terms = opened


SAID = {"add": "a sum", "max": "a maximum", "min": "a minimum"}


def _incomplete(r: Rolling, fn: str, terms: tuple[Whole | Part, ...]) -> set[Part]:
    """The parts that some child lacks, or that a sum has more often for some child than for another."""
    found: dict[str, Counter[int]] = {}
    odd: set[Part] = set()
    for term in terms:
        if isinstance(term, Part):
            index = term.child[1]
            if index is None:
                odd.add(term)
            else:
                found.setdefault(term.name, Counter())[index] += 1
    for term in terms:
        if isinstance(term, Part) and term not in odd:
            counts = found[term.name]
            complete = len(counts) == r.lengths.get(term.child[0])
            if not complete or (fn == "add" and len(set(counts.values())) > 1):
                odd.add(term)
    return odd


def _opened(r: Rolling, fn: str, term: Whole | Part) -> tuple[Whole | Part, ...]:
    """The terms of a term that is itself a sum (or maximum, minimum)."""
    match r.graph.op(term.name):
        case ir.Binary(inner, x, y) if inner == fn:
            return r.taken(x, term), r.taken(y, term)
        case ir.Binary("sub", x, y) if fn == "add":
            return r.taken(x, term), r.taken(r.emit(ir.Unary("neg", y)), term)
        case _:
            return (term,)


def _combined(r: Rolling, fold: Fold, terms: tuple[Whole | Part, ...], left: set[Part]) -> Whole | Part:
    """One reduction for each complete set of parts, what is per node, then what is left of one child."""
    counts = Counter(term.name for term in terms)
    wholes: dict[str, Whole] = {}
    for term in terms:
        if term in left or term.name in wholes:
            continue
        name, times = term.name, counts[term.name]
        if isinstance(term, Part):
            relation = term.child[0]
            name, times = r.emit(ir.OverChildren(fold.fn, name, relation)), times // r.lengths[relation]
        if fold.fn == "add" and times > 1:
            name = r.emit(ir.Binary("mul", r.emit(ir.Fill(float(times), ())), name))
        wholes[term.name] = Whole(name)
    first, *others = (*(whole.name for whole in wholes.values()), *(term.name for term in terms if term in left))
    for other in others:
        first = r.emit(ir.Binary(fold.fn, first, other))
    return r.taken(first, next(iter(left), None))


def _named_children(parts: set[Part]) -> str:
    children = sorted({part.child for part in parts}, key=str)
    (relation, first), (_, second) = children[:2]
    return f"children {first} and {second} of '{relation}'"

"""Completing a fold: the terms of all children become one reduction over children.

before:  ((0 + t_0) + t_1) + t_2                          for 3 children
after:   sum over children of t_k

Terms need not come in order, nor one by one: `s = s + U @ h_k + b` in a loop over children has the terms U @ h_0, b,
U @ h_1, b, ..., which is the sum over children of U @ h_k, and n times b, which is 0 for no children.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from cortex.frontend.arity.values import Fold, FoldFn, NotAlike, Part, Whole
from cortex.ra import ir
from cortex.ra.rules.over_children import times
from cortex.ra.shapes import operand_names, rename_operands

if TYPE_CHECKING:
    from cortex.frontend.arity.roll import Rolling


def settle(r: Rolling, fold: Fold) -> Whole | Part:
    """The fold with every complete set of parts reduced; what is left must be of one child."""
    terms = fold.terms
    if _is_mixed(terms):  # which of them is the first, and so has the start of the sum in it, is not to matter
        most = MOST_OPENED * len(terms)
        while terms != (apart := tuple(x for t in terms for x in _opened(r, fold.fn, t))) and len(apart) <= most:
            terms = apart
    while True:
        left = _left(r, fold.fn, terms)
        of = {term.child for term in left.values()}
        if len(of) <= 1:
            return _combined(r, fold.fn, terms, left)
        if r.ends:
            named = _named_alike(r, terms, left)
            left = _left(r, fold.fn, named)
            apart = tuple(r.at_end(term) if i in left else term for i, term in enumerate(named))
            left = _left(r, fold.fn, apart)
            if len({term.child for term in left.values()}) <= 1:
                return _combined(r, fold.fn, apart, left)
        opened = tuple(
            inner for i, term in enumerate(terms) for inner in (_opened(r, fold.fn, term) if i in left else (term,))
        )
        if opened == terms:
            (relation, first), (_, second) = sorted(of, key=str)[:2]
            raise NotAlike(f"children {first} and {second} of '{relation}' enter {SAID[fold.fn]} differently")
        terms = opened


MOST_OPENED = 16
"""A sum of items of several lists may get so many times as many terms."""

SAID = {"add": "a sum", "max": "a maximum", "min": "a minimum"}


def _left(r: Rolling, fn: FoldFn, terms: tuple[Whole | Part, ...]) -> dict[int, Part]:
    """The parts, by position, that are not in a complete set: one for each child.

    A sum may have a set several times; what some child has more often than another is left.
    """
    counts: dict[str, Counter[int]] = {}
    for term in terms:
        if isinstance(term, Part) and term.child[1] is not None:
            counts.setdefault(term.name, Counter())[term.child[1]] += 1
    met: Counter[Part] = Counter()
    left: dict[int, Part] = {}
    for position, term in enumerate(terms):
        if isinstance(term, Part):
            relation, index = term.child
            own = counts.get(term.name, Counter())
            is_complete = index is not None and len(own) == r.lengths.get(relation)
            met[term] += 1
            if not is_complete or (fn == "add" and met[term] > min(own.values())):
                left[position] = term
    return left


def _named_alike(r: Rolling, terms: tuple[Whole | Part, ...], left: dict[int, Part]) -> tuple[Whole | Part, ...]:
    """The terms, where one at an end is called what the other items' are if it is equal to theirs there."""
    found = list(terms)
    families = {(term.name, term.child[0]): None for term in left.values() if term.child not in r.ends}
    for name, relation in families:
        for end in (end for end in r.ends if end[0] == relation and Part(name, end) not in found):
            wanted = r.at_end(Part(name, end))
            at = next((i for i, term in enumerate(found) if r.at_end(term) == wanted), None)
            if at is not None:
                found[at] = Part(name, end)
    return tuple(found)


def _opened(r: Rolling, fn: FoldFn, term: Whole | Part) -> tuple[Whole | Part, ...]:
    """The terms of a term that is itself a sum (or maximum, minimum)."""
    match r.graph.op(term.name):
        case ir.Binary(inner, x, y) if inner == fn:
            return r.taken(x, term), r.taken(y, term)
        case ir.Binary("sub", x, y) if fn == "add":
            return r.taken(x, term), r.taken(r.emit(ir.Unary("neg", y)), term)
        case _:
            return (term,)


def _is_mixed(terms: Iterable[Whole | Part]) -> bool:
    """Are there items of several lists?"""
    return len({term.child[0] for term in terms if isinstance(term, Part)}) > 1


def _in_order(r: Rolling, terms: Iterable[Whole | Part]) -> list[Whole | Part]:
    """The terms in an order that does not depend on how the items of several lists are mixed."""
    found = list(terms)
    if not _is_mixed(found):
        return found
    known: dict[str, str] = {}
    return sorted(found, key=lambda term: (isinstance(term, Part), _structure(r, term.name, known)))


def _structure(r: Rolling, name: str, known: dict[str, str]) -> str:
    """The same for what is computed in the same way, but for constants that depend on numbers of items."""
    if name not in known:
        op = r.graph.op(name)
        operands = [_structure(r, x, known) for x in operand_names(op)]
        own = replace(op, value=0.0) if isinstance(op, ir.Fill) else op
        form = str(rename_operands(own, dict.fromkeys(operand_names(op), "")))
        known[name] = sha256("\n".join([form, *operands]).encode()).hexdigest()
    return known[name]


def _combined(r: Rolling, fn: FoldFn, terms: tuple[Whole | Part, ...], left: dict[int, Part]) -> Whole | Part:
    """One reduction for each complete set of parts, what is per node, then what is left of one child."""
    kept = [term for position, term in enumerate(terms) if position not in left]
    counts = Counter(term.name for term in kept)
    names = []
    for term in _in_order(r, {term.name: term for term in kept}.values()):
        name, count = term.name, counts[term.name]
        if isinstance(term, Part):
            relation = term.child[0]
            name, count = r.emit(ir.OverChildren(fn, name, relation)), count // r.lengths[relation]
        if fn == "add" and count > 1:
            number = r.emit(ir.Fill(float(count), ()))
            name = r.emit(ir.Binary("mul", number, name) if isinstance(term, Part) else times(r.graph, number, name))
        names.append(name)
    first, *others = (*names, *(term.name for term in left.values()))
    for other in others:
        first = r.emit(ir.Binary(fn, first, other))
    return r.taken(first, next(iter(left.values()), None))

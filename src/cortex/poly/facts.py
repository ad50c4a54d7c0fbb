"""What a function declares of its sizes and index functions, written out at the terms that occur in a question.

Nothing here is quantified: a fact `for all x` becomes one formula for each term at which the question (or another
fact) uses the function. That makes a proof fast and its time predictable, at the price that a consequence
through a term that nobody mentions is not seen: "not proven", never a wrong "yes".

    question   child_left(n) < num_nodes
    facts      0 <= n and n < num_nodes  =>  child_left(n) < num_nodes
               0 <= n and n < num_nodes  =>  child_left(n) > n or child_left(n) == -1
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import assert_never

from cortex.ilir.ir import Fact as Declared
from cortex.ilir.ir import Func, IndexFunction, Promise
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Expr, Index, Int, Unary, Var
from cortex.ir.simplify import TRUE, substitute
from cortex.poly.points import le, lt

ROUNDS = 2  # promises are written out at the terms of the question, then at the terms that this brought in
MOST_INSTANCES = 400  # of one promise; more would only cost time

Terms = dict[str, list[Expr]]
Key = tuple[tuple[Expr, ...], ...]  # the arguments of each index function that occur in a question


class Facts:
    """The declared facts of a function's sizes and index functions."""

    def __init__(self, f: Func) -> None:
        self.sizes, self.functions, self.promises = f.sizes, f.index_functions, f.promises

    def terms_of(self, question: Iterable[Expr]) -> Key:
        """Where a question uses each index function. Questions that agree in this have the same facts."""
        terms: Terms = {i.name: [] for i in self.functions}
        _collect(question, terms)
        return tuple(tuple(arguments) for arguments in terms.values())

    def at(self, key: Key) -> list[Expr]:
        """The facts that bear on a question that uses the index functions at the terms of `key`."""
        terms: Terms = {i.name: list(arguments) for i, arguments in zip(self.functions, key, strict=True)}
        known: dict[Expr, None] = {le(Int(0), Var(size)): None for size in self.sizes}
        for _ in range(ROUNDS):
            new = [e for p in self.promises for e in _instances(p, terms) if e not in known]
            known |= dict.fromkeys(new)
            _collect(new, terms)
        for function in self.functions:
            known |= dict.fromkeys(_facts_of(function, terms[function.name]))
        return list(known)


def _collect(expressions: Iterable[Expr], terms: Terms) -> None:
    """Note the arguments at which index functions are used."""
    for e in expressions:
        for n in walk(e):
            if isinstance(n, Index) and n.fn in terms and n.args[0] not in terms[n.fn]:
                terms[n.fn].append(n.args[0])


def _instances(p: Promise, terms: Terms) -> Iterator[Expr]:
    """The promise at every term whose function it applies to one of its variables."""
    formula = implies(conjunction(p.given), p.then)
    if not p.over:
        # A promise about constants matters where one of its functions is used at all.
        if all(terms.get(n.fn) for n in walk(formula) if isinstance(n, Index)):
            yield formula
        return
    candidates: list[dict[Expr, None]] = []
    for name in p.over:
        uses = {n.fn for n in walk(formula) if isinstance(n, Index) and n.args == (Var(name),)}
        candidates.append(dict.fromkeys(t for fn in sorted(uses) for t in terms.get(fn, ())))
    for number, choice in enumerate(product(*candidates)):
        if number == MOST_INSTANCES:
            return
        yield substitute(formula, dict(zip(p.over, choice, strict=True)))


def _facts_of(function: IndexFunction, arguments: list[Expr]) -> Iterator[Expr]:
    for x in arguments:
        inside = both(le(Int(0), x), lt(x, function.extent))
        value: Expr = Index(function.name, (x,))
        if function.less_than is not None:
            yield implies(inside, lt(value, function.less_than))
        for fact in function.facts:
            yield from (implies(inside, e) for e in _of_one(fact, value, x))
    for fact in function.facts:
        for x, y in product(arguments, arguments):
            if x != y:
                yield from _of_two(fact, function, x, y)


def _of_one(fact: Declared, value: Expr, x: Expr) -> Iterator[Expr]:
    """What a fact says of the value at one argument."""
    match fact:
        case "in_nodes":
            yield le(Int(0), value)
            yield lt(value, Var("num_nodes"))
        case "non_negative":
            yield le(Int(0), value)
        case "below":
            yield Binary("or", lt(x, value), Binary("eq", value, Int(-1)))
        case "increasing" | "injective":
            pass  # about two arguments
        case "outside_group":
            pass  # about groups: the linear form's promises say what it means there
        case _:
            assert_never(fact)


def _of_two(fact: Declared, function: IndexFunction, x: Expr, y: Expr) -> Iterator[Expr]:
    """What a fact says of the values at two arguments."""
    at_x, at_y = Index(function.name, (x,)), Index(function.name, (y,))
    inside = both(le(Int(0), x), lt(y, function.extent))
    if fact == "increasing":
        yield implies(both(inside, le(x, y)), le(at_x, at_y))
    if fact == "injective":
        yield implies(both(inside, lt(x, y)), Binary("ne", at_x, at_y))


def conjunction(parts: Iterable[Expr]) -> Expr:
    """All of `parts`."""
    whole: Expr = TRUE
    for part in parts:
        whole = both(whole, part)
    return whole


def both(x: Expr, y: Expr) -> Expr:
    """x and y."""
    return y if x == TRUE else Binary("and", x, y)


def implies(x: Expr, y: Expr) -> Expr:
    """Where x holds, y does."""
    return y if x == TRUE else Binary("or", Unary("not", x), y)

"""One graph for several: rolled graphs of different numbers of children that differ in constants only.

before:  s = sum over children of h_k; m = s / 5          (rolled from a trace for 5 children)
         s = sum over children of h_k; m = s / 8          (rolled from a trace for 8 children)
after:   s = sum over children of h_k; m = s / arity(children)

The graphs are walked side by side from their results. A constant that differs must follow from the number of children
by one of a few formulas, with one coefficient for all the graphs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isclose, sqrt
from typing import TypeAlias

from cortex.frontend.arity.roll import Rolled
from cortex.frontend.arity.values import CountedOtherwise, NotAlike
from cortex.frontend.builder import stem_of
from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.shapes import Declared, operand_names, rename_operands

Lengths: TypeAlias = "Mapping[str, int]"
Names: TypeAlias = "tuple[str, ...]"
"""One let of each graph."""

TOLERANCE = 1e-6
"""Constants may have been rounded to float32 on their way into a trace."""


def agree(rolled: Sequence[tuple[Lengths, Rolled]], declared: Declared) -> tuple[tuple[ir.Let, ...], tuple[str, ...]]:
    """Lets and results that give each graph at its lengths; `NotAlike` if there are none."""
    lengths = [own for own, _ in rolled]
    graphs = [r.graph for _, r in rolled]
    b = Builder(declared)
    made: dict[Names, str] = {}
    results = list(zip(*(r.results for _, r in rolled), strict=True))
    todo: list[Names] = list(reversed(results))
    while todo:
        names = todo[-1]
        ops = [g.op(name) for g, name in zip(graphs, names, strict=True)]
        operands = _aligned(ops, graphs[0].builder[names[0]])
        missing = [x for x in operands if x not in made]
        if missing:
            todo += reversed(missing)
            continue
        todo.pop()
        if names not in made:
            made[names] = _add(b, ops, [made[x] for x in operands], graphs[0].builder[names[0]], lengths)
    return b.lets, tuple(made[names] for names in results)


def _aligned(ops: Sequence[ir.Op], let: ir.Let) -> list[Names]:
    """The operands of the same op in every graph."""
    forms = {_form(op) for op in ops}
    if len(forms) > 1:
        raise NotAlike("it computes something else for another number of children", let.span)
    return list(zip(*(operand_names(op) for op in ops), strict=True))


def _form(op: ir.Op) -> ir.Op:
    """`op` without the names of its operands, and without the value of a constant."""
    if isinstance(op, ir.Fill):
        return replace(op, value=0.0)
    return rename_operands(op, dict.fromkeys(operand_names(op), ""))


def _add(b: Builder, ops: Sequence[ir.Op], operands: list[str], let: ir.Let, lengths: Sequence[Lengths]) -> str:
    first = ops[0]
    if isinstance(first, ir.Fill):
        values = [op.value for op in ops if isinstance(op, ir.Fill)]
        if len(set(values)) > 1:
            return _formula(b, values, first.shape, let, lengths)
    renamed = _with_operands(first, operands)
    return b.add(renamed, _name(b, renamed), let.span)


def _with_operands(op: ir.Op, names: list[str]) -> ir.Op:
    """`op` reading `names`, one after the other; the same operand may have become different ones."""
    match op:
        case ir.Concat():
            return replace(op, xs=tuple(names))
        case ir.Binary() | ir.Contract():
            return replace(op, x=names[0], y=names[1])
        case ir.Lookup():
            return replace(op, table=names[0], index=names[1])
        case ir.Where():
            return replace(op, cond=names[0], x=names[1], y=names[2])
        case _:
            return rename_operands(op, dict(zip(operand_names(op), names, strict=True)))


def _name(b: Builder, op: ir.Op) -> str | None:
    """What reading an attribute or a weight is called; None for computed values."""
    own = re.sub(r"\W+", "_", stem_of(op))
    return own if own and own not in b else b.fresh(f"{own}_") if own else None


Formula: TypeAlias = "tuple[Callable[[float, float], float], Callable[[Builder, str, str], ir.Op]]"
"""A function of a coefficient and the number of children, and the op that computes it from lets of both."""

FORMULAS: tuple[tuple[Callable[[float, float], float], Formula], ...] = (
    (lambda v, n: v / n, (lambda c, n: c * n, lambda _, c, n: ir.Binary("mul", c, n))),
    (lambda v, n: v * n, (lambda c, n: c / n, lambda _, c, n: ir.Binary("div", c, n))),
    (lambda v, n: v - n, (lambda c, n: c + n, lambda _, c, n: ir.Binary("add", c, n))),
    (
        lambda v, n: v / sqrt(n),
        (lambda c, n: c * sqrt(n), lambda b, c, n: ir.Binary("mul", c, b.add(ir.Unary("sqrt", n)))),
    ),
    (
        lambda v, n: v * sqrt(n),
        (lambda c, n: c / sqrt(n), lambda b, c, n: ir.Binary("div", c, b.add(ir.Unary("sqrt", n)))),
    ),
)
"""How the coefficient follows from one value, and the formula."""


def _formula(
    b: Builder, values: Sequence[float], shape: tuple[int, ...], let: ir.Let, lengths: Sequence[Lengths]
) -> str:
    """A let for a constant that follows from the number of children in one list."""
    for relation in lengths[0]:
        counts = [own[relation] for own in lengths]
        for solve, (formula, op) in FORMULAS:
            c = solve(values[0], counts[0])
            c = float(round(c)) if isclose(c, round(c), rel_tol=TOLERANCE) else c
            if all(isclose(formula(c, n), v, rel_tol=TOLERANCE) for n, v in zip(counts, values, strict=True)):
                arity = b.add(ir.Arity(relation))
                scalar = arity if (c, op) == (1.0, FORMULAS[0][1][1]) else b.add(op(b, b.add(ir.Fill(c, ())), arity))
                return b.add(ir.Broadcast(scalar, shape), span=let.span) if shape else scalar
    said = ", ".join(f"{v:g}" for v in values)
    raise CountedOtherwise(f"a constant depends on the number of children in no way that is known: {said}", let.span)

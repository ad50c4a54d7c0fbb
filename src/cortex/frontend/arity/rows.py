"""Results with a row for each item of a list: a routine without a step has a position for each row.

before:  the result is row_0 = f(w, x_0), row_1 = f(w, x_1), ...         (a trace for that many items)
after:   the result is the state `row` of the positions of a routine that computes row = f(w, x)

Rows may depend on sums over the items too, which the owner computes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cortex.errors import ModelError
from cortex.frontend.arity.chains import Found, Trace, Writer
from cortex.frontend.arity.values import NotAlike
from cortex.frontend.decision import DecisionTree
from cortex.frontend.knowledge import Knowledge
from cortex.ra import ir

MIDDLE = 1
"""The item whose row stands for those of all."""

RowsOf = Mapping[str, tuple[str, ...]]
"""The lets that are the rows of results, by the names of these."""


def find_segments(rows: tuple[str, ...], traces: list[Trace]) -> list[tuple[Trace, tuple[str, ...]]]:
    """The rows of a result as runs, each with one for every item of the list of a trace; `NotAlike` if they are not."""
    found: list[tuple[Trace, tuple[str, ...]]] = []
    at = 0
    while at < len(rows):
        for t in traces:
            run = rows[at : at + t.count]
            if [t.items[row] for row in run] == [1 << i for i in range(t.count)]:
                found.append((t, run))
                at += t.count
                break
        else:
            raise NotAlike("a row of the result is not that of one item of a list")
    return found


def find_rows(t: Trace, runs: Mapping[str, list[tuple[str, ...]]], name: str, states: str) -> Found:
    """A routine whose positions have the rows of these results."""
    if t.count <= MIDDLE:
        raise NotAlike("there are too few rows to tell how they are computed")
    outputs = [run[MIDDLE] for each in runs.values() for run in each]
    w = Writer(t, name, states)
    w.declare([t.by_name[v].type for v in outputs])
    found = w.found(True, None, w.body(outputs, {}), {})
    decls = iter(found.routine.states)
    rows = tuple(ir.Rows(result, name, next(decls).name) for result, each in runs.items() for _ in each)
    return replace(found, rows=rows)


def refuse_unlike_rows(k: Knowledge, tree: DecisionTree) -> None:
    """Refuse results with rows for which no kind of any number of them was found."""
    for kind in tree.order:
        row = next((row for rows in kind.rows.values() for row in rows), None)
        if row is None:
            continue
        why = next(iter(dict.fromkeys(tree.per_arity.values())), "they differ with the number")
        raise ModelError(
            f"'{k.name}' returns a tensor or a list whose length differs from request to request, and its rows are not "
            f"computed alike for every length: {why}. Compute each row from its own node, or from sums and maxima over "
            "all nodes.",
            next(let.span for let in kind.lets if let.name == row),
        )

"""Results with a row for each item of a list: a routine without a step has a position for each row.

before:  the result is row_0 = f(w, x_0), row_1 = f(w, x_1), ...         (a trace for that many items)
after:   the result is the state `row` of the positions of a routine that computes row = f(w, x)

Rows may depend on sums over the items too, which the owner computes first. A row of no item is that of the first
position, which has it from the owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

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


@dataclass(frozen=True)
class Run:
    """Rows of a result, one for every item of a list; or one row of no item, at the first."""

    result: str
    relation: str
    how: Literal["list", "reversed", "slot"]
    middle: str
    """The row that stands for all."""


def find_runs(result: str, rows: tuple[str, ...], traces: Mapping[str, Trace]) -> list[Run]:
    """The rows of a result, taken apart by the lists whose items they are for; `NotAlike` if they are not."""
    found: list[Run] = []
    at = 0
    while at < len(rows):
        run = _run(result, rows[at:], traces)
        found.append(run)
        at += 1 if run.how == "slot" else traces[run.relation].count
    return found


def _run(result: str, rows: tuple[str, ...], traces: Mapping[str, Trace]) -> Run:
    for relation, t in traces.items():
        own, each = [t.items[row] for row in rows[: t.count]], [1 << i for i in range(t.count)]
        if own == each:
            return Run(result, relation, "list", rows[MIDDLE])
        if own == each[::-1]:
            return Run(result, relation, "reversed", rows[t.count - 1 - MIDDLE])
    if not any(t.items[rows[0]] for t in traces.values()):
        return Run(result, next(iter(traces)), "slot", rows[0])
    raise NotAlike("a row of the result is not computed from one item of a list")


def find_rows(t: Trace, runs: list[Run], name: str, states: str) -> tuple[Found, dict[Run, ir.Rows]]:
    """A routine whose positions have these rows."""
    w = Writer(t, name, states)
    outputs = list(dict.fromkeys(run.middle for run in runs))
    w.declare([t.by_name[v].type for v in outputs])
    found = w.found(True, None, w.body(outputs, {}), {})
    state = {v: decl.name for v, decl in zip(outputs, found.routine.states, strict=True)}
    at = {"slot": found.routine.end(False)}
    return found, {run: ir.Rows(run.result, at.get(run.how, name), state[run.middle], run.how) for run in runs}


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

"""Traces for different numbers of items as one kind, with routines for the steps over the items."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count

from cortex.frontend.arity.agree import Lengths, agree
from cortex.frontend.arity.chains import Found, Trace, find_routine
from cortex.frontend.arity.roll import Rolled, roll
from cortex.frontend.arity.rows import RowsOf, Run, find_rows, find_runs
from cortex.frontend.arity.same_graph import same_graph
from cortex.frontend.arity.sequences import NOTHING, Body, Routine, Sequences, written_out
from cortex.frontend.arity.unstack import unstacked
from cortex.frontend.arity.values import NotAlike
from cortex.frontend.arity.zips import find_zip
from cortex.ra import ir
from cortex.ra.shapes import Declared
from cortex.ra.simplify import drop_dead_lets, simplify_kind

MOST_ROUTINES = 16


@dataclass(frozen=True)
class Recurrent:
    """A trace that is rolled up: its results, and after them what the owner computes for positions."""

    rolled: Rolled
    sequences: Sequences


def find_sequences(
    traces: Iterable[tuple[Lengths, tuple[ir.Let, ...], tuple[str, ...], RowsOf]],
    declared: Declared,
    taken: Collection[str] = (),
) -> tuple[ir.Kind, Sequences]:
    """The kind of any number of items, and its routines, that gives each trace at its lengths; `NotAlike` if none.

    Names of routines are none of those `taken`.
    """
    found: list[tuple[Lengths, Recurrent]] = []
    number = 0
    for lengths, lets, results, rows in traces:
        number = len(results)
        own = _Rolling(lengths, declared, taken).run(lets, results, rows)
        if found and not found[0][1].sequences.is_same(own.sequences):
            raise NotAlike("the steps over the items of a list differ with their number")
        found.append((lengths, own))
    sequences = found[0][1].sequences
    everything = with_routines(declared, sequences)
    lets, results = agree([(_all_lengths(own, sequences, declared.lists), r.rolled) for own, r in found], everything)
    before = Body(drop_dead_lets(lets, results[number:]), results[number:])
    routines = {r.name for r in sequences.routines}
    if any(isinstance(let.op, ir.State) and _first(let.op.path) & _ends(sequences) for let in before.lets):
        raise NotAlike("what steps over the items of a list read depends on other steps")
    if any(let.over in routines for let in before.lets):
        raise NotAlike("what steps over the items of a list read depends on other steps")
    kind = ir.Kind("pattern", (), drop_dead_lets(lets, results[:number]), results[:number])
    return kind, replace(sequences, before=before)


def is_instance_of_steps(
    lets: tuple[ir.Let, ...],
    results: tuple[str, ...],
    pattern: ir.Kind,
    sequences: Sequences,
    lengths: Lengths,
    declared: Declared,
) -> bool:
    """Does a kind with routines compute what a trace computes for these numbers of items?

    Rows of results are among the `results` of the trace, after the others.
    """
    if any(lengths[r.relation] < 1 for r in sequences.routines):
        return False
    everything = with_routines(declared, sequences)
    expected = written_out(pattern, sequences, lengths, everything)
    for unstack_all in (False, True):
        with suppress(NotAlike):
            wanted, found = (
                unstacked(*each, max(lengths.values()), everything, unstack_all)
                for each in ((expected.lets, expected.results), (lets, results))
            )
            if same_graph(wanted, found):
                return True
            if same_graph(simplify_kind(wanted, everything), simplify_kind(found, everything)):
                return True
    return False


def with_routines(declared: Declared, sequences: Sequences) -> Declared:
    """The declarations, and those of positions."""
    states = {s.name: s.type for r in sequences.routines for s in r.states}
    states |= {s.name: s.type for s in sequences.states}
    names = tuple(r.name for r in sequences.routines)
    return replace(declared, states={**declared.states, **states}, lists=(*declared.lists, *names))


class _Rolling:
    """One trace."""

    def __init__(self, lengths: Lengths, declared: Declared, taken: Collection[str]) -> None:
        self.taken = taken
        self.lengths = lengths
        self.declared = declared
        self.routines: list[Routine] = []
        self.wholes: dict[str, str] = {}
        self.types: dict[str, ir.TensorType] = {}
        self.rows: tuple[ir.Rows, ...] = ()

    def run(self, lets: tuple[ir.Let, ...], results: tuple[str, ...], rows: RowsOf) -> Recurrent:
        if not self.lengths:
            raise NotAlike("there is no list whose items are taken one after the other")
        every = (*results, *(row for each in rows.values() for row in each))
        kind = unstacked(lets, every, min(self.lengths.values()), self.declared)
        new = dict(zip(every, kind.results, strict=True))
        rows = {name: tuple(new[row] for row in each) for name, each in rows.items()}
        body, every, results = kind.lets, kind.results, kind.results[: len(results)]
        for relation in self.lengths:
            while (found := self._found(body, every, relation)) is not None:
                body = self._added(found)
        body = self._with_rows(body, every, rows)
        of_numbers = [relation for relation in self.lengths if relation not in self.declared.lists]
        for relation in of_numbers:  # what is read of them is read by positions
            items = find_zip(self._trace(body, results, relation), self._name(relation), self._before, always=True)
            body = body if items is None else self._added(items)
        if not self.routines:
            raise NotAlike("no step from one item of a list to the next was found")
        try:
            return self._rolled(body, results)
        except NotAlike:
            zipped = self._zipped(body, results)
            if zipped is body:
                raise
            return self._rolled(zipped, results)

    def _with_rows(self, body: tuple[ir.Let, ...], every: tuple[str, ...], rows: RowsOf) -> tuple[ir.Let, ...]:
        """Have positions for the rows of results."""
        traces = {relation: self._trace(body, every, relation) for relation in self.lengths}
        runs = [run for name, each in rows.items() for run in find_runs(name, each, traces)]
        written: dict[Run, ir.Rows] = {}
        for relation in self.lengths:
            own = [run for run in runs if run.relation == relation]
            if own:
                t = self._trace(body, every, relation)
                found, made = find_rows(t, own, self._name(relation), self._before)
                body = self._added(found)
                written |= made
        self.rows = tuple(written[run] for run in runs)
        return body

    def _found(self, body: tuple[ir.Let, ...], results: tuple[str, ...], relation: str) -> Found | None:
        if len(self.routines) >= MOST_ROUTINES:
            return None
        return find_routine(self._trace(body, results, relation), self._name(relation), self._before)

    def _zipped(self, body: tuple[ir.Let, ...], results: tuple[str, ...]) -> tuple[ir.Let, ...]:
        for relation in {r.relation: None for r in self.routines}:
            found = find_zip(self._trace(body, results, relation), self._name(relation), self._before)
            if found is not None:
                body = self._added(found)
        return body

    def _added(self, found: Found) -> tuple[ir.Let, ...]:
        self.routines.append(found.routine)
        return found.lets

    def _trace(self, body: tuple[ir.Let, ...], results: tuple[str, ...], relation: str) -> Trace:
        together = (relation, *(r.name for r in self.routines if r.relation == relation))
        declared = with_routines(self.declared, self._sequences(body))
        return Trace(body, results, together, self.lengths[relation], declared, self.wholes)

    def _name(self, relation: str) -> str:
        used = {*self.taken, *(r.name for r in self.routines)}
        return next(
            name for i in count(1) if (name := f"{relation}_steps_{i}" if i > 1 else f"{relation}_steps") not in used
        )

    @property
    def _before(self) -> str:
        """The name of what the owner computes for its positions."""
        return (
            f"before_{self._name(next(iter(self.lengths)))}" if not self.routines else f"before_{self.routines[0].name}"
        )

    def _sequences(self, body: tuple[ir.Let, ...]) -> Sequences:
        types = {let.name: let.type for let in body}
        return Sequences(
            tuple(self.routines), NOTHING, tuple(ir.StateDecl(s, types[v]) for v, s in self.wholes.items()), self.rows
        )

    def _rolled(self, body: tuple[ir.Let, ...], results: tuple[str, ...]) -> Recurrent:
        sequences = self._sequences(body)
        ends: dict[tuple[str, int | None], str] = {}
        for r in self.routines:
            last = self.lengths[r.relation] - 1
            ends |= {(r.name, 0): r.end(False), (r.name, last): r.end(True)}
        lengths = _all_lengths(self.lengths, sequences, self.declared.lists)
        declared = with_routines(self.declared, sequences)
        return Recurrent(roll(body, (*results, *self.wholes), lengths, declared, ends=ends), sequences)


def _all_lengths(lengths: Lengths, sequences: Sequences, lists: tuple[str, ...]) -> dict[str, int]:
    """The lengths of all lists that the model has, those of positions among them."""
    own = {name: n for name, n in lengths.items() if name in lists}
    return {**own, **{r.name: lengths[r.relation] for r in sequences.routines}}


def _first(path: tuple[ir.Hop, ...]) -> set[str]:
    return {path[0].name} if path else set()


def _ends(sequences: Sequences) -> set[str]:
    return {r.end(is_last) for r in sequences.routines for is_last in (False, True)}

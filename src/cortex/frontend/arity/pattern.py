"""The pattern of which traces for different numbers of children are instances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain

from cortex.frontend.arity.agree import Lengths, agree
from cortex.frontend.arity.roll import Rolled, roll
from cortex.frontend.arity.same_graph import same_graph
from cortex.frontend.arity.sequences import with_numbers
from cortex.frontend.arity.values import NotAlike
from cortex.frontend.decision import Traced
from cortex.ra import ir
from cortex.ra.shapes import Declared
from cortex.ra.simplify import simplify_kind
from cortex.ra.write_out import write_out


def find_pattern(traces: Iterable[tuple[Lengths, Traced]], lists: tuple[str, ...]) -> ir.Kind:
    """The kind of any number of children that gives each trace at its lengths, all of them at least 2.

    Its results are those of the traces in their order, its guard is empty; `lists` are the list relations of the model.
    Raises `NotAlike` if there is none.
    """
    seen: list[tuple[ir.Let, ...]] = []
    rolled: list[tuple[Lengths, Rolled]] = []
    for lengths, kind in traces:
        seen.append(kind.lets)
        results = tuple(kind.results.values())
        rolled.append((lengths, roll(kind.lets, results, lengths, _declared([kind.lets], lists))))
    lets, results = agree(rolled, _declared(seen, lists))
    return ir.Kind("pattern", (), lets, results)


def is_instance(kind: Traced, pattern: ir.Kind, lengths: Lengths, lists: tuple[str, ...]) -> bool:
    """Does `pattern` compute what `kind` computes for these numbers of children?

    Both are brought to one form: the pattern is written out where there is one child, the trace is rolled up where
    there are several, and over no child every reduction is 0. Most often that is enough; simplifying them takes longer.
    """
    declared = _declared([kind.lets, pattern.lets], lists)
    guard = tuple(ir.Fact(ir.Length(relation), n) for relation, n in lengths.items())
    expected = ir.Kind("pattern", guard, with_numbers(pattern.lets, lengths), pattern.results)
    for relation, n in lengths.items():
        if n == 1:
            expected = write_out(expected, relation, 1, declared)
    several = {relation: n for relation, n in lengths.items() if n > 1}

    def form(lets: tuple[ir.Let, ...], results: tuple[str, ...], unstack_all: bool) -> ir.Kind:
        rolled = roll(lets, results, several, declared, unstack_all)
        return ir.Kind("rolled", guard, rolled.graph.builder.lets, rolled.results)

    # A value of the node stacked on one of its only child is a stack in the pattern, but need not look like one.
    for unstack_all in (False, True) if 1 in lengths.values() else (False,):
        with suppress(NotAlike):
            found = form(kind.lets, tuple(kind.results.values()), unstack_all)
            wanted = form(expected.lets, expected.results, unstack_all)
            if same_graph(wanted, found):
                return True
            if same_graph(simplify_kind(wanted, declared), simplify_kind(found, declared)):
                return True
    return False


def _declared(bodies: Sequence[tuple[ir.Let, ...]], lists: tuple[str, ...]) -> Declared:
    """The declarations that lets imply."""
    params, fields, states = {}, {}, {}
    for let in chain.from_iterable(bodies):
        match let.op:
            case ir.Param(name):
                params[name] = let.type
            case ir.Field(name):
                fields[name] = let.type
            case ir.State(name):
                states[name] = let.type
    return Declared(params, fields, states, lists)

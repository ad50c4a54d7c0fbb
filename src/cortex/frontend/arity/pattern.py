"""The pattern of which traces for different numbers of children are instances."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice

from cortex.frontend.arity.agree import Lengths, agree
from cortex.frontend.arity.recur import find_sequences, is_instance_of_steps
from cortex.frontend.arity.roll import Rolled, roll
from cortex.frontend.arity.same_graph import same_graph
from cortex.frontend.arity.sequences import Sequences, with_numbers
from cortex.frontend.arity.values import NotAlike
from cortex.frontend.decision import Traced
from cortex.ir.node import walk
from cortex.ra import ir
from cortex.ra import rules as simplification
from cortex.ra.rules.fold_constants import absorb_zeros, begin_sums
from cortex.ra.shapes import Declared
from cortex.ra.simplify import simplify_kind
from cortex.ra.write_out import write_out

RULES = (absorb_zeros, begin_sums, *simplification.RULES)
"""A kind of any arity and a trace are compared as if weights were finite and zeros had no signs."""


def find_pattern(
    traces: Iterator[tuple[Lengths, Traced]], lists: tuple[str, ...], taken: Collection[str] = ()
) -> tuple[ir.Kind, Sequences | None]:
    """The kind of any number of children that gives each trace at its lengths, all of them at least 2.

    Its results are those of the traces in their order, its guard is empty; `lists` are the list relations of the model.
    Where children are taken one after the other, it has routines, with names that are none of those `taken`. Raises
    `NotAlike` if there is no such kind.
    """
    seen: list[tuple[Lengths, Traced]] = []
    rolled: list[tuple[Lengths, Rolled]] = []
    try:
        for lengths, kind in traces:
            seen.append((lengths, kind))
            if kind.rows:
                raise NotAlike("the result has a row for each item of a list")
            if not set(lengths) <= set(lists):
                raise NotAlike("the items of a list of numbers are not taken one after the other")
            results = tuple(kind.results.values())
            rolled.append((lengths, roll(kind.lets, results, lengths, _declared([kind.lets], lists))))
        lets, results = agree(rolled, _declared([kind.lets for _, kind in seen], lists))
        return ir.Kind("pattern", (), lets, results), None
    except NotAlike as reason:
        made = [*seen, *islice(traces, max(0, FOUND_IN - len(seen)))]
        if len(made) < FOUND_IN:
            raise
        try:
            return _with_steps(made, lists, taken)
        except NotAlike as other:
            raise other if made[0][1].rows else reason from None


def _with_steps(
    traces: Sequence[tuple[Lengths, Traced]], lists: tuple[str, ...], taken: Collection[str]
) -> tuple[ir.Kind, Sequences]:
    """The pattern of steps from one child to the next, found in two traces and checked in all that were made."""
    declared = _declared([kind.lets for _, kind in traces], lists)
    own = [(lengths, kind.lets, tuple(kind.results.values()), kind.rows) for lengths, kind in traces]
    pattern, sequences = find_sequences(own[:FOUND_IN], declared, taken)
    if any(isinstance(x, ir.Item) and x.name not in lists for let in pattern.lets for x in walk(let.op)):
        raise NotAlike("an item of a list of numbers is taken beside those that are taken one after the other")
    if not all(is_instance_of_steps(x.lets, x.every_result, pattern, sequences, n, declared) for n, x in traces):
        raise NotAlike("what was found in some traces is not what the others compute")
    return pattern, sequences


FOUND_IN = 2


def is_instance(
    kind: Traced, pattern: ir.Kind, sequences: Sequences | None, lengths: Lengths, lists: tuple[str, ...]
) -> bool:
    """Does `pattern` compute what `kind` computes for these numbers of children?

    Both are brought to one form: the pattern is written out where there is one child, the trace is rolled up where
    there are several, and over no child every reduction is 0. Most often that is enough; simplifying them takes longer.
    """
    declared = _declared([kind.lets, pattern.lets], lists)
    if sequences is not None:
        bodies = (body.lets for routine in sequences.routines for body in routine.bodies())
        declared = _declared([kind.lets, pattern.lets, sequences.before.lets, *bodies], lists)
        return is_instance_of_steps(kind.lets, kind.every_result, pattern, sequences, lengths, declared)
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
            if same_graph(simplify_kind(wanted, declared, RULES), simplify_kind(found, declared, RULES)):
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

"""Checking a kind of any arity for the number of children that a node has.

The model is traced for the node. Where the trace is an instance of the kind, the number is checked from then on, and
nothing has to be compiled. Else nodes with that number of children get a kind of their own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cortex.errors import ModelError
from cortex.frontend.arity.agree import Lengths
from cortex.frontend.arity.lengths import CheckedLengths
from cortex.frontend.arity.list_items import itemized, itemized_guard
from cortex.frontend.arity.mentions import EXACT, LARGEST, LARGEST_OWN, MANY, Mentions, near, numbers_in
from cortex.frontend.arity.pattern import find_pattern
from cortex.frontend.arity.supposing import supposing
from cortex.frontend.arity.told import answers_alike, is_told
from cortex.frontend.arity.values import NotAlike
from cortex.frontend.arity.widen import asked_of_items, fits, open_lengths
from cortex.frontend.decision import Traced
from cortex.frontend.facts import Facts, Oracle, Seen
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.signals import Impossible, MissingAttribute, NeedsExample, NeedsStates
from cortex.frontend.trace_kind import trace_kind
from cortex.ra.ir import Fact, Field, Hop, IsLeaf, IsNone, Item, Length, State

SMALL_PAIR = 4
"""Every pair of numbers of items in two lists up to this is traced."""


def is_checked(kind: Traced, seen: Seen) -> bool:
    """Has the kind, which fits the node, been checked for the number of children that it has?"""
    return kind.checked is None or _lengths(kind, seen) in kind.checked


def check(k: Knowledge, kind: Traced, facts: Facts) -> Traced | None:
    """Check a kind of any arity that fits a node; `facts` asks the node, and nothing has been asked yet.

    None if it is right for the node's number of children, or for one that the model cannot tell from it. Else the kind
    that such nodes should have. What the model raises is raised.
    """
    checked, seen = kind.checked, facts.oracle
    assert checked is not None
    assert isinstance(seen, Seen)
    lengths = _lengths(kind, seen)
    mentioned = k.model.mentions()
    has_entry = checked.checked_at(lengths) == lengths or mentioned.most <= checked.most
    at = _alike(k, kind, mentioned, lengths) if has_entry else lengths
    if kind.sequences is not None and _is_credited(k, checked, mentioned, lengths):
        checked.add(lengths)
        return None
    if at != lengths:
        _refuse_too_many(k, mentioned, at)
        if at in checked or agrees_at(k, kind, seen, at):
            checked.add(at)
            checked.add(lengths)
            return None
    _refuse_too_many(k, mentioned, lengths)
    if at == lengths:
        facts.start_over(kind.shapes)
    own = trace_kind(k, facts)
    if at != lengths or not has_entry or not agrees(k, kind, own):
        return own
    checked.add(lengths)
    return None


def _alike(k: Knowledge, kind: Traced, mentioned: Mentions, lengths: Lengths) -> Lengths:
    """The numbers of children to trace for: such as the kind is asked about, and the model cannot tell from these."""
    at = {name: mentioned.alike(n) for name, n in lengths.items()}
    if at == lengths or not is_told(k, kind.guard):
        return at
    found = (
        fewer
        for less in range(EXACT)
        if answers_alike(k, kind.guard, fewer := {name: n - less * (n != lengths[name]) for name, n in at.items()})
    )
    return next(found, lengths)


def _is_credited(k: Knowledge, checked: CheckedLengths, mentioned: Mentions, lengths: Lengths) -> bool:
    """Is each of two lengths checked beside another one, on the same side of it, where code has no way to tell?

    Pairs of small numbers, and of numbers that the code knows, are traced; so `len(a) == 3 and len(b) == 20` is seen.
    """
    if len(checked.lists) != 2 or mentioned.periodic or max(lengths.values()) <= SMALL_PAIR:
        return False
    known = numbers_in(k.model.code())
    if all(near(known, n, n) for n in lengths.values()):
        return False
    a, b = checked.checked_at(lengths).values()
    rows, columns = np.nonzero(checked.table)
    beside = checked.table[a].any() and checked.table[:, b].any()
    return bool(beside and a and b and (np.sign(rows - columns) == np.sign(a - b)).any())


def with_fewer_children(seen: Seen) -> Oracle | None:
    """A node with very many children as if it had as many as are told apart; None for other nodes."""
    accessors = seen.knowledge.accessors
    lengths = {name: len(accessors.items(seen.node, name)) for name in seen.knowledge.lists}
    fewer = {name: EXACT for name, n in lengths.items() if n > EXACT}
    return supposing(seen, with_equal_ones(seen.knowledge, fewer)) if fewer else None


def has_many_children(seen: Seen) -> bool:
    """Does tracing a node take long, as it has many children?"""
    accessors = seen.knowledge.accessors
    return any(len(accessors.items(seen.node, name)) > MANY for name in seen.knowledge.lists)


def _refuse_too_many(k: Knowledge, mentioned: Mentions, lengths: Lengths) -> None:
    """Refuse to trace a model for very many children."""
    name, count = max(lengths.items(), key=lambda item: item[1])
    if count <= LARGEST:
        return
    near = next((n for n in reversed(mentioned.numbers) if n <= count), None)
    if mentioned.periodic:
        why, span = "this operator of whole numbers tells all numbers of children apart", mentioned.periodic
    elif near is not None:
        why, span = f"its code knows the number {near}, by which it can tell them apart", k.definition
    else:
        why, span = "it does not do the same for every number of children", k.definition
    raise ModelError(
        f"model '{k.name}' would have to be traced for a node with {count} children in '{name}', and that is done for "
        f"{LARGEST} at most: {why}. Compute what depends on the number in a method or a field of the node, or give "
        "such nodes fewer children.",
        span,
    )


def rolled_if_large(k: Knowledge, kind: Traced) -> Traced:
    """A kind of one number of children, rolled up where it would be compiled for very many of them one by one.

    It serves that number alone, but where it does the same with all children its size does not depend on the number.
    """
    taken = _children_taken(kind)
    if len(taken) > MANY:
        k.model.slices.make_lists()
    if len(taken) <= LARGEST_OWN:
        return kind
    told = {f.test.name: f.answer for f in kind.guard if isinstance(f.test, Length) and not f.test.path}
    names = {hop.name for hop in taken if isinstance(hop, Item)}
    lengths = {name: n for name in sorted(names) if isinstance(n := told.get(name), int) and n > LARGEST_OWN}
    try:
        if not lengths:
            raise NotAlike("")
        pattern, sequences = find_pattern(iter([(lengths, kind)]), tuple(k.lists))
        if sequences is not None:
            raise NotAlike("they are taken one after the other")
    except NotAlike as reason:
        why = f": {reason.reason}" if reason.reason else ""
        raise ModelError(
            f"model '{k.name}' computes with {len(taken)} children of a node one by one, not with all of them alike"
            f"{why}, and that is compiled for {LARGEST_OWN} at most. Do the same for all children of a node, or for "
            "all of a slice (node.children[:300]), or give nodes fewer children.",
            reason.span or k.definition,
        ) from None
    return replace(kind, lets=pattern.lets, results=dict(zip(kind.results, pattern.results, strict=True)))


def _children_taken(kind: Traced) -> set[Hop]:
    """The children that something is read of, by themselves."""
    return {let.op.path[0] for let in kind.lets if isinstance(let.op, State | Field) and let.op.path}


def _lengths(kind: Traced, seen: Seen) -> dict[str, int]:
    assert kind.checked is not None
    return {name: len(seen.knowledge.accessors.items(seen.node, name)) for name in kind.checked.lists}


def agrees_at(k: Knowledge, kind: Traced, oracle: Oracle, lengths: Lengths) -> bool:
    """Is the kind right for a node like this one with these numbers of children?"""
    try:
        supposed = supposing(oracle, with_equal_ones(k, lengths), imagined=k.model.explores)
        facts = Facts(supposed, expected=kind.shapes)
        return agrees(k, kind, trace_kind(k, facts))
    except (Exception, Impossible, MissingAttribute, NeedsExample, NeedsStates):
        return False


def agrees(k: Knowledge, kind: Traced, own: Traced) -> bool:
    """Is a trace for one number of children an instance of a kind of any arity?"""
    checked = kind.checked
    assert checked is not None
    if not asks_the_same(k, kind, own):
        return False
    own = itemized(k, own, checked.open)
    of_children = asked_of_items(own.guard, checked.open)
    may_ask = all(isinstance(t, IsNone) and len(t.path) == 1 and t.name in checked.asked for t in of_children)
    return may_ask and fits(k, own, kind)


def asks_the_same(k: Knowledge, kind: Traced, own: Traced) -> bool:
    """Does a trace ask what a kind of any arity asks? With children, that a node is no leaf need not be asked."""
    assert kind.checked is not None
    asked = open_lengths(itemized_guard(k, own.guard, kind.checked.open), kind.checked.open)
    implied = Fact(IsLeaf(), False)
    has_children = any(f.answer for f in own.guard if isinstance(f.test, Length) and f.test.name in kind.checked.open)
    return asked == kind.guard or (has_children and asked == tuple(f for f in kind.guard if f != implied))


def with_equal_ones(k: Knowledge, lengths: Lengths) -> dict[str, int]:
    """These lengths, and those of lists that are always as long."""
    return {k.same_length[name]: n for name, n in lengths.items() if name in k.same_length} | dict(lengths)

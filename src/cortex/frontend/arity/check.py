"""Checking a kind of any arity for the number of children that a node has.

The model is traced for the node. Where the trace is an instance of the kind, the number is checked from then on, and
nothing has to be compiled. Else nodes with that number of children get a kind of their own.
"""

from __future__ import annotations

from cortex.frontend.arity.agree import Lengths
from cortex.frontend.arity.lengths import MOST
from cortex.frontend.arity.supposing import supposing
from cortex.frontend.arity.widen import asked_of_items, fits, open_lengths
from cortex.frontend.decision import Traced
from cortex.frontend.facts import Facts, Oracle, Seen
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.signals import Impossible, MissingAttribute, NeedsExample, NeedsStates
from cortex.frontend.trace_kind import trace_kind
from cortex.ra.ir import Fact, IsLeaf, IsNone, Length


def is_checked(kind: Traced, seen: Seen) -> bool:
    """Has the kind, which fits the node, been checked for the number of children that it has?"""
    return kind.checked is None or _lengths(kind, seen) in kind.checked


def check(k: Knowledge, kind: Traced, facts: Facts) -> Traced | None:
    """Check a kind of any arity that fits a node; `facts` asks the node, and nothing has been asked yet.

    None if it is right for the node's number of children. Else, and where there are so many children that they are not
    told apart and the check for these failed, the kind that such nodes should have. What the model raises is raised.
    """
    checked, seen = kind.checked, facts.oracle
    assert checked is not None
    assert isinstance(seen, Seen)
    lengths = _lengths(kind, seen)
    at = checked.checked_at(lengths)
    if at != lengths:
        if agrees_at(k, kind, seen, at):
            checked.add(at)
            return None
        return trace_kind(k, facts)
    facts.start_over(kind.shapes)
    own = trace_kind(k, facts)
    if not agrees(k, kind, own):
        return own
    checked.add(lengths)
    return None


def with_fewer_children(seen: Seen) -> Oracle | None:
    """A node with very many children as if it had as many as are told apart; None for other nodes."""
    accessors = seen.knowledge.accessors
    lengths = {name: len(accessors.items(seen.node, name)) for name in seen.knowledge.lists}
    fewer = {name: MOST for name, n in lengths.items() if n > MOST}
    return supposing(seen, _with_equal_ones(seen.knowledge, fewer)) if fewer else None


def _lengths(kind: Traced, seen: Seen) -> dict[str, int]:
    assert kind.checked is not None
    return {name: len(seen.knowledge.accessors.items(seen.node, name)) for name in kind.checked.lists}


def agrees_at(k: Knowledge, kind: Traced, oracle: Oracle, lengths: Lengths) -> bool:
    """Is the kind right for a node like this one with these numbers of children?"""
    try:
        supposed = supposing(oracle, _with_equal_ones(k, lengths), imagined=k.model.explores)
        facts = Facts(supposed, expected=kind.shapes)
        return agrees(k, kind, trace_kind(k, facts))
    except (Exception, Impossible, MissingAttribute, NeedsExample, NeedsStates):
        return False


def agrees(k: Knowledge, kind: Traced, own: Traced) -> bool:
    """Is a trace for one number of children an instance of a kind of any arity?"""
    checked = kind.checked
    assert checked is not None
    if not asks_the_same(kind, own):
        return False
    of_children = asked_of_items(own.guard, checked.open)
    may_ask = all(isinstance(t, IsNone) and len(t.path) == 1 and t.name in checked.asked for t in of_children)
    return may_ask and fits(k, own, kind)


def asks_the_same(kind: Traced, own: Traced) -> bool:
    """Does a trace ask what a kind of any arity asks? With children, that a node is no leaf need not be asked."""
    assert kind.checked is not None
    asked = open_lengths(own.guard, kind.checked.open)
    implied = Fact(IsLeaf(), False)
    has_children = any(f.answer for f in own.guard if isinstance(f.test, Length) and f.test.name in kind.checked.open)
    return asked == kind.guard or (has_children and asked == tuple(f for f in kind.guard if f != implied))


def _with_equal_ones(k: Knowledge, lengths: Lengths) -> dict[str, int]:
    """These lengths, and those of lists that are always as long."""
    return {k.same_length[name]: n for name, n in lengths.items() if name in k.same_length} | dict(lengths)

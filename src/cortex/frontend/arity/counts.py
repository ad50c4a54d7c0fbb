"""Attributes that say how many children a node has: `for i in range(node.num_children)`.

What a model does with such a number is the same as what it does with `len(node.children)`. So where the attribute is
the length of the list, the length is asked for instead, which leaves one question that depends on the arity.
"""

from __future__ import annotations

from cortex.frontend.builder import builder
from cortex.frontend.facts import ORDER, Answer, Path, Seen
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.signals import Restart
from cortex.ra.ir import Compares, Counts, Equals, Fact, Length, Order, Value


def ask_value(name: str, path: Path) -> Answer:
    """The value of an attribute."""
    length = _length(name, path)
    return builder().facts.ask(Value(name, path)) if length is None else length


def ask_equals(name: str, value: Answer, path: Path) -> Answer:
    """Does an attribute equal `value`?"""
    length = _length(name, path)
    return builder().facts.ask(Equals(name, value, path)) if length is None else length == value


def ask_compares(name: str, fn: Order, bound: int | float, path: Path) -> Answer:
    """How does an attribute compare with a number? One that a loop counts up to is asked for its value instead."""
    known = _length(name, path)
    if known is None and _counts_up(name, fn, bound, path):
        known = builder().facts.ask(Value(name, path))
    return builder().facts.ask(Compares(name, fn, bound, path)) if known is None else ORDER[fn](known, bound)


def _counts_up(name: str, fn: Order, bound: int | float, path: Path) -> bool:
    """Has the attribute been compared with the two integers before this one, as `while i < node.count` does?"""
    asked = builder().facts.known
    return type(bound) is int and all(Compares(name, fn, bound - i, path) in asked for i in (1, 2))


def _length(name: str, path: Path) -> Answer:
    """The number of children that the attribute says, if it is the number of children in a list of the node itself."""
    b = builder()
    relation = b.knowledge.counts.get(name)
    if path or relation is None:
        return None
    if not b.facts.ask(Counts(name, relation)):
        if type(b.facts.oracle) is Seen and not b.knowledge.model.explores:
            b.knowledge.counts[name] = None
            raise Restart
        return None
    return b.facts.ask(Length(relation))


def learn_counts(k: Knowledge, guard: tuple[Fact, ...]) -> None:
    """Learn which attributes are lengths of lists from the facts of a real node, and trace anew if any is.

    One child proves nothing: many attributes are 1. A wrong guess costs a question; where all that was
    seen can be traced again, the first node that refutes it ends it.
    """
    lengths: dict[Answer, str] = {}
    for fact in guard:
        if isinstance(fact.test, Length) and not fact.test.path:
            lengths.setdefault(fact.answer, k.same_length.get(fact.test.name, fact.test.name))
    for fact in guard:
        if isinstance(fact.test, Value) and not fact.test.path and type(fact.answer) is int and fact.answer > 1:
            relation = lengths.get(fact.answer)
            if relation is not None and fact.test.name not in k.counts:
                k.counts[fact.test.name] = relation
                raise Restart

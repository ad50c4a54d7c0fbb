"""Items of lists of plain values, as if they were children: fields of their own, at places in the list.

before:  a: i64 = node.tokens_0; b: i64 = node.tokens_1                       (a trace for 2 tokens)
after:   a: i64 = node.tokens[0].tokens_item; b: i64 = node.tokens[1].tokens_item
"""

from __future__ import annotations

from dataclasses import replace

from cortex.frontend.decision import Traced
from cortex.frontend.knowledge import Knowledge
from cortex.ra.ir import Fact, Field, IsAboveLeaves, IsLeaf, Item, Let


def itemized(k: Knowledge, kind: Traced, lists: tuple[str, ...]) -> Traced:
    """A trace that reads the items of these lists one by one."""
    if not any(name in k.item_lists for name in lists):
        return kind
    lets = tuple(_let(k, let, lists) for let in kind.lets)
    return replace(kind, guard=itemized_guard(k, kind.guard, lists), lets=lets)


def itemized_guard(k: Knowledge, guard: tuple[Fact, ...], lists: tuple[str, ...]) -> tuple[Fact, ...]:
    """The questions of such a trace."""
    if not any(name in k.item_lists for name in lists):
        return guard
    return tuple(_fact(k, fact, lists) for fact in guard)


def _item(k: Knowledge, name: str, lists: tuple[str, ...]) -> Item | None:
    found = k.accessors.item(name)
    return Item(*found) if found is not None and found[0] in lists and found[0] in k.item_lists else None


def _let(k: Knowledge, let: Let, lists: tuple[str, ...]) -> Let:
    if not isinstance(let.op, Field) or let.op.path:
        return let
    item = _item(k, let.op.name, lists)
    if item is None:
        return let
    name = k.accessors.item_name(item.name, "item" if let.type.dtype == "i64" else "value")
    k.fields.setdefault(name, let.type)
    return replace(let, op=Field(name, (item,)))


def _fact(k: Knowledge, fact: Fact, lists: tuple[str, ...]) -> Fact:
    test = fact.test
    if isinstance(test, IsLeaf | IsAboveLeaves) or test.path:
        return fact
    item = _item(k, test.name, lists)
    if item is None:
        return fact
    return Fact(replace(test, name=k.accessors.item_name(item.name, "item"), path=(item,)), fact.answer)

"""Items of lists of plain values or objects, as if they were children: fields of their own, at places in the list.

before:  a: i64 = node.tokens_0; b: i64 = node.tokens_1                       (a trace for 2 tokens)
after:   a: i64 = node.tokens[0].tokens_item; b: i64 = node.tokens[1].tokens_item

before:  a: i64 = node.tokens_0_id; b: i64 = node.tokens_1_id                 (of objects)
after:   a: i64 = node.tokens[0].tokens_id_item; b: i64 = node.tokens[1].tokens_id_item
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from cortex.frontend.decision import Traced
from cortex.frontend.fields import Accessors
from cortex.frontend.knowledge import Knowledge
from cortex.ra.ir import Fact, Field, IsAboveLeaves, IsLeaf, Item, Let, Test


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
    found = k.accessors.item(name, _open(k, lists))
    return None if found is None else Item(*found)


def _open(k: Knowledge, lists: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in lists if name in k.item_lists)


def _let(k: Knowledge, let: Let, lists: tuple[str, ...]) -> Let:
    if not isinstance(let.op, Field) or let.op.path:
        return let
    item = _item(k, let.op.name, lists)
    if item is None:
        return let
    stem = "item" if let.type.dtype == "i64" else "value"
    name = k.accessors.item_name(let.op.name, _open(k, lists), stem)
    k.fields.setdefault(name, let.type)
    return replace(let, op=Field(name, (item,)))


def _fact(k: Knowledge, fact: Fact, lists: tuple[str, ...]) -> Fact:
    test = fact.test
    if isinstance(test, IsLeaf | IsAboveLeaves) or test.path:
        return fact
    item = _item(k, test.name, lists)
    if item is None:
        return fact
    return Fact(asked_of_item(k.accessors, test, item, _open(k, lists)), fact.answer)


def asked_of_item(accessors: Accessors, test: Test, item: Item, lists: Container[str]) -> Test:
    """A question about something of an item, as one that is asked of the item."""
    assert not isinstance(test, IsLeaf | IsAboveLeaves)
    return replace(test, name=accessors.item_name(test.name, lists, "item"), path=(item,))

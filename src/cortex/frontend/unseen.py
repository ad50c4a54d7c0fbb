"""Telling a misspelt or unusual name of children from one that nodes simply lack.

To a model an absent attribute is None: a leaf need not have `children`. But if the children have another name, every
node looks like a leaf, and the answer would be a leaf's. So a relation that no node has is refused where a node holds
nodes that the model does not reach, or has an attribute that looks like the one the user named (`children="kids"`). A
request of nothing but leaves has neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from inspect import getattr_static
from itertools import islice
from typing import Any

from cortex.errors import StructureError

Relation = tuple[str, str, bool]
"""What the model calls it, the attribute that holds it, and whether that is one of several that do so together."""

ABSENT = object()
"""What `attribute_of` gives where there is no such attribute."""

ELSEWHERE = ("parent", "up", "root", "next", "prev", "previous", "sibling", "head")
"""Names that lead to other nodes wherever they are used, but not to children."""

LOOKED_AT = 64
"""How many nodes, attributes of a node and items of an attribute are looked at for evidence."""


def attribute_of(node: Any, name: str) -> Any:
    """The attribute, or ABSENT. A property that exists and raises AttributeError itself is the user's error."""
    try:
        return getattr(node, name)
    except AttributeError:
        if isinstance(getattr_static(type(node), name, None), property):
            raise
        return ABSENT


def no_such_attribute(node: Any, name: str, attribute: str) -> str:
    """What to say of a node without the attribute that the user named."""
    return f"a {type(node).__name__} has no attribute '{attribute}', {_said(name, attribute, list(_names(node)))}"


def refuse_unseen_children(
    nodes: Sequence[Any], unknown: Sequence[Relation], known: Sequence[str], fields: Sequence[str]
) -> None:
    """Refuse a request if the relations that none of its nodes has seem to be called otherwise.

    `unknown` are those relations; `known` are the attributes that hold the others; `fields` are what the model reads
    beside. Nodes that are calls have been given the relations that they have.
    """
    if not unknown or any(getattr(type(node), "_cortex_is_call", False) for node in nodes):
        return
    visited = {id(node) for node in nodes}
    read = {*known, *fields, *(attribute for _, attribute, _ in unknown), *ELSEWHERE}
    holding = {
        id(node): [name for name in _names(node) if name not in read and _holds_nodes(node, name, visited, fields)]
        for node in nodes[:LOOKED_AT]
    }
    has = list(dict.fromkeys(a for node in nodes[:LOOKED_AT] for a in _names(node)))
    for name, attribute, is_part in unknown:
        is_named = attribute != name and not is_part
        if is_named and (any(holding.values()) or get_close_matches(attribute, has, 1)):
            raise StructureError(
                f"no node of the request has an attribute '{attribute}', {_said(name, attribute, has)}"
            )
    for node in nodes[:LOOKED_AT]:
        if holding[id(node)]:
            raise StructureError(_unseen(node, holding[id(node)], unknown, known))


def _holds_nodes(node: Any, name: str, visited: set[int], fields: Sequence[str]) -> bool:
    """Does the attribute hold objects that look like nodes and that the model does not reach?"""
    value = getattr(node, name, None)
    held = list(islice(value, LOOKED_AT)) if isinstance(value, list | tuple) else [value]
    return bool(held) and all(
        id(child) not in visited and (type(child) is type(node) or not set(fields).isdisjoint(_names(child)))
        for child in held
    )


def _unseen(node: Any, holding: list[str], unknown: Sequence[Relation], known: Sequence[str]) -> str:
    if {name for name, *_ in unknown} == {"children"}:
        several = (*known, *holding)
        remedy = f"children={(holding[0] if len(several) == 1 else several)!r}"
    else:
        meanings = {name: get_close_matches(attribute, holding, 1, 0.0)[0] for name, attribute, _ in unknown}
        remedy = f"fields={meanings!r}"
    attributes = [attribute for _, attribute, _ in unknown]
    return (
        f"the model follows {_listed(attributes)} to the children of a node, and no node of the request has "
        f"{'it' if len(attributes) == 1 else 'them'}; but a {type(node).__name__} holds others in {_listed(holding)}, "
        f"which would be left out. Say what the model's names mean, as in {remedy}, or set '{attributes[0]}' of the "
        "nodes to None if they have no children there."
    )


def _said(name: str, attribute: str, has: list[str]) -> str:
    option = "children" if name == "children" else "fields"
    close = get_close_matches(attribute, has, n=1)
    hint = f" Did you mean '{close[0]}'?" if close else f" There is {_listed(has)}." if has else ""
    return (
        f"which is what {option}= says `node.{name}` is; set it (to None where there is none), or give a function of "
        f"the node.{hint}"
    )


def _names(node: Any) -> Iterator[str]:
    """The public attributes that the object itself holds."""
    found = list(getattr(node, "__dict__", ()))
    for base in type(node).__mro__:
        slots = base.__dict__.get("__slots__", ())
        found += [slots] if isinstance(slots, str) else slots
    return islice((name for name in dict.fromkeys(found) if not name.startswith("_")), LOOKED_AT)


def _listed(names: Sequence[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"

"""Attributes that lead from object to object in a loop: a list of all objects that there are that way.

    a = node.parent
    while a is not None:            asked: how many ancestors has the node?
        above.append(a.h)
        a = a.parent

An attribute is such a list from the moment on that one place in the code has read it of what that place has read
before. Code that does not follow it to its end (`while a.kind != "block"`) decides by the objects, so that they are
attributes of attributes again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cortex.errors import StructureError
from cortex.frontend.facts import ABSENT
from cortex.frontend.signals import Restart
from cortex.frontend.spans import user_frame
from cortex.frontend.torch.categories import is_node
from cortex.frontend.torch.steps import NOWHERE, Along, At, Attr, Steps
from cortex.frontend.written import running_place

if TYPE_CHECKING:
    from cortex.frontend.torch.tracing import TorchBuilder


class AttributeChains:
    """The attributes that are lists, by the tag of the call and the way to the object that has the first one."""

    def __init__(self) -> None:
        self._known: set[tuple[str, Steps]] = set()
        self._closed: set[tuple[str, Steps]] = set()
        """Those that are not followed to their ends, or have none."""

    def clear(self) -> None:
        """Start again with other nodes."""
        self._known.clear()
        self._closed.clear()

    def read(self, b: TorchBuilder, steps: Steps, name: str) -> Any:
        """What stands for an attribute of what the steps lead to, if it is part of a list; else ABSENT."""
        last = steps[-1] if steps else None
        if isinstance(last, At) and steps[-2:-1] == (Along(name),):
            assert isinstance(last.key, int)
            return self._item(b, steps[:-1], last.key + 1)
        way = (*steps, Along(name))
        if (b.tag, way) in self._known and b.accessors.name(way) not in b.model.links.itemized:
            return self._item(b, way, 0)
        frame = user_frame()
        site = None if frame is None else running_place(frame)
        if site is not None and not any(isinstance(step, At) for step in steps):
            if last == Attr(name) and site in b.read_at.get(steps, ()):
                self._learn(b, steps, name)
            b.read_at.setdefault((*steps, Attr(name)), set()).add(site)
        return ABSENT

    def _item(self, b: TorchBuilder, way: Steps, at: int) -> Any:
        """What stands for an object of a list, or None behind its end."""
        from cortex.frontend.torch.standins import present

        found = present(b, way)
        if at < len(found):
            return found[at]
        b.ended.add(way)
        return None

    def _learn(self, b: TorchBuilder, steps: Steps, name: str) -> None:
        while steps[-1:] == (Attr(name),):
            steps = steps[:-1]
        key = (b.tag, (*steps, Along(name)))
        is_own = b.accessors.meant((Attr(name),)) == (Attr(name),) and name not in b.model.written
        if key not in self._closed and is_own and _has_end(b.places[steps]._cortex_sample, Along(name)):
            self._known.add(key)
            raise Restart
        self._closed.add(key)

    def settle(self, b: TorchBuilder) -> None:
        """See that all lists of a trace were followed to their ends."""
        for way in b.places:
            if way and isinstance(way[-1], Along) and way not in b.ended:
                self._known.discard((b.tag, way))
                self._closed.add((b.tag, way))
                raise Restart


def _has_end(x: Any, along: Along) -> bool:
    """Does the attribute lead from node to node, and then to None?"""
    try:
        return all(map(is_node, along.of(x)))
    except (*NOWHERE, StructureError):
        return False

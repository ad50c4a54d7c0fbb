"""What outlives calls: attributes of modules, and global names.

A trace sees one call by itself. `Outside` looks, whenever a call is made and when the trace ends, whether something
there is not as it was in the beginning; from then on traces find an `Unknown` in that place, and whatever reads it is
refused. Afterwards everything is as it was before the trace.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from operator import is_
from typing import Any, Literal

from cortex.frontend.signals import Restart
from cortex.frontend.spans import fail
from cortex.frontend.torch.collections_passed import FRESH
from cortex.frontend.torch.if_loaded import torchs_own
from cortex.frontend.torch.lookups import Lookup
from cortex.frontend.torch.unknown import Memo, Unknown, blur, blurred, is_added_to

PLAIN = (str, int, float, bool)
COLLECTIONS = (dict, list, set, deque)
MISSING = object()
WATCHED = frozenset(("_parameters", "_buffers", "_modules"))
"""Of what torch keeps in modules, attributes that calls may not change."""
DEPTH = 3
"""Collections inside collections are looked into this far."""


class ClassAttributes(MutableMapping[str, Any]):
    """Data that a class binds for all its instances, and what code binds there."""

    def __init__(self, cls: type) -> None:
        self._cls = cls

    def everything(self) -> Mapping[str, Any]:
        """What names are bound to, code too."""
        return vars(self._cls)

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, _ in self.data()])

    def data(self) -> list[tuple[str, Any]]:
        """The names and what they are bound to."""
        return [(n, x) for n, x in list(vars(self._cls).items()) if not n.startswith("__") and not _is_code(x)]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, name: str) -> Any:
        return vars(self._cls)[name]

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self._cls, name, value)

    def __delitem__(self, name: str) -> None:
        delattr(self._cls, name)


def _is_code(x: Any) -> bool:
    kind: Any = type(x)
    return _are_code(kind)


@cache
def _are_code(cls: Any) -> bool:
    return any("__call__" in vars(each) or "__get__" in vars(each) for each in cls.__mro__)


@dataclass(frozen=True, eq=False)
class Space:
    """Names that code can bind: all attributes of an object, or the global names that functions use (`names`).

    Global names can be in several dictionaries: functions may have been given a scope in front of their own.
    """

    label: str
    held: tuple[dict[str, Any] | ClassAttributes, ...]
    names: frozenset[str] | None = None

    def bound(self) -> Iterator[tuple[dict[str, Any] | ClassAttributes, str, Any]]:
        """What each name is bound to."""
        for each in self.held:
            yield from ((each, name, value) for name, value in self.within(each))

    def within(self, holder: dict[str, Any] | ClassAttributes) -> list[tuple[str, Any]]:
        """What each name is bound to in one of the dictionaries."""
        if isinstance(holder, ClassAttributes):
            return holder.data()
        if self.names is None:
            unwatched = torchs_own() - WATCHED
            return [(name, value) for name, value in dict.items(holder) if name not in unwatched]
        found = [(name, dict.get(holder, name, MISSING)) for name in self.names]  # a scope has its own `get`
        return [(name, value) for name, value in found if value is not MISSING]


Place = tuple[int, str]
"""The number of a space, and a name in it."""


@dataclass(eq=False)
class Changes:
    """Which places were seen to change while a module was traced."""

    found: dict[Place, type | None] = field(default_factory=dict)
    """Where calls may find something else than there was in the beginning, with the type of a collection there."""
    left: set[Place] = field(default_factory=set)
    """Where recursive calls leave something else than they found."""
    grown: set[Place] = field(default_factory=set)
    """Where recursive calls add something to a list, and do nothing else to it."""
    after: dict[Place, type | None] = field(default_factory=dict)
    """Where a request leaves something else than it found, for the next one, as in `found`."""


@dataclass(frozen=True, eq=False)
class _Start:
    """What one holder of names had in the beginning."""

    number: int
    """Of the space."""
    holder: dict[str, Any] | ClassAttributes
    kept: dict[str, _Kept]
    collections: tuple[str, ...]
    """The names of what can be changed without being bound anew."""
    names: tuple[str, ...]
    values: tuple[Any, ...]
    """All that the holder had, where everything in it is looked at."""

    @classmethod
    def of(cls, number: int, space: Space, holder: dict[str, Any] | ClassAttributes) -> _Start:
        """As it is now."""
        kept = {name: _Kept(x) for name, x in space.within(holder)}
        collections = tuple(name for name, each in kept.items() if each.is_collection)
        names, values = ((), ()) if space.names else _all_in(holder)
        return cls(number, holder, kept, collections, names, values)

    def is_bound_as_before(self) -> bool:
        """Is it clear at once that all names are bound to what they were bound to?"""
        if not self.names:
            return False
        names, values = _all_in(self.holder)
        return names == self.names and all(map(is_, values, self.values))


def _all_in(holder: dict[str, Any] | ClassAttributes) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    if isinstance(holder, dict):
        return tuple(dict.keys(holder)), tuple(dict.values(holder))
    return tuple(holder.everything()), tuple(holder.everything().values())


class Outside:
    """The places around one trace."""

    def __init__(self, spaces: list[Space], changes: Changes) -> None:
        self._spaces = spaces
        self._changes = changes
        self._start: list[_Start] = []
        self._earlier: dict[Place, Any] = {}
        """What stands for what earlier requests left, where `forward` itself is traced."""

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Whatever happens inside is undone."""
        before = self._now()
        try:
            for place, kind in self._changes.found.items():
                self._bind(place, self._unknown(place, kind))
            self._start = self._now() if self._changes.found else before
            yield
        finally:
            for start in before:
                for name, value in self._others(start):
                    if name not in start.kept:
                        del start.holder[name]
                    elif value is not start.kept[name].value:
                        start.holder[name] = start.kept[name].value
                for name in start.kept.keys() - start.holder.keys():
                    start.holder[name] = start.kept[name].value
                for name in start.collections:
                    start.kept[name].restored()

    def begin_request(self) -> None:
        """What is traced is `forward`, which finds what earlier requests left."""
        for place, kind in self._changes.after.items():
            same = self._changes.found.get(place, kind)
            self._earlier[place] = self._unknown(place, kind if same is kind else None)
            self._bind(place, self._earlier[place])
        if self._earlier:
            self._start = self._now()

    def _unknown(self, place: Place, kind: type | None) -> Any:
        return Unknown(self._said(place)) if kind is None else blurred(kind, self._said(place))

    def _bind(self, place: Place, value: Any) -> None:
        for each in self._spaces[place[0]].held:
            each[place[1]] = value

    def _now(self) -> list[_Start]:
        return [_Start.of(number, s, each) for number, s in enumerate(self._spaces) for each in s.held]

    def _others(self, start: _Start) -> list[tuple[str, Any]]:
        """The names that are bound to something else than in the beginning, and to what."""
        if start.is_bound_as_before():
            return []
        kept = start.kept
        found = self._spaces[start.number].within(start.holder)
        return [(name, x) for name, x in found if (known := kept.get(name)) is None or known.value is not x]

    def look(self, at_end_of: Literal["call", "request", ""] = "") -> None:
        """See what has changed since the beginning; trace again if that was not known."""
        known = len(self._changes.left), dict(self._changes.found), dict(self._changes.after)
        at_end_of_call = at_end_of == "call"
        changed = self._left_behind if at_end_of == "request" else self._changed
        for place, value in () if at_end_of == "request" else self._earlier.items():
            if any(each.get(place[1]) is value for each in self._spaces[place[0]].held):
                changed(place, value, at_end_of_call)
        for start in self._start:
            others = dict(self._others(start))
            for name, value in others.items():
                if name not in start.kept or not start.kept[name].is_same(value):
                    changed((start.number, name), value, at_end_of_call)
            for name in start.collections:
                kept, place = start.kept[name], (start.number, name)
                is_grown = at_end_of_call and place in self._changes.grown and is_added_to(kept.value)
                if name not in others and not is_grown and not kept.is_same(kept.value):
                    changed(place, kept.value, at_end_of_call)
        if known != (len(self._changes.left), self._changes.found, self._changes.after):
            raise Restart

    def grown(self) -> dict[str, list[Any]]:
        """The lists to which a call has added something, by what they are called, and what."""
        found: dict[str, list[Any]] = {}
        for start in self._start:
            for name in start.collections:
                place, value = (start.number, name), start.kept[name].value
                is_bound = dict.get(start.holder, name) is value if isinstance(start.holder, dict) else False
                if self._changes.found.get(place) is list and is_bound and is_added_to(value):
                    self._changes.left.discard(place)
                    self._changes.grown.add(place)
                    found[self._said(place)] = value[1:]
        return found

    def lists(self) -> dict[str, list[Any]]:
        """The lists to which calls add something, by what they are called."""
        return {
            self._said(place): value
            for place in self._changes.grown
            for each in self._spaces[place[0]].held
            if type(value := each.get(place[1])) is list
        }

    def forget(self) -> None:
        """A call was made: what such calls leave behind is not known."""
        for number, name in self._changes.left - self._changes.grown:
            where = self._said((number, name))
            for each in self._spaces[number].held:
                if name in each:
                    value = each[name]
                    blur(value, where) if isinstance(value, FRESH) else each.update({name: Unknown(where)})

    def _changed(self, place: Place, value: Any, at_end_of_call: bool) -> None:
        _note(self._changes.found, place, value)
        if at_end_of_call:
            self._changes.left.add(place)
            self._changes.grown.discard(place)

    def _left_behind(self, place: Place, value: Any, _: bool) -> None:
        _note(self._changes.after, place, value)

    def _said(self, place: Place) -> str:
        label = self._spaces[place[0]].label
        return f"{label}.{place[1]}" if label else f"the global name {place[1]}"


def _note(changes: dict[Place, type | None], place: Place, value: Any) -> None:
    """Note that the value is found in a place; None where what is found there is of several types."""
    if place[1] in torchs_own():
        raise fail(
            f"a parameter, a buffer or a part of the module is bound anew or changed while it runs ({place[1]}). "
            "Use a local variable."
        )
    is_dict = type(value) is Memo or (isinstance(value, Lookup) and value._cortex_kind is dict)
    kind = dict if is_dict else type(value) if type(value) in FRESH else None
    if changes.setdefault(place, kind) is not kind:
        changes[place] = None


class _Kept:
    """A value, and what it holds if it is a collection."""

    def __init__(self, value: Any, depth: int = DEPTH) -> None:
        self.value = value
        self.items: list[tuple[Any, _Kept]] | None = None
        self.constants: list[tuple[Any, Any]] | None = None
        """Of a dictionary of constants, what it holds: there can be many."""
        if isinstance(value, dict) and depth and {*map(type, value), *map(type, value.values())} <= {*PLAIN}:
            self.constants = list(value.items())
        elif isinstance(value, COLLECTIONS) and depth:
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            self.items = [(key, _Kept(x, depth - 1)) for key, x in pairs]

    @property
    def is_collection(self) -> bool:
        """Can it change without being bound anew?"""
        return self.items is not None or self.constants is not None

    def is_same(self, now: Any) -> bool:
        """Is it what it was?"""
        if now is not self.value:
            return isinstance(now, PLAIN) and type(now) is type(self.value) and now == self.value
        if self.constants is not None:
            types = [type(x) for _, x in self.constants]
            return list(now.items()) == self.constants and list(map(type, now.values())) == types
        if self.items is None:
            return True
        if len(now) != len(self.items):
            return False
        pairs = now.items() if isinstance(now, dict) else enumerate(now)
        return all(
            (key is then or (isinstance(key, PLAIN) and key == then)) and kept.is_same(x)
            for (key, x), (then, kept) in zip(pairs, self.items, strict=True)
        )

    def restored(self) -> Any:
        """The value, holding what it held."""
        if self.is_same(self.value):
            return self.value
        self.value.clear()
        if self.constants is not None:
            self.value.update(self.constants)
        if self.items is None:
            return self.value
        match self.value:
            case dict():
                self.value.update({key: kept.restored() for key, kept in self.items})
            case set():
                self.value.update(kept.restored() for _, kept in self.items)
            case _:
                self.value.extend(kept.restored() for _, kept in self.items)
        return self.value

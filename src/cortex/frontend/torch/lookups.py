"""Dictionaries of numbers that are looked up with fields of nodes: `self.vocab[node.word]`.

What Python's own dictionary gives is the number of one word, and code for that word alone would come of it. So while
code is traced, a `Lookup` stands for each such dictionary that the code can reach. Asked for a field of a node, it
gives another field: what the dictionary says of it, which the linearizer looks up for every node. Whether there is an
entry is a fact of the node.

Where a dictionary is somewhere else, or code changes it, the value of the field is asked for, as of any dictionary.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import CellType, FunctionType
from typing import Any, cast

import numpy as np

from cortex.frontend.builder import is_tracing
from cortex.frontend.facts import ABSENT
from cortex.frontend.missing_entry import MissingEntry
from cortex.frontend.signals import Restart
from cortex.frontend.torch.calls import said
from cortex.frontend.torch.standins import NodeField, field_of, tracing
from cortex.frontend.torch.steps import LookedUp
from cortex.ra.ir import IsNone

Home = tuple[MutableMapping[str, Any] | CellType, str, dict[Any, Any]]
"""Where a dictionary is held, under which name; a cell has none, but the variable has one."""
NOTHING = object()


@dataclass(frozen=True, eq=False)
class Table:
    """A dictionary of the user's, and what it is called in the model; `number` is the class of its values."""

    name: str
    content: dict[Any, Any]
    number: type
    default: int | float | None
    """What looking up gives where there is nothing, as of a Counter."""


class Lookup(dict[Any, Any]):
    """What stands for a dictionary."""

    _cortex_table: Table

    def __getitem__(self, key: Any) -> Any:
        if not self._cortex_answers(key):
            return super().__getitem__(key)
        found = _looked_up(self._cortex_table, key, self._cortex_table.default)
        if found is not NOTHING:
            return found
        missing = getattr(self, "__missing__", None)
        if missing is not None:
            return missing(key)
        raise MissingEntry(key._cortex_sample(), self._cortex_table.name, said(key._cortex_steps))

    def get(self, key: Any, default: Any = None) -> Any:
        """As of a dictionary; one field for all keys where the default is a number as the others are."""
        if not self._cortex_answers(key):
            return super().get(key, default)
        is_number = type(default) is self._cortex_table.number and default == default  # NaN is not equal to itself
        found = _looked_up(self._cortex_table, key, default if is_number else None)
        return default if found is NOTHING else found

    def __contains__(self, key: object) -> bool:
        if not self._cortex_answers(key):
            return super().__contains__(key)
        return _looked_up(self._cortex_table, cast(NodeField, key), None) is not NOTHING

    def __deepcopy__(self, memo: Any) -> Lookup:
        return standing_for(self, self._cortex_table)

    def _cortex_answers(self, key: object) -> bool:
        """Is it asked for a field, and does it hold what the dictionary holds? Code may have put something else in."""
        return _is_field(key) and _is_same(self, self._cortex_table.content)

    @property
    def _cortex_kind(self) -> type:
        """The class of what it stands for."""
        return type(self._cortex_table.content)


def _is_field(key: object) -> bool:
    """Is it a text or an integer of a node?"""
    if not is_tracing() or not issubclass(type(key), NodeField):
        return False
    return isinstance(cast(NodeField, key)._cortex_sample(), str | int | np.integer)


def _looked_up(table: Table, key: NodeField, default: int | float | None) -> Any:
    """The field that says what the table has for `key`; NOTHING where that is nothing."""
    b = tracing()
    steps = (*key._cortex_steps, LookedUp(table.name, default, table.content))
    name, path = b.where(steps)
    b.knowledge.read.setdefault(name)
    b.accessors.may_lack(name)
    sample = b.facts.oracle.sample(name, path)
    if b.facts.ask(IsNone(name, path)):
        return NOTHING
    if sample is ABSENT or sample is None:
        return object()  # it is supposed to be there; what it is then is not known
    if steps not in b.places:
        b.places[steps] = field_of(b, name, steps, path)
    return b.places[steps]


class Tables:
    """The dictionaries of one model that are looked up."""

    def __init__(self) -> None:
        self._known: dict[Any, Table] = {}
        """By identity, or by content where it is an argument's."""
        self._changed: set[int] = set()
        """Those that code changes."""

    @contextmanager
    def stood_for(self, homes: Iterator[Home]) -> Iterator[None]:
        """Let dictionaries be stood for."""
        made: dict[int, Lookup] = {}
        before: list[Home] = []
        own: list[Home] = []
        try:
            for home, name, held in homes:
                if id(held) not in made and id(held) not in self._changed:
                    table = self._table(id(held), name, held)
                    if table is not None:
                        made[id(held)] = standing_for(held, table)
                if id(held) in made:
                    is_there = isinstance(home, CellType) or name in home
                    (before if is_there else own).append((home, name, held))
                    _put(home, name, made[id(held)])
            yield
        finally:
            for home, name, held in before:
                _put(home, name, held)
            for home, name, _ in own:
                assert not isinstance(home, CellType)
                del home[name]
            changed = {key for key, lookup in made.items() if not _is_same(lookup, lookup._cortex_table.content)}
            self._changed |= changed
        if changed:
            raise Restart

    def argument(self, name: str, content: Any) -> Any:
        """What an argument with this content is: code that is given another one is compiled by itself."""
        if type(content) is not dict:
            return content
        table = self._table(repr(content), name, content)
        return content if table is None else standing_for(content, table)

    def _table(self, key: int | str, name: str, held: dict[Any, Any]) -> Table | None:
        number = _number(held)
        default: Any = _default(held)
        if number is None or type(default) not in (number, type(None)):
            return None
        known = self._known.get(key)
        if known is None or known.number is not number or known.default != default:
            names = {table.name for table in self._known.values()}
            called = next(n for i in range(len(names) + 1) if (n := f"{name}_{i + 1}" if i else name) not in names)
            self._known[key] = Table(called, held, number, default)
        return self._known[key]


def standing_for(held: dict[Any, Any], table: Table) -> Lookup:
    """A `Lookup` that holds the same, of a class that does what the dictionary's own does."""
    kind = _class(type(table.content))
    made = kind.__new__(kind)
    (OrderedDict if issubclass(kind, OrderedDict) else dict).update(made, held)
    if hasattr(held, "__dict__"):
        vars(made).update(vars(held))
    if isinstance(made, defaultdict):
        made.default_factory = cast("defaultdict[Any, Any]", held).default_factory
    made._cortex_table = table
    return made


@cache
def _class(kind: type) -> type[Lookup]:
    return type(kind.__name__, (Lookup,) if kind is dict else (kind, Lookup), {})


def is_table(held: dict[Any, Any]) -> bool:
    """Is it a dictionary of numbers that can be looked up with fields of nodes?"""
    return bool(held) and _number(held) is not None


def _number(held: dict[Any, Any]) -> type | None:
    """`int` or `float`, where all values are; None where something else is held, or for something else than words."""
    kinds = set(map(type, held.values()))
    is_of_words = kinds in ({int}, {float}) and set(map(type, held)) <= {str, int}
    return kinds.pop() if is_of_words and _can_be_made(type(held)) else None


def _can_be_made(kind: type) -> bool:
    """Is it known how an object of this class is copied?"""
    if kind in (dict, OrderedDict, defaultdict, Counter):
        return True
    is_plain = type(kind) is type and kind.__new__ is dict.__new__ and kind.__dictoffset__ != 0
    return is_plain and not any(vars(each).get("__slots__") for each in kind.__mro__)


def _default(held: dict[Any, Any]) -> Any:
    """What looking up gives where there is nothing; None where that is an error, or the class has its own way."""
    if type(held) is Counter:
        return 0
    if type(held) is not defaultdict or held.default_factory is None:
        return None
    factory = held.default_factory
    return factory() if factory in (int, float) or _gives_constant(factory) else NOTHING


def _gives_constant(factory: Callable[[], Any]) -> bool:
    """Does a function without parameters look at numbers only, so that it gives the same each time?"""
    if not isinstance(factory, FunctionType):
        return False
    names = [factory.__globals__.get(name) for name in factory.__code__.co_names]
    around = [cell.cell_contents for cell in factory.__closure__ or ()]
    return all(type(x) in (int, float) for x in (*names, *around))


def _put(home: MutableMapping[str, Any] | CellType, name: str, value: Any) -> None:
    if isinstance(home, CellType):
        home.cell_contents = value
    else:
        home[name] = value


def _is_same(a: dict[Any, Any], b: dict[Any, Any]) -> bool:
    return dict.__eq__(a, b) is True

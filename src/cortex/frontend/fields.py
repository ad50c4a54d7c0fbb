"""What `node.NAME` means: the user's renamings and functions, and declared field shapes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from cortex.errors import ModelError, StructureError
from cortex.frontend.beyond import Beyond
from cortex.frontend.computed import Computed, Constant, Named, evaluate, identifier, shown
from cortex.frontend.unseen import ABSENT, Relation, attribute_of
from cortex.ra.ir import Each, Item, Slot

Source = str | tuple[str, ...] | Callable[[Any], Any]
"""An attribute of the node's object, several child attributes (those that are not None), or a function of it."""


ONLY_HERE = 2
"""The references to an object that a local variable holds, as `sys.getrefcount` counts them."""


@dataclass(frozen=True)
class Declared:
    """A float field of a known shape, so that a model can be compiled before any node is seen."""

    shape: tuple[int, ...]
    source: str | Callable[[Any], Any] | None = None


def field(shape: int | Iterable[int] = (), source: str | Callable[[Any], Any] | None = None) -> Declared:
    """Declare a float field: `compile(..., fields={"x": cortex.field((300,))})`.

    `source` is the attribute that holds it or a function of the node; by default, the attribute of that name.
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(not isinstance(n, int) or n < 0 for n in sizes):
        raise ModelError(f"field(shape={shape!r}): a shape is a tuple of non-negative integers.")
    return Declared(sizes, source)


class Offered(dict[str, "str | Callable[[Any], Any] | Declared"]):
    """Fields that nodes of some package have, of which a model reads those that it needs, and the user's `own`.

    A name of the user's that the model never reads is misspelt and refused.
    """

    def __init__(self, offered: Mapping[str, Any], own: Mapping[str, Any] | None = None) -> None:
        super().__init__({**offered, **(own or {})})
        self.own = frozenset(own or ())


@dataclass(frozen=True)
class Failure:
    """Reading `node.NAME` raised an error."""

    error: Exception
    node: Any
    name: str


@dataclass(frozen=True)
class Evaluation:
    """A function of a node that gives a computed field; the linearizer evaluates it itself (native/steps.hpp)."""

    accessors: Accessors
    computed: Computed

    def __call__(self, node: Any) -> Any:
        """The value, of the class that Python's operators give."""
        return evaluate(self.computed, lambda operand: self.accessors.operand(node, operand))


class Accessors:
    """Reads attributes of the user's objects the way the model names them."""

    of_calls = False
    """Are the nodes of a request calls of a module's methods, made for the user's nodes?"""

    def __init__(
        self,
        fields: Mapping[str, str | Callable[[Any], Any] | Declared] | None = None,
        children: str | tuple[str, ...] | Callable[[Any], Iterable[Any]] | None = None,
    ) -> None:
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.failure: Failure | None = None
        """The last read that failed, so that who knows the structure can say where."""
        self.computed: dict[str, Computed] = {}
        """Fields that the model computes from others, by name."""
        self._sources: dict[str, Source] = {}
        self._offered = set(fields) - fields.own if isinstance(fields, Offered) else set()
        for name, given in (fields or {}).items():
            if isinstance(given, Declared):
                self.shapes[name] = given.shape
                given = name if given.source is None else given.source
            if not (isinstance(given, str) or callable(given)):
                raise ModelError(
                    f"fields={{{name!r}: {given!r}}}: give an attribute name, a function of the node, or "
                    "cortex.field(shape)."
                )
            self._sources[name] = given
        if isinstance(children, list):
            children = tuple(children)
        if children is not None:
            names = children if isinstance(children, tuple) else (children,) if isinstance(children, str) else ()
            if not (names or callable(children)) or not all(isinstance(n, str) for n in names):
                raise ModelError(
                    f"children={children!r}: give the attribute that holds the list of children, a tuple of the "
                    "attributes that each hold one child, or a function of the node that returns its children."
                )
            self._sources["children"] = children

    @property
    def given_fields(self) -> list[str]:
        """The names in `fields` that the model has to read."""
        return [name for name in self._sources if name != "children" and name not in self._offered]

    @property
    def renames(self) -> bool:
        """Does some name mean something else than the attribute of that name?"""
        return any(source != name for name, source in self._sources.items())

    def source(self, name: str) -> Source:
        """Where `node.NAME` comes from; the attribute of that name unless the user said otherwise."""
        if name in self.computed:
            return Evaluation(self, self.computed[name])
        return self._sources.get(name, name)

    def computed_by(self, name: str) -> Computed | None:
        """The expression that gives what has this name, if one does."""
        return self.computed.get(name)

    def compute(self, computed: Computed) -> str:
        """The name of a field that is computed; always the same one."""
        known = next((name for name, each in self.computed.items() if each == computed), None)
        if known is not None:
            return known
        stem, number = f"computed_{identifier(self._shown(computed))}", 2
        name = stem
        while name in self.computed or name in self._sources:
            name, number = f"{stem}_{number}", number + 1
        self.computed[name] = computed
        return name

    def operand(self, node: Any, operand: Named) -> Any:
        """The value of an operand of a field that is computed for a node."""
        for hop in operand.path:
            match hop:
                case Slot(name):
                    node = self.read(node, name, None)
                case Item(name, index):
                    node = self.items(node, name)[index]
                case Each():
                    raise AssertionError("a field is computed from children one by one")
        return self.read(node, operand.name, None)

    def _shown(self, computed: Computed) -> str:
        return shown(computed.fn, [self._shown_operand(x) for x in computed.operands])

    def _shown_operand(self, x: Constant | Named) -> str:
        if isinstance(x, Constant):
            return repr(x.value)
        if x.name in self.computed:
            return self._shown(self.computed[x.name])
        hops = [f"{hop.name}[{hop.index}]" if isinstance(hop, Item) else hop.name for hop in x.path]
        return ".".join([*hops, x.name])

    def item(self, name: str) -> tuple[str, int] | None:
        """The list of plain values, and the place in it, that a name stands for; None for other names."""
        return None

    def name_of_item(self, name: str, index: int) -> str:
        """The name that stands for one item of such a list."""
        return f"{name}_{index}"

    def item_name(self, name: str, stem: str) -> str:
        """What the items of such a list are called as fields of their own."""
        return f"{name}_{stem}"

    def add_name(self, other: str, name: str) -> None:
        """`other` is a second name for what `name` means."""
        self._sources[other] = self.source(name)

    def said(self, name: str) -> str:
        """What a name of the model is called in code."""
        return self._shown(self.computed[name]) if name in self.computed else f"node.{name}"

    def renamed(self, name: str) -> bool:
        """Does `node.NAME` mean anything else than the attribute of that name?"""
        return name in self._sources or name in self.computed

    def meanings(self, names: Iterable[str]) -> dict[str, Source]:
        """What the user said of attributes that these names of the model read."""
        read = {name for each in names for name in self._read_by(each)}
        return {name: self._sources[name] for name in read if name in self._sources}

    def _read_by(self, name: str) -> Iterator[str]:
        """The attributes that a name reads: itself, or those that it is computed from and the relations to them."""
        if name not in self.computed:
            yield name
            return
        for x in self.computed[name].operands:
            if isinstance(x, Named):
                yield from (hop.name for hop in x.path)
                yield from self._read_by(x.name)

    def add_meanings(self, sources: Mapping[str, Source]) -> None:
        """Let attributes mean what was said earlier."""
        self._sources |= sources

    def read(self, node: Any, name: str, default: Any) -> Any:
        """The value of `node.NAME`, or `default` where the object has no such attribute."""
        try:
            return self._read(node, name, default)
        except Exception as error:
            self.failure = Failure(error, node, name)
            raise

    def _read(self, node: Any, name: str, default: Any) -> Any:
        return self._take(self.source(name), node, name, default)

    def _take(self, source: Source, node: Any, name: str, default: Any) -> Any:
        match source:
            case str(attribute):
                value = attribute_of(node, attribute)
                if value is ABSENT and attribute != name and _is_array_view(node):
                    value = attribute_of(node, name)  # arrays may have the model's names
                return default if value is ABSENT else value
            case tuple(attributes) if _is_array_view(node) and attribute_of(node, attributes[0]) is ABSENT:
                return getattr(node, name, default)
            case tuple(attributes):
                present = (attribute_of(node, a) for a in attributes)
                return [child for child in present if child is not None and child is not ABSENT]
            case function:
                return function(node)

    def relations(self, names: Iterable[str]) -> list[Relation]:
        """The attributes that hold these relations of the model; none for those that are functions."""
        found: list[Relation] = []
        for name in names:
            match self.source(name):
                case str(attribute):
                    found.append((name, attribute, False))
                case tuple(attributes):
                    found += [(name, attribute, True) for attribute in attributes]
        return found

    def items(self, node: Any, name: str) -> list[Any]:
        """The children in the list relation `name`; none where it is None or absent."""
        found = self.listed(node, name)
        if any(child is None for child in found):
            raise Beyond(
                f"'{name}' of a {type(node).__name__} has None among the children, and what that means is seen only "
                "where the calls of the model are: call the compiled model before it is bound or saved, or leave None "
                "out."
            )
        return found

    def listed(self, node: Any, name: str) -> list[Any]:
        """What is in the list relation `name`, None included."""
        value = self.read(node, name, None)
        if value is None:
            return []
        problem = ""
        if not isinstance(value, Iterable):
            problem = "cannot be iterated"
        elif isinstance(value, str | bytes | Mapping | Set):
            problem = "does not hold nodes in order"
        elif isinstance(value, Iterator) and sys.getrefcount(value) > ONLY_HERE:
            problem = "can be read only once"
        if problem:
            raise StructureError(
                f"the model reads '{name}' of a {type(node).__name__} as a list of children, but it is a "
                f"{type(value).__name__}, which {problem}; it must be None or a list, tuple or other sequence of nodes"
            )
        return list(value)


def _is_array_view(node: Any) -> bool:
    """Is this a node of a forest of arrays?"""
    return getattr(type(node), "_cortex_is_array_view", False)

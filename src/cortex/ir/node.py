"""IR nodes and the one traversal of them.

A node is a frozen, slotted dataclass. Its operands are nodes or tuples of nodes; everything else in a
node is plain data. `repr(x)` is Python that rebuilds `x`; equality is structural and ignores `span`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")

_OPERAND_FIELDS: dict[type[Any], tuple[str, ...]] = {}
_PLAIN = frozenset(
    {"str", "int", "float", "bool", "str | None", "int | None", "tuple[str, ...]", "tuple[int, ...]"}
    | {"DType", "Storage", "UnaryFn", "BinaryFn", "LoopKind", "Scope"}
)
"""Declared types of fields that never hold a node; looking into them would be most of the work of a traversal."""
_ONE = frozenset({"Expr", "Var"})
_MANY = frozenset({"tuple[Expr, ...]", "tuple[Stmt, ...]", "tuple[Case, ...]"})
"""Declared types of fields that hold a node, and those of fields that hold nodes only: nobody needs to look which."""
_ALL_FIELDS: dict[type[Any], tuple[str, ...]] = {}
_LAST_FIRST: dict[type[Any], Callable[[Any], Sequence[Node]]] = {}


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def node(cls: type[T]) -> type[T]:
    """Class decorator: make `cls` an immutable IR node."""
    return dataclasses.dataclass(frozen=True, slots=True)(cls)


class Node:
    """Base of every IR node; it holds nothing and exists for `isinstance`."""

    __slots__ = ()


def span_field() -> Any:
    """A source position that neither equality nor `repr` sees."""
    return dataclasses.field(default=None, compare=False, repr=False)


def _operand_fields(cls: type[Any]) -> tuple[str, ...]:
    """Names of the fields of a node class that may hold operands, in order."""
    found = _OPERAND_FIELDS.get(cls)
    if found is None:
        fields = [f for f in dataclasses.fields(cls) if f.type not in _PLAIN and not str(f.type).startswith("Literal")]
        found = tuple(f.name for f in fields)
        _OPERAND_FIELDS[cls] = found
    return found


def operands(n: Node) -> list[Node]:
    """The direct operands of `n`, left to right."""
    found: list[Node] = []
    names = _OPERAND_FIELDS.get(type(n))
    for name in _operand_fields(type(n)) if names is None else names:
        value = getattr(n, name)
        if type(value) is tuple:
            found += [item for item in value if isinstance(item, Node)]
        elif isinstance(value, Node):
            found.append(value)
    return found


def walk(n: Node) -> Iterator[Node]:
    """`n` and all nodes below it, parents before operands."""
    stack = [n]
    pop, known = stack.pop, _LAST_FIRST
    while stack:
        top = pop()
        yield top
        cls = type(top)
        if cls not in known:
            known[cls] = _last_first(cls)
        stack += known[cls](top)


def _last_first(cls: type[Any]) -> Callable[[Any], Sequence[Node]]:
    """The function that gives the direct operands of a node of class `cls`, right to left."""
    names = _operand_fields(cls)[::-1]
    declared = {f.name: f.type for f in dataclasses.fields(cls)}
    if not names:
        return lambda n: ()
    get: Callable[[Any], Any] = attrgetter(*names)
    if all(declared[name] in _ONE for name in names):
        return get if len(names) > 1 else lambda n: (get(n),)
    if len(names) == 1 and declared[names[0]] in _MANY:
        return lambda n: get(n)[::-1]
    return lambda n: operands(n)[::-1]


def map_operands(n: T, f: Callable[[Any], Any]) -> T:
    """`n` with every direct operand `x` replaced by `f(x)`.

    In a tuple, `f` may return a tuple: its items take the place of `x` (so a statement can become
    several, or none). `n` itself is returned when nothing changed.
    """
    names = _OPERAND_FIELDS.get(type(n))
    if names == ():  # a variable or a constant, as are most
        return n
    changes: dict[str, Any] = {}
    for name in _operand_fields(type(n)) if names is None else names:
        value = getattr(n, name)
        if isinstance(value, Node):
            new = f(value)
            if new is not value:
                changes[name] = new
        elif type(value) is tuple and value:
            items: list[Any] = []
            changed = False
            for item in value:
                new = f(item) if isinstance(item, Node) else item
                changed |= new is not item
                if type(new) is tuple and isinstance(item, Node):
                    items.extend(new)
                else:
                    items.append(new)
            if changed:
                changes[name] = tuple(items)
    return _changed(n, changes) if changes else n


def _changed(n: T, changes: dict[str, Any]) -> T:
    """`dataclasses.replace`, which would be the most expensive part of every rewriting."""
    cls = type(n)
    if cls not in _ALL_FIELDS:
        _ALL_FIELDS[cls] = tuple(f.name for f in dataclasses.fields(cls))  # type: ignore[arg-type]
    return cls(*[changes[name] if name in changes else getattr(n, name) for name in _ALL_FIELDS[cls]])


def rewrite(n: Any, f: Callable[[Any], Any]) -> Any:
    """Rebuild `n` bottom-up: operands first, then `f` on the rebuilt node. `f` returns its argument to keep it."""
    return f(map_operands(n, lambda x: rewrite(x, f)))

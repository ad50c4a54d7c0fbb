"""Iterating over children, and reducing values over them.

A trace takes the children one by one, as Python does. A trace `at_once` (see `facts`) is a guess at what all those
traces have in common: every iteration over `node.children` gets one stand-in for all children, whose values are *per
edge*, and a reduction makes one value of them. `arity.at_once` compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NoReturn, TypeVar

from cortex.frontend import pointwise, reduction
from cortex.frontend.builder import Builder, Value, builder
from cortex.frontend.pointwise import arithmetic, broadcast_to, fill, unary
from cortex.frontend.signals import NothingReduced, OneByOne
from cortex.frontend.spans import fail, user_stack
from cortex.frontend.tensor import Operand, Tensor, value_of
from cortex.ra.ir import Arity, OverChildren

T = TypeVar("T")


def iterate(relation: str, each: Callable[[], T], items: Callable[[], list[T]]) -> Iterator[T]:
    """Iterate a list relation of the node: `each()` for all children at once, or `items()` one by one."""
    b = builder()
    if not b.facts.at_once:
        return iter(items())
    b.facts.iterate_at_once(relation)
    return _once(b, relation, each)


def _once(b: Builder, relation: str, each: Callable[[], T]) -> Iterator[T]:
    """One iteration that stands for all children; `b.iterating` knows while it runs."""
    b.iterating[relation] += 1
    try:
        yield each()
    finally:
        b.iterating[relation] -= 1


class EdgeValues(Operand):
    """One tensor for all children: what softmax over children gives in a trace at once. It is iterated beside them."""

    __slots__ = ("_value",)

    def __init__(self, value: Value) -> None:
        self._value = value

    def _cortex_value(self) -> Value:
        raise OneByOne

    def __iter__(self) -> Iterator[Tensor]:
        assert self._value.over is not None
        return _once(builder(), self._value.over, lambda: Tensor(self._value))

    def __getitem__(self, key: object) -> NoReturn:
        raise OneByOne

    def __len__(self) -> NoReturn:
        raise OneByOne


def is_list(x: Operand) -> bool:
    """Does this stand for several values: one per child, or a list of children?"""
    return isinstance(x, EdgeValues) or getattr(x, "_cortex_name", None) in builder().knowledge.lists


def gather(what: str, items: Iterable[Any]) -> tuple[list[Value], tuple[int, ...]]:
    """The values of an iterable, and their common shape. What an iteration at once yields is per edge, even a constant.

    Where there are none, the shape is the one that they have in a trace with more children.
    """
    if isinstance(items, Operand) and not isinstance(items, EdgeValues):
        raise fail(f"{what}() of nodes: reduce tensors of the children: cortex.{what}(f(k) for k in node.children).")
    b = builder()
    place = (what, *user_stack())
    running = +b.iterating
    found: list[Value] = []
    for item in items:
        value = value_of(item)
        started = b.iterating - running
        if started and value.over is None:
            value = broadcast_to(value, value.shape, over=next(iter(started)))
        found.append(value)
    shapes, expected = b.facts.shapes.setdefault(place, []), b.facts.expected.get(place, [])
    if found:
        shape = pointwise.broadcast_shapes(f"{what}()", *found)
        b.knowledge.note_reduced(place, shape)
    elif len(expected) > len(shapes) or len(set(expected)) == 1:
        shape = expected[min(len(shapes), len(expected) - 1)]
    elif (supposed := b.knowledge.shape_over_none(place)) is not None:
        shape = supposed
    else:
        raise NothingReduced(
            fail(
                f"{what}() of nothing: the shape of the result is not known. Give nodes without children a branch of "
                "their own (if node.is_leaf: return ...), or use cortex.zeros(...) where there is nothing to reduce."
            )
        )
    shapes.append(shape)
    return found, shape


def _is_finished(value: Value) -> bool:
    """Is this a per-edge value whose iteration has ended, so that a reduction has to be over its children?"""
    return value.over is not None and not value.builder.iterating[value.over]


def over_children(fn: reduction.ReduceFn, x: Value) -> Value:
    """Reduce a per-edge value over its children."""
    assert x.over is not None
    x = pointwise.as_float(x)
    assert x.over is not None
    return builder().emit(OverChildren(fn, x.name, x.over), x.shape, x)


def reduce_items(what: str, fn: Literal["add", "max", "min"], items: Iterable[Any]) -> Value:
    """sum, max or min of the items of an iterable: over children, or of several tensors. 0 of none."""
    return _reduced(fn, *gather(what, items))


def _reduced(fn: Literal["add", "max", "min"], values: list[Value], shape: tuple[int, ...]) -> Value:
    if not values:
        return fill(0.0, shape)
    finished = [_is_finished(v) for v in values]
    if any(finished) and fn != "add" and len(values) > 1:
        raise OneByOne
    parts = [over_children(fn, v) if done else v for v, done in zip(values, finished, strict=True)]
    result = parts[0]
    for part in parts[1:]:
        result = arithmetic(fn, result, part)
    return result


def mean_items(items: Iterable[Any]) -> Value:
    """The mean over children (0 over none), or of several tensors."""
    values, shape = gather("mean", items)
    if len(values) == 1 and _is_finished(values[0]):
        relation = values[0].over
        assert relation is not None
        count = builder().emit(Arity(relation), ())
        return arithmetic("div", over_children("add", values[0]), arithmetic("max", count, fill(1.0)))
    if any(map(_is_finished, values)):
        raise OneByOne
    return arithmetic("div", _reduced("add", values, shape), fill(len(values) or 1))


def softmax_items(items: Iterable[Any]) -> EdgeValues | list[Tensor]:
    """The softmax over children, elementwise: one value per child; or of several tensors, as a list."""
    values, shape = gather("softmax", items)
    largest = _reduced("max", values, shape)
    powers = [unary("exp", arithmetic("sub", value, largest)) for value in values]
    total = _reduced("add", powers, shape)
    shares = [arithmetic("div", power, total) for power in powers]
    return EdgeValues(shares[0]) if any(map(_is_finished, values)) else [Tensor(share) for share in shares]

"""Iterating over children, and reducing values over them.

A comprehension or generator over `node.children` runs once, with one stand-in for every child, whatever their
number: its values are *per edge*, and a reduction makes one value of them. A `for` statement, an unpacking or
a call such as `enumerate` sees the children one by one, which makes one kind for each number of children, unless
`arity.widen` finds that all of them are instances of one pattern.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Literal, NoReturn, TypeVar

from cortex.frontend import movement, pointwise, reduction
from cortex.frontend.builder import Builder, Site, Value, builder
from cortex.frontend.counting import refuse_counting
from cortex.frontend.empty_parts import Part, Supposed, next_of
from cortex.frontend.pointwise import arithmetic, broadcast_to, fill, unary
from cortex.frontend.spans import fail, user_frame
from cortex.frontend.tensor import Operand, Tensor, value_of
from cortex.ra.ir import Arity, OverChildren

T = TypeVar("T")

GET_ITER, FOR_ITER = dis.opmap["GET_ITER"], dis.opmap["FOR_ITER"]
COMPREHENSIONS = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")


def iterate(relation: str, each: Callable[[], T], items: Callable[[], list[T]]) -> Iterator[T]:
    """Iterate a list relation of the node: `each()` for all children at once, or `items()` one by one."""
    frame = user_frame()
    b = builder()
    match _purpose(frame):
        case "comprehension":
            assert frame is not None
            refuse_counting(frame, relation)
            return _for_all(b, relation, _site(frame), each)
        case "call":
            return _with_edges(b, relation, _site(frame), each, items)
        case _:
            return iter(items())


def _purpose(frame: FrameType | None) -> Literal["comprehension", "call", "sequence"]:
    """What the user's code iterates for, read off the running instruction."""
    if frame is None:
        return "sequence"
    code = frame.f_code.co_code
    at = code[frame.f_lasti]
    if at == GET_ITER:
        statement = code[frame.f_lasti + 2] == FOR_ITER and frame.f_code.co_name not in COMPREHENSIONS
        return "sequence" if statement else "comprehension"
    return "call" if "CALL" in dis.opname[at] else "sequence"


def _site(frame: FrameType | None) -> Site:
    return (frame, -1 if frame is None else frame.f_lasti)


def _once(b: Builder, relation: str, site: Site, each: Callable[[], T]) -> Iterator[T]:
    """One iteration that stands for all children; `b.iterating` knows while it runs."""
    sites = b.iterating.setdefault(relation, [])
    if any(other != site for other in sites):
        raise fail(
            f"a comprehension over '{relation}' inside another one over '{relation}': pairs of children are not "
            "supported. Reduce the inner one first, outside: s = cortex.sum(... for k in ...)."
        )
    sites.append(site)
    try:
        yield each()
    finally:
        sites.remove(site)


def _for_all(b: Builder, relation: str, site: Site, each: Callable[[], T]) -> Iterator[T]:
    """As `_once`, for the user's comprehension: unless a reduction of Cortex runs it, its values must be per edge."""
    reduced = b.gathering > 0
    child = each()
    yield from _once(b, relation, site, lambda: child)
    if not reduced and not b.gathering and not getattr(child, "_cortex_used", True):
        raise fail(
            f"a comprehension over '{relation}' neither reads a field of the child nor calls the model on it. It runs "
            "once for all children, so what it makes would count once, whatever their number. Put a generator itself "
            f"into the reduction, cortex.sum(w.b for k in node.{relation}), or iterate node.{relation} where its "
            "children are used."
        )


def _with_edges(
    b: Builder, relation: str, site: Site, each: Callable[[], T], items: Callable[[], list[T]]
) -> Iterator[T]:
    """`zip(a, node.children)`: all at once when `a` holds one value per child, else one by one.

    `zip` asks all its arguments for iterators before it takes the first item, so this is known by then.
    """
    if site in b.edge_sites:
        yield from _once(b, relation, site, each)
    else:
        yield from items()


class EdgeValues(Operand):
    """One tensor per child: what softmax over children returns. Iterate it beside the children, with zip.

    It is an `Operand` so that computing with it as if it were one tensor says what to do instead.
    """

    __slots__ = ("_value",)

    def __init__(self, value: Value) -> None:
        self._value = value

    def _cortex_explain(self) -> str:
        return (
            f"the softmax over '{self._value.over}' has one value per child; it is not a tensor. "
            f"Use it as in cortex.sum(a_k * f(k).h for a_k, k in zip(a, node.{self._value.over}))."
        )

    def _cortex_value(self) -> Value:
        raise fail(self._cortex_explain())

    def __iter__(self) -> Iterator[Tensor]:
        b = builder()
        site = _site(user_frame())
        b.edge_sites.add(site)
        assert self._value.over is not None
        return _once(b, self._value.over, site, lambda: Tensor(self._value))

    def __getitem__(self, key: object) -> NoReturn:
        raise fail(self._cortex_explain())

    def __len__(self) -> NoReturn:
        raise fail(self._cortex_explain())


def is_list(x: Operand) -> bool:
    """Does this stand for several values: one per child, or a list of children?"""
    return isinstance(x, EdgeValues) or getattr(x, "_cortex_name", None) in builder().knowledge.lists


END = object()


def gather(what: str, items: Iterable[Any]) -> tuple[list[Value], list[Value]]:
    """The values of an iterable. What a comprehension over children yields is per edge, even a constant.

    The second list has values that there would be if an empty part of the children were not empty.
    """
    if isinstance(items, Operand) and not isinstance(items, EdgeValues):
        raise fail(f"{what}() of nodes: reduce tensors of the children: cortex.{what}(f(k) for k in node.children).")
    b = builder()
    running = {r for r, sites in b.iterating.items() if sites}
    found: list[Value] = []
    supposed = Supposed(b)
    iterator = iter(items)
    while (item := next_of(b, iterator, END)) is not END:
        value = value_of(item)
        started = [r for r, sites in b.iterating.items() if sites and r not in running]
        if supposed.takes(value):
            continue
        if started and value.over is None:
            value = broadcast_to(value, value.shape, over=started[0])
        found.append(value)
    supposed.end()
    return found, supposed.values


def _is_finished(value: Value) -> bool:
    """Is this a per-edge value whose comprehension has ended, so that a reduction has to be over its children?"""
    return value.over is not None and not value.builder.iterating.get(value.over)


def over_children(fn: reduction.ReduceFn, x: Value) -> Value:
    """Reduce a per-edge value over its children."""
    assert x.over is not None
    x = pointwise.as_float(x)
    assert x.over is not None
    return builder().emit(OverChildren(fn, x.name, x.over), x.shape, x)


@contextmanager
def _all_at_once(x: Value) -> Iterator[None]:
    """Compute per edge of `x`, as a comprehension over its relation would."""
    assert x.over is not None
    sites = x.builder.iterating.setdefault(x.over, [])
    sites.append((None, 0))
    try:
        yield
    finally:
        sites.remove((None, 0))


def reduce_items(what: str, fn: Literal["add", "max", "min"], items: Iterable[Any]) -> Value:
    """sum, max or min of the items of an iterable: over children, or of several tensors."""
    return _reduced(what, fn, *gather(what, items))


def _reduced(what: str, fn: Literal["add", "max", "min"], values: list[Value], supposed: list[Value]) -> Value:
    if not values and supposed:
        return fill(0.0, pointwise.broadcast_shapes(f"{what}()", *supposed))
    if not values:
        raise fail(
            f"{what}() of nothing: the shape of the result is not known. Put a generator over the children itself into "
            f"it, cortex.{what}(f(k) for k in node.children[1:]), which is 0 over none, or use cortex.zeros(...) then."
        )
    finished = [_is_finished(v) for v in values]
    if any(finished) and fn != "add" and len(values) > 1:
        raise fail(f"{what}() of values per child together with others; reduce over the children first.")
    parts = [over_children(fn, v) if done else v for v, done in zip(values, finished, strict=True)]
    result = parts[0]
    for part in parts[1:]:
        result = arithmetic(fn, result, part)
    return result


def mean_items(items: Iterable[Any]) -> Value:
    """The mean over children (0 over none), or of several tensors."""
    values, supposed = gather("mean", items)
    if len(values) == 1 and _is_finished(values[0]):
        relation = values[0].over
        assert relation is not None
        count = builder().emit(Arity(relation), ())
        return arithmetic("div", over_children("add", values[0]), arithmetic("max", count, fill(1.0)))
    if any(map(_is_finished, values)):
        raise fail("mean() of values per child together with others; reduce over the children first.")
    total = _reduced("mean", "add", values, supposed)
    return arithmetic("div", total, fill(len(values))) if values else total


def softmax_items(items: Iterable[Any]) -> EdgeValues | list[Tensor]:
    """The softmax over children, elementwise: one value per child; or of several tensors, as a list."""
    values, supposed = gather("softmax", items)
    if not values and supposed:
        shape = pointwise.broadcast_shapes("softmax()", *supposed)
        return Part([], lambda: Tensor(fill(0.0, shape)))
    if len(values) == 1 and _is_finished(values[0]):
        largest = over_children("max", values[0])
        with _all_at_once(values[0]):
            powers = unary("exp", arithmetic("sub", values[0], largest))
            return EdgeValues(arithmetic("div", powers, over_children("add", powers)))
    if any(map(_is_finished, values)) or not values:
        raise fail("softmax() over items needs values of one comprehension over children, or a list of tensors.")
    rows = [movement.reshape(v, (1, *v.shape)) for v in values]
    shares = movement.split(reduction.softmax(movement.concat(rows, 0), 0), len(rows), 0)
    return [Tensor(movement.reshape(share, share.shape[1:])) for share in shares]

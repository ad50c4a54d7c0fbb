"""Functions of whole tensors whose every row depends on that row alone: a layer, arithmetic, `cat` along other axes.

Tensors that are given beside the structure have any number of rows. A function of them is applied to one row where that
gives the row of the result. Whether it does is tried, with torch: on a few rows of arbitrary elements at once, and on
each of them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

PLAIN = (str, int, float, bool, type(None), type(...), torch.dtype, torch.device, torch.layout, torch.memory_format)
ROWS = 3
"""How many rows are tried."""
IN_PLACE = ("__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ipow__")


@dataclass(frozen=True)
class Rows:
    """A tensor of the request, by the name under which the call has it."""

    name: str


class RowCount:
    """The size of the axis of rows, which differs from request to request."""


class Applied:
    """A function of tensors of the request; `path` leads to one of several results. Equal to others that do the same.

    Arguments have `Rows`, `Applied` and `RowCount` in them where the user gave tensors and their sizes.
    """

    def __init__(self, function: Any, args: Any, kwargs: dict[str, Any], path: tuple[int, ...]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.path = path
        self._key = (function, path, _key_of(args), _key_of(sorted(kwargs.items())))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Applied) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


Expression: TypeAlias = Rows | Applied


@dataclass(frozen=True)
class Extent:
    """The shape of a tensor, with None for the number of rows, its element type, and the range of its integers."""

    sizes: tuple[int | None, ...]
    dtype: torch.dtype
    range: tuple[int, int] = (0, 0)

    @property
    def axis(self) -> int:
        """That of the rows."""
        return self.sizes.index(None)

    @classmethod
    def of(cls, sample: torch.Tensor) -> Extent:
        """That of a tensor of the request, whose first axis is that of the rows."""
        return cls((None, *sample.shape[1:]), sample.dtype, _range(sample))


def _range(x: torch.Tensor) -> tuple[int, int]:
    if x.is_floating_point() or x.is_complex() or x.dtype is torch.bool or not x.numel():
        return (0, 0)
    return int(x.min()), int(x.max())


def changed(x: Any, change: Callable[[Any], Any]) -> Any:
    """Arguments of a function with `change` of each that is no collection."""
    match x:
        case list():
            return [changed(each, change) for each in x]
        case tuple() if type(x) is tuple:
            return tuple(changed(each, change) for each in x)
        case dict():
            return {name: changed(each, change) for name, each in x.items()}
        case slice():
            return slice(changed(x.start, change), changed(x.stop, change), changed(x.step, change))
    return change(x)


def parts(x: Any) -> Iterator[Any]:
    """All arguments that are no collections."""
    found: list[Any] = []
    changed(x, found.append)
    return iter(found)


def names_in(e: Expression) -> list[str]:
    """The tensors of the request that it is computed from, in order, each once."""
    if isinstance(e, Rows):
        return [e.name]
    inner = (x for x in parts((e.args, e.kwargs)) if isinstance(x, Rows | Applied))
    return list(dict.fromkeys(name for x in inner for name in names_in(x)))


def renamed(e: Expression, names: Mapping[str, str]) -> Expression:
    """The same of tensors of other names."""
    if isinstance(e, Rows):
        return Rows(names[e.name])
    args, kwargs = changed((e.args, e.kwargs), lambda x: renamed(x, names) if isinstance(x, Rows | Applied) else x)
    return Applied(e.function, args, kwargs, e.path)


def holds(e: Expression, is_held: Callable[[Any], bool]) -> bool:
    """Is any argument such a thing?"""
    if isinstance(e, Rows):
        return False
    return any(holds(x, is_held) if isinstance(x, Rows | Applied) else is_held(x) for x in parts((e.args, e.kwargs)))


def at_row(e: Expression, row: Callable[[str], Any]) -> Any:
    """What it is for one row: `row` gives that of a tensor, as a tensor of one row."""
    if isinstance(e, Rows):
        return row(e.name)

    def known(x: Any) -> Any:
        if isinstance(x, RowCount):
            return 1
        return at_row(x, row) if isinstance(x, Rows | Applied) else x

    args, kwargs = changed((e.args, e.kwargs), known)
    found = e.function(*args, **kwargs)
    for number in e.path:
        found = found[number]
    return found


Tried: TypeAlias = "Extent | tuple[Tried, ...] | None"
"""What a function gives: a tensor by rows, several of them, or (None) no such thing."""


def changes_in_place(function: Any, kwargs: dict[str, Any]) -> bool:
    """Does a function change one of its arguments?"""
    name = getattr(function, "__name__", "")
    return name in IN_PLACE or (name.endswith("_") and not name.endswith("__")) or kwargs.get("out") is not None


def tried(function: Any, args: Any, kwargs: dict[str, Any], extent: Callable[[Any], Extent | None]) -> Tried:
    """What a function of tensors gives, if it can be applied to each row; `extent` is that of tensors by rows."""
    if changes_in_place(function, kwargs):
        return None
    with torch._C.DisableTorchFunction(), torch.no_grad():
        for widen in (True, False):
            try:
                return _tried(function, args, kwargs, extent, widen)
            except Exception:
                continue
    return None


def _tried(function: Any, args: Any, kwargs: Any, extent: Callable[[Any], Extent | None], widen: bool) -> Tried:
    generator = torch.Generator().manual_seed(0)
    made: dict[Any, torch.Tensor] = {}

    def sample(x: Any, row: int | None) -> Any:
        if isinstance(x, RowCount):
            return ROWS if row is None else 1
        known = extent(x)
        if known is None and not isinstance(x, torch.Tensor):
            return x
        if id(x) not in made:
            made[id(x)] = _arbitrary(x, known, widen, generator)
        if known is None or row is None:
            return made[id(x)].clone()
        return made[id(x)].narrow(known.axis, row, 1).clone()

    def run(row: int | None) -> Any:
        now_args, now_kwargs = changed((args, kwargs), lambda x: sample(x, row))
        return function(*now_args, **now_kwargs)

    return _joined(run(None), [run(row) for row in range(ROWS)])


def _arbitrary(x: Any, known: Extent | None, widen: bool, generator: torch.Generator) -> torch.Tensor:
    """A tensor like `x`; floats lie where most functions are defined."""
    if known is None:
        if not x.is_meta and not x.is_floating_point():
            return torch.clone(x.detach())
        known = Extent(tuple(x.shape), x.dtype)
    sizes = [ROWS if n is None else n for n in known.sizes]
    if known.dtype is torch.bool:
        return torch.rand(sizes, generator=generator) < 0.5
    if known.dtype.is_floating_point:
        return (torch.rand(sizes, generator=generator) * 0.8 + 0.1).to(known.dtype)
    low, high = known.range
    if widen and low == high:
        low, high = min(low, 0), max(high, 1)
    return torch.randint(low, high + 1, sizes, generator=generator).to(known.dtype)


def _joined(found: Any, of_rows: list[Any]) -> Tried:
    """What the rows alone give, if that is what they are among the others."""
    if type(found) in (list, tuple) or hasattr(found, "_fields"):
        if any(len(each) != len(found) for each in of_rows):
            return None
        items = tuple(_joined(x, [each[i] for each in of_rows]) for i, x in enumerate(found))
        return None if not items or None in items else items
    if not isinstance(found, torch.Tensor):
        return None
    alone = of_rows[0].shape
    sizes = tuple(n if n == alone[i] else None for i, n in enumerate(found.shape)) if len(alone) == found.dim() else ()
    if sizes.count(None) != 1:
        return None
    axis = sizes.index(None)
    if (found.shape[axis], alone[axis]) != (ROWS, 1):
        return None
    for row, each in enumerate(of_rows):
        if each.dtype != found.dtype or not _is_same(found.narrow(axis, row, 1), each):
            return None
    return Extent(sizes, found.dtype, _range(found))


def _is_same(x: torch.Tensor, y: torch.Tensor) -> bool:
    if x.shape != y.shape:
        return False
    return torch.allclose(x, y, equal_nan=True) if x.is_floating_point() else torch.equal(x, y)


def _key_of(x: Any) -> Any:
    match x:
        case list() | tuple():
            return (type(x), *map(_key_of, x))
        case dict():
            return tuple((name, _key_of(each)) for name, each in x.items())
        case slice():
            return ("slice", _key_of(x.start), _key_of(x.stop), _key_of(x.step))
        case RowCount():
            return "rows"
        case Rows() | Applied():
            return x
    return (type(x), x) if isinstance(x, PLAIN) else id(x)

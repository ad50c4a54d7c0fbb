"""The form of a result: which tensors it has, and what they are put in (tuples, lists, dicts, dataclasses, ...).

flatten((h, {"c": c}))   ->  Form, [h, c]
form.rebuild([h, c])     ->  (h, {"c": c})
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from cortex.errors import StructureError
from cortex.frontend.spans import fail
from cortex.frontend.state import StateRecord

Path: TypeAlias = tuple[Any, ...]
"""The keys that lead to a part."""

EXACT = 1 << 24
"""Whole numbers up to here are exact in single precision."""

FLOAT = "float32"
KindOf: TypeAlias = Callable[[Any], str | None]
"""The name of a tensor's element type; None for what is no tensor."""

PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class Form:
    """A tensor ("tensor"), a plain value that is always the same ("plain"), or a collection of forms.

    A list to which the calls below add, and so of any length, is "grown". "rows" are a tensor or a list of any length
    in a result of forward; their part is the form of one.
    """

    kind: Literal["tensor", "plain", "tuple", "list", "dict", "record", "grown", "rows"]
    make: Any = None
    """The plain value; the class of a record; a tensor's element type unless that is float32; the name of a list that
    grows; the axis of a tensor along which there are rows, None for a list of rows."""
    keys: tuple[Any, ...] = ()
    parts: tuple[Form, ...] = ()

    def names(self) -> Iterator[str]:
        """A readable name for each tensor: "out", "0", "h", "state_c"."""
        for name in self._names():
            yield name or "out"

    def _names(self) -> Iterator[str]:
        if self.kind == "tensor":
            yield ""
        if self.kind == "rows":
            yield from self.parts[0]._names()
            return
        for key, part in zip(self.keys, self.parts, strict=True):
            for inner in part._names():
                yield f"{key}_{inner}" if inner else str(key)

    def types(self) -> Iterator[str | None]:
        """The element type of each tensor, "bool" or "int64"; None is float32."""
        if self.kind == "tensor":
            yield self.make
        for part in self.parts:
            yield from part.types()

    @property
    def count(self) -> int:
        """How many tensors it has."""
        return 1 if self.kind == "tensor" else sum(part.count for part in self.parts)

    @property
    def has_rows(self) -> bool:
        """Has any part of it rows?"""
        return self.kind == "rows" or any(part.has_rows for part in self.parts)

    def returned(self, states: list[Any], tensor: Callable[[Any], Any]) -> Any:
        """The result with these states, arrays of float32, each of its own element type and made a `tensor`.

        What has rows is, for several calls at once, a list of arrays, and a list of results.
        """
        if self.kind == "tensor" and self.make is None:
            return tensor(states[0])

        def made(x: Any, kind: str | None) -> Any:
            return [made(each, kind) for each in x] if type(x) is list else tensor(typed(x, kind))

        return self.rebuild([made(x, kind) for x, kind in zip(states, self.types(), strict=True)])

    def rebuild(self, tensors: list[Any], grown: Callable[[str], Any] = lambda name: None) -> Any:
        """The result with these tensors, and what `grown` gives in place of lists to which calls add."""
        return tensors[0] if self.kind == "tensor" else self._rebuild(iter(tensors), grown)

    def _rebuild(self, tensors: Iterator[Any], grown: Callable[[str], Any]) -> Any:
        if self.kind == "tensor":
            return next(tensors)
        if self.kind == "plain":
            return self.make
        if self.kind == "grown":
            return grown(self.make)
        if self.kind == "rows":
            columns = [next(tensors) for _ in range(self.count)]
            return list(map(self._of_rows, zip(*columns, strict=True))) if _is_many(columns) else self._of_rows(columns)
        values = [part._rebuild(tensors, grown) for part in self.parts]
        match self.kind:
            case "tuple":
                return tuple(values)
            case "list":
                return values
            case "dict":
                return dict(zip(self.keys, values, strict=True))
            case _:
                return _record(self.make, self.keys, values)

    def _of_rows(self, columns: Sequence[Any]) -> Any:
        """A tensor that has rows, or a list of what its rows are."""
        if self.make is None:
            return [self.parts[0].rebuild([column[i] for column in columns]) for i in range(len(columns[0]))]
        [column] = columns
        if not self.make:
            return column
        return np.moveaxis(column, 0, self.make) if isinstance(column, np.ndarray) else column.movedim(0, self.make)

    def text(self) -> str:
        """For messages: `(tensor, {'c': tensor})`."""
        match self.kind:
            case "tensor":
                return "a tensor" if self.make is None else f"a tensor of {self.make}"
            case "plain":
                return repr(self.make)
            case "grown":
                return "a list that grows"
            case "rows":
                return f"{'a list' if self.make is None else 'a tensor'} of any length"
            case "tuple":
                return f"({', '.join(part.text() for part in self.parts)})"
            case "list":
                return f"[{', '.join(part.text() for part in self.parts)}]"
            case _:
                inside = ", ".join(f"{k!r}: {part.text()}" for k, part in zip(self.keys, self.parts, strict=True))
                return f"{{{inside}}}" if self.kind == "dict" else f"{self.make.__name__}({inside})"


def typed(state: Any, kind: str | None) -> Any:
    """A state, an array of float32, as an array of the element type that was stored in it."""
    if kind is None:
        return state
    if hasattr(state, "detach"):
        state = state.detach().numpy()
    if kind != "bool" and not (abs(state) < EXACT).all():
        raise StructureError(
            f"the result has an integer that is not below {EXACT}, or is none. Integers are computed in single "
            "precision, which does not hold all that are larger. Return floats, x.float(), or compute with Python's "
            "numbers on the nodes: a field that is computed from fields alone is exact."
        )
    return state.astype(kind)


def varying(a: Form, b: Form, at: Path = ()) -> set[Path] | None:
    """Where numbers of one form are other numbers or tensors in the other, or tensors are of other element types.

    None where the forms differ otherwise.
    """
    if a == b:
        return set()
    if {a.kind, b.kind} <= {"tensor", "plain"}:
        return {at} if _is_numeric(a) and _is_numeric(b) else None
    if (a.kind, a.make, a.keys) != (b.kind, b.make, b.keys):
        return None
    found: set[Path] = set()
    for key, mine, theirs in zip(a.keys, a.parts, b.parts, strict=True):
        inner = varying(mine, theirs, (*at, key))
        if inner is None:
            return None
        found |= inner
    return found


def grown(a: Form, b: Form, at: Path = ()) -> set[Path] | None:
    """Where lists of tensors are of different lengths in two forms; None where the forms differ otherwise."""
    if a == b:
        return set()
    if a.kind == b.kind == "list" and len({*a.parts, *b.parts}) == 1 and a.keys != b.keys:
        return {at}
    if a.kind == b.kind == "list" and not (a.parts and b.parts):
        return {at}
    if (a.kind, a.make, a.keys) != (b.kind, b.make, b.keys):
        return None
    inner = [grown(mine, theirs, (*at, key)) for key, mine, theirs in zip(a.keys, a.parts, b.parts, strict=True)]
    return None if None in inner else {path for each in inner for path in each or ()}


def empty_lists(form: Form, at: Path = ()) -> set[Path]:
    """Where a form has lists of nothing."""
    if form.kind == "list" and not form.parts:
        return {at}
    return {p for key, part in zip(form.keys, form.parts, strict=True) for p in empty_lists(part, (*at, key))}


@dataclass(frozen=True)
class Column:
    """In place of a tensor of a result: one for each row."""

    rows: list[Any]


@dataclass(frozen=True)
class WithRows:
    """In place of a part of a result that has rows: the form of one, and its tensors, each with all rows."""

    axis: int | None
    element: Form
    columns: list[Column]


@dataclass(frozen=True)
class Grown:
    """In place of a list in a result, to which the calls below add."""

    name: str


def without_lists(x: Any, paths: Collection[Path]) -> tuple[Any, dict[str, list[Any]]]:
    """A result with `Grown` in place of the lists at these places, and the lists by name."""
    found: dict[str, list[Any]] = {}

    def taken_out(at: Path, part: Any) -> Any:
        if type(part) is not list:
            return part
        name = "_".join(["returned", *map(str, at)])
        found[name] = part
        return Grown(name)

    return replaced(x, paths, taken_out), found


def replaced(x: Any, paths: Collection[Path], instead: Callable[[Path, Any], Any], at: Path = ()) -> Any:
    """A result with something `instead` of the parts at these places."""
    if at in paths:
        return instead(at, x)
    if not any(path[: len(at)] == at for path in paths):
        return x

    def inside(key: Any, value: Any) -> Any:
        return replaced(value, paths, instead, (*at, key))

    match x:
        case tuple() if hasattr(x, "_fields"):
            return _record(type(x), x._fields, [inside(*each) for each in zip(x._fields, x, strict=True)])
        case tuple() | list():
            return type(x)(inside(i, value) for i, value in enumerate(x))
        case dict():
            return {key: inside(key, value) for key, value in x.items()}
        case _ if dataclasses.is_dataclass(x) and not isinstance(x, type):
            keys = tuple(f.name for f in dataclasses.fields(x))
            return _record(type(x), keys, [inside(key, getattr(x, key)) for key in keys])
    return x


def places(form: Form, at: Path = ()) -> Iterator[Path]:
    """The places of the tensors of a form, in order; those of rows are where these are."""
    if form.kind == "tensor":
        yield at
    if form.kind == "rows":
        yield from [at] * form.count
        return
    for key, part in zip(form.keys, form.parts, strict=True):
        yield from places(part, (*at, key))


def _is_many(columns: Sequence[Any]) -> bool:
    """Are these the rows of several calls?"""
    return type(columns[0]) is list


def _is_numeric(form: Form) -> bool:
    """A tensor or a number; but not of truth values, whose sums are others than those of 0 and 1."""
    return form.make != "bool" if form.kind == "tensor" else _is_number(form.make)


def _is_number(x: Any) -> bool:
    """Is it a number that a tensor can hold?"""
    return isinstance(x, int | float) and not isinstance(x, bool) and (isinstance(x, float) or abs(x) <= EXACT)


def _record(made: type, keys: tuple[Any, ...], values: list[Any]) -> Any:
    if hasattr(made, "_make"):
        return made._make(values)
    if made is StateRecord:
        return StateRecord(dict(zip(keys, values, strict=True)))
    record: Any = object.__new__(made)  # without __init__, which may take other arguments
    for key, value in zip(keys, values, strict=True):
        object.__setattr__(record, key, value)
    return record


def parts_of(value: Any) -> list[Any] | None:
    """What a collection holds; None of anything else."""
    if isinstance(value, tuple | list | StateRecord):
        return list(value)
    return list(value.values()) if isinstance(value, dict) else None


def flatten(result: Any, kind_of: KindOf, numbers: Collection[Path] = ()) -> tuple[Form, list[Any]]:
    """The form of a result and its tensors in order; so are the numbers at these places, with tensors of floats."""
    tensors: list[Any] = []
    return _form(result, kind_of, tensors, numbers, ()), tensors


def _form(x: Any, kind_of: KindOf, tensors: list[Any], numbers: Collection[Path], at: Path) -> Form:
    kind = kind_of(x)
    if kind is not None or (at in numbers and _is_number(x)):
        tensors.append(x)
        return Form("tensor", None if at in numbers or kind == FLOAT else kind)
    match x:
        case tuple() if hasattr(x, "_fields"):
            keys, values, kind = tuple(x._fields), list(x), "record"
        case tuple() | list():
            keys, values, kind = tuple(range(len(x))), list(x), "tuple" if isinstance(x, tuple) else "list"
        case dict():
            keys, values, kind = tuple(x), list(x.values()), "dict"
        case StateRecord():
            keys, values, kind = tuple(x._tensors), list(x), "record"
        case _ if isinstance(x, PLAIN):
            return Form("plain", x)
        case Grown(name):
            return Form("grown", name)
        case WithRows(axis, element, columns):
            tensors += columns
            return Form("rows", axis, (), (element,))
        case _ if dataclasses.is_dataclass(x) and not isinstance(x, type):
            keys = tuple(f.name for f in dataclasses.fields(x))
            values, kind = [getattr(x, key) for key in keys], "record"
        case _:
            what = "node" if hasattr(x, "_cortex_steps") else type(x).__name__
            raise fail(
                f"the result contains a {what}; tensors, tuples, lists, dicts, dataclasses and named "
                "tuples of them are accepted."
            )
    parts = tuple(_form(value, kind_of, tensors, numbers, (*at, key)) for key, value in zip(keys, values, strict=True))
    return Form(kind, type(x) if kind == "record" else None, keys, parts)  # type: ignore[arg-type]

"""What a call returns: states at the roots, and at every node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from cortex.runtime.storage import Array

if TYPE_CHECKING:
    from cortex.ra.ir import Model, StateDecl

RowsOfResults = tuple[tuple[str, tuple[tuple[int, str, str], ...]], ...]
"""Results that have rows: states, by number, of children of the roots, by relation; and how these are taken."""


def rows_of_results(m: Model) -> RowsOfResults:
    """The results of a model that have rows. A root has the lists of its own kind; those of others are empty."""
    numbers = {state.name: number for number, state in enumerate(m.outputs)}
    found: dict[str, dict[tuple[int, str, str], None]] = {}
    for kind in m.kinds:
        for each in kind.rows:
            found.setdefault(each.name, {}).setdefault((numbers[each.state], each.relation, each.how))
    return tuple((name, tuple(runs)) for name, runs in found.items())


class ByState:
    """Arrays by state name: `out.h`, `out["h"]`, or by position `out[0]`; unpacks in the model's order."""

    __slots__ = ()

    _names: tuple[str, ...]

    def _get(self, number: int) -> Any:
        """The array of a state, by its position."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if name in self._names:
            return self._get(self._names.index(name))
        raise AttributeError(f"no state {name!r}; the model's states are {', '.join(self._names)}")

    def __getitem__(self, key: str | int) -> Any:
        if isinstance(key, str):
            if key not in self._names:
                raise KeyError(f"no state {key!r}; the model's states are {', '.join(self._names)}")
            key = self._names.index(key)
        return self._get(range(len(self._names))[key])

    def __iter__(self) -> Iterator[Any]:
        return (self._get(i) for i in range(len(self._names)))

    def __len__(self) -> int:
        return len(self._names)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._names})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}: {self[n].shape}' for n in self._names)})"


class PlainRun:
    """The arrays of a call, without what made them: of an output that was pickled or copied."""

    __slots__ = ("_nodes", "_roots")

    def __init__(self, roots: tuple[Any, ...], nodes: tuple[Any, ...]) -> None:
        self._roots = roots
        self._nodes = nodes

    def root(self, state: int) -> Any:
        """State number `state` at the roots."""
        return self._roots[state]

    def nodes(self, state: int) -> Any:
        """State number `state` at every node."""
        return self._nodes[state]


class NodeStates(ByState):
    """States at every node."""

    __slots__ = ("_names", "_run")

    def __init__(self, names: tuple[str, ...], run: Any) -> None:
        self._names = names
        self._run = run

    def _get(self, number: int) -> Any:
        return self._run.nodes(number)

    def __reduce__(self) -> tuple[Any, ...]:
        return NodeStates, (self._names, PlainRun((), tuple(self)))


class Output(ByState):
    """States at the roots of a request; `nodes` has them at every node, in the user's order.

    For one structure an array has the state's shape; for a list of structures it has one row per structure. The
    object holds the memory of its call until it is dropped; the arrays it gives are the caller's own, made when they
    are first asked for. Each model has a class of its own, see `output_type`.
    """

    __slots__ = ("_run",)

    def __init__(self, run: Any) -> None:
        self._run = run

    _rows: Mapping[str, list[tuple[int, str, str]]]

    def _get(self, number: int) -> Any:
        return self._run.root(number)

    def result(self, name: str, is_single: bool) -> Any:
        """A state at the roots; or the rows of a result that has them: an array, a list of arrays for a list."""
        if name not in self._rows:
            return self[name]
        rows, ends = self._run.rows(self._rows[name])
        return rows if is_single else np.split(rows, ends[:-1])

    @property
    def nodes(self) -> NodeStates:
        """States at every node: order of first visit in a preorder walk, or the index order of arrays.

        A walk takes a node's children by attribute in alphabetical order (`left` before `right`), then lists.
        """
        return NodeStates(self._names, self._run)

    def __reduce__(self) -> tuple[Any, ...]:
        return _with_arrays, (self._names, PlainRun(tuple(self), tuple(self.nodes)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if len(self) != 1:
            raise TypeError(f"the model has {len(self)} states ({', '.join(self._names)}); choose one")
        return np.array(self[0], dtype=dtype, copy=copy)


def output_type(names: tuple[str, ...], rows: RowsOfResults = ()) -> type[Output]:
    """`Output` for these states and these results that have rows, which are none of the states: one class for each."""
    return _output_type(names, rows)


@cache
def _output_type(names: tuple[str, ...], rows: RowsOfResults) -> type[Output]:
    """A property for each state: the way by `__getattr__` takes four times as long."""

    def state(number: int) -> property:
        return property(lambda output: output._run.root(number))

    taken = set(dir(Output))
    properties = {name: state(i) for i, name in enumerate(names) if name not in taken}
    own: dict[str, Any] = {"__slots__": (), "__module__": Output.__module__, "__doc__": Output.__doc__, "_names": names}
    own["_rows"] = {name: list(runs) for name, runs in rows}
    return type(Output.__name__, (Output,), {**own, **properties})


def _with_arrays(names: tuple[str, ...], run: PlainRun) -> Output:
    return output_type(names)(run)


def no_rows(names: Sequence[str], outputs: Sequence[StateDecl]) -> list[Array | list[Array]]:
    """States of no structures at all; results that have rows are none of them."""
    shapes = {state.name: state.type.shape for state in outputs}
    return [np.zeros((0, *shapes[name]), np.float32) if name in shapes else [] for name in names]

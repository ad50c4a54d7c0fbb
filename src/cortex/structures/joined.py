"""Several forests as one, to be run as one batch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cortex.errors import StructureError
from cortex.runtime.forest import Column, Forest, Ints


def join(forests: Sequence[Forest]) -> Forest:
    """One forest of all nodes and roots, in order: `fast(join([from_networkx(g, child="target") for g in graphs]))`.

    All must have the same relations and the same fields.
    """
    if not forests:
        raise StructureError("join([]): there is nothing to join; give at least one forest")
    first = forests[0]
    for i, forest in enumerate(forests):
        for what in ("slots", "lists", "fields"):
            has, wanted = sorted(getattr(forest, what)), sorted(getattr(first, what))
            if has != wanted:
                raise StructureError(
                    f"join: forest {i} has the {what} {has}, and forest 0 has {wanted}; make them equal"
                )
    starts = [0, *np.cumsum([forest.num_nodes for forest in forests]).tolist()]
    slots = {name: _moved([f.slots[name] for f in forests], starts) for name in first.slots}
    lists = {}
    for name in first.lists:
        pointers, indices = zip(*(f.lists[name] for f in forests), strict=True)
        edges = [0, *np.cumsum([len(index) for index in indices]).tolist()]
        ends = _moved([pointer[1:] for pointer in pointers], edges)
        lists[name] = (_fixed(np.concatenate((np.zeros(1, np.int32), ends))), _moved(list(indices), starts))
    fields = {name: _column([f.fields[name] for f in forests]) for name in first.fields}
    roots = _moved([f.roots for f in forests], starts)
    return Forest(starts[-1], slots, lists, fields, roots, _Names(forests, starts))


class _Names(Sequence[Any]):
    """What errors call the nodes: their names or numbers in the forests they come from."""

    def __init__(self, forests: Sequence[Forest], starts: list[int]) -> None:
        self._names = [f.names for f in forests]
        self._starts = starts

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, node: Any) -> Any:
        if not 0 <= node < len(self):
            raise IndexError(node)
        forest = bisect_right(self._starts, node) - 1
        names, number = self._names[forest], node - self._starts[forest]
        return _Place(f"{number if names is None else repr(names[number])} of forest {forest}")


class _Place(str):
    """A text that shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _moved(arrays: Sequence[Ints], starts: list[int]) -> Ints:
    """The arrays one after the other, each with its start added to all but -1."""
    moved = [np.where(array < 0, -1, array.astype(np.int64) + at) for array, at in zip(arrays, starts, strict=False)]
    joined = np.concatenate(moved)
    if joined.size and joined.max() > np.iinfo(np.int32).max:
        raise StructureError("join: the forests have more nodes or edges together than one may; join fewer")
    return _fixed(joined.astype(np.int32))


def _column(parts: Sequence[Column]) -> Column:
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if len(arrays) == len(parts) and len({array.shape[1:] for array in arrays}) == 1:
        whole = all(array.dtype == np.int64 for array in arrays)
        return _fixed(np.concatenate(arrays).astype(np.int64 if whole else np.float32))
    return tuple(value for part in parts for value in _values(part))


def _values(part: Column) -> Iterable[Any]:
    return part.tolist() if isinstance(part, np.ndarray) and part.ndim == 1 else part


def _fixed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array

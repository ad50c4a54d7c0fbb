"""A forest given as arrays instead of objects.

Nodes are 0..num_nodes-1. A *slot* relation is an array with the child of every node, -1 where there is none; a
*list* relation is a pair of arrays in compressed form: the children of node i are index[pointer[i] : pointer[i+1]].
A node may be the child of several, but not be below itself. Arrays are checked and copied once, when the forest is
made; the native linearizer reads them as they are. Fields in arrays that are read-only, contiguous and of the type
below (int64, float32) are not copied at all.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from cortex import _native
from cortex.errors import StructureError
from cortex.frontend.postorder import MAX_OBJECTS

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int32]"
Column: TypeAlias = "npt.NDArray[np.int64] | npt.NDArray[np.float32] | tuple[Any, ...]"

MAX_NODES = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Forest:
    """Structures as arrays; made by the constructors below.

    `fields` has one entry per node for each name: integers (int64), numbers (float32, of any shape per node), or a
    tuple of any objects, such as the strings that a model compares a node's type with. `names`, where given, is what
    errors call the nodes instead of their numbers.
    """

    num_nodes: int
    slots: Mapping[str, Ints]
    lists: Mapping[str, tuple[Ints, Ints]]
    fields: Mapping[str, Column]
    roots: Ints
    names: Sequence[Any] | None = None

    @classmethod
    def from_parents(
        cls,
        parents: npt.ArrayLike,
        fields: Mapping[str, Any] | None = None,
        relation: str = "children",
        names: Sequence[Any] | None = None,
    ) -> Forest:
        """Trees from the parent of every node, -1 for roots. Children stand in the order of their indices."""
        parent = _ints(parents, "parents")
        n = len(parent)
        _check_range(parent, "parents", -1, n)
        children = np.flatnonzero(parent >= 0)
        return cls._from_pairs(parent[children], children, n, fields, None, relation, names)

    @classmethod
    def from_edges(
        cls,
        source: npt.ArrayLike,
        target: npt.ArrayLike,
        *,
        child: Literal["source", "target"],
        num_nodes: int | None = None,
        fields: Mapping[str, Any] | None = None,
        roots: npt.ArrayLike | None = None,
        relation: str = "children",
        names: Sequence[Any] | None = None,
    ) -> Forest:
        """Trees or graphs from the two ends of every edge.

        `child` says which end is the child: "target" where edges lead from parents to children, "source" where they
        lead from children to parents. The children of a node stand in the order of its edges; an edge that occurs
        twice makes its child occur twice. Nodes without edges are roots and leaves; without `num_nodes`, the highest
        node is the last that an edge has. The roots are the nodes that are nobody's child unless they are given.
        """
        if child not in ("source", "target"):
            raise StructureError(
                f"edges with child={child!r}: say which end of an edge is the child, 'target' where edges lead from "
                "parents to children, 'source' where they lead from children to parents"
            )
        ends = {"source": _ints(source, "source"), "target": _ints(target, "target")}
        lengths = {name: len(array) for name, array in ends.items()}
        if lengths["source"] != lengths["target"]:
            raise StructureError(
                f"source and target must have one entry per edge each, but their lengths are {lengths}"
            )
        n = num_nodes
        if n is None:
            n = max((int(array.max()) + 1 for array in ends.values() if len(array)), default=0)
        for name, array in ends.items():
            _check_range(array, name, 0, n)
        parent = ends["target" if child == "source" else "source"]
        return cls._from_pairs(parent, ends[child], n, fields, roots, relation, names)

    @classmethod
    def _from_pairs(
        cls,
        parent: npt.NDArray[np.int64],
        child: npt.NDArray[np.int64],
        n: int,
        fields: Mapping[str, Any] | None,
        roots: npt.ArrayLike | None,
        relation: str,
        names: Sequence[Any] | None,
    ) -> Forest:
        """From the (parent, child) pairs of a graph of `n` nodes."""
        pointer = np.concatenate(([0], np.cumsum(np.bincount(parent, minlength=n))))
        index = child[np.argsort(parent, kind="stable")]
        return cls.from_children(pointer, index, fields, roots, relation, names)

    @classmethod
    def from_children(
        cls,
        pointer: npt.ArrayLike,
        index: npt.ArrayLike,
        fields: Mapping[str, Any] | None = None,
        roots: npt.ArrayLike | None = None,
        relation: str = "children",
        names: Sequence[Any] | None = None,
    ) -> Forest:
        """Trees or graphs from lists of children: those of node i are index[pointer[i] : pointer[i+1]].

        The roots are the nodes that are nobody's child unless they are given.
        """
        starts = _ints(pointer, "pointer")
        children = _ints(index, "index")
        if not len(starts):
            raise StructureError("pointer is empty; it must have one entry more than there are nodes")
        n = len(starts) - 1
        steps = np.flatnonzero(np.diff(starts) < 0)
        if starts[0] != 0 or starts[-1] != len(children) or len(steps):
            raise StructureError(
                f"pointer must rise from 0 to the number of children ({len(children)}), but it goes from {starts[0]} "
                f"to {starts[-1]}" + (f" and falls after entry {steps[0]}" if len(steps) else "")
            )
        _check_range(children, "index", 0, n)
        return cls._checked(n, {}, {relation: (_frozen32(starts), _frozen32(children))}, fields, roots, names)

    @classmethod
    def from_slots(
        cls,
        slots: Mapping[str, npt.ArrayLike],
        fields: Mapping[str, Any] | None = None,
        roots: npt.ArrayLike | None = None,
    ) -> Forest:
        """Trees or graphs from the child of every node in each named slot, -1 where there is none.

        The roots are the nodes that are nobody's child unless they are given.
        """
        if not slots:
            raise StructureError("slots is empty; give at least one array of children, such as {'left': ...}")
        children = {name: _ints(given, f"slot {name!r}") for name, given in slots.items()}
        lengths = {name: len(array) for name, array in children.items()}
        n = next(iter(lengths.values()))
        if any(length != n for length in lengths.values()):
            raise StructureError(f"all slots must have one entry per node, but their lengths are {lengths}")
        for name, array in children.items():
            _check_range(array, f"slot {name!r}", -1, n)
        return cls._checked(n, {name: _frozen32(array) for name, array in children.items()}, {}, fields, roots)

    @classmethod
    def from_nested(cls, data: object, field: str = "word", relation: str = "children") -> Forest:
        """One tree from nested tuples or lists: ((1, 2), (3, (4, 5))).

        Whatever is not a tuple or list is a leaf, and the value of its field. Nodes are numbered in preorder; every
        occurrence is a node of its own, even if two are the same object.
        """
        pointer, index, items = _native.flatten_nested(data, MAX_OBJECTS)
        return cls._checked(len(items), {}, {relation: (pointer, index)}, {field: tuple(items)}, np.zeros(1, np.int64))

    @classmethod
    def _checked(
        cls,
        n: int,
        slots: dict[str, Ints],
        lists: dict[str, tuple[Ints, Ints]],
        fields: Mapping[str, Any] | None,
        roots: npt.ArrayLike | None,
        names: Sequence[Any] | None = None,
    ) -> Forest:
        if n > MAX_NODES:
            raise StructureError(f"a forest of {n} nodes is too large; it may have {MAX_NODES}")
        columns = {name: _column(name, given, n) for name, given in (fields or {}).items()}
        children = [*slots.values(), *(index for _, index in lists.values())]
        if roots is None:
            below = np.zeros(n, dtype=bool)
            for array in children:
                below[array[array >= 0]] = True
            top = np.flatnonzero(~below)
        else:
            top = _ints(roots, "roots")
            _check_range(top, "roots", 0, n)
        _native.check_forest(
            list(slots.values()), [(pointer, index, name) for name, (pointer, index) in lists.items()], n, names
        )
        relations = (MappingProxyType(slots), MappingProxyType(lists))
        return cls(n, *relations, MappingProxyType(columns), _frozen32(top), names)

    def node(self, index: int) -> ForestNode:
        """A view of one node, with its relations and fields as attributes."""
        if not 0 <= index < self.num_nodes:
            raise IndexError(f"node {index} of a forest of {self.num_nodes} nodes")
        return ForestNode(self, index, {})

    def root_nodes(self) -> list[ForestNode]:
        """Views of the roots; within one such list a node that is reached twice is one object."""
        family: dict[int, ForestNode] = {}
        return [family.get(i) or ForestNode(self, i, family) for i in self.roots.tolist()]


class ForestNode:
    """One node of a forest, as an object: what tracing a model looks at."""

    __slots__ = ("_family", "_forest", "_index")
    _cortex_is_array_view = True

    def __init__(self, forest: Forest, index: int, family: dict[int, ForestNode]) -> None:
        self._forest = forest
        self._index = index
        self._family = family  # nodes made so far: identity tells shared nodes
        family[index] = self

    def __getattr__(self, name: str) -> Any:
        forest, i = self._forest, self._index
        if name in forest.slots:
            child = int(forest.slots[name][i])
            return None if child < 0 else self._relative(child)
        if name in forest.lists:
            pointer, index = forest.lists[name]
            return tuple(self._relative(int(k)) for k in index[pointer[i] : pointer[i + 1]])
        if name in forest.fields:
            value = forest.fields[name][i]
            return value.item() if isinstance(value, np.generic) else value
        raise AttributeError(f"the forest has no relation or field {name!r}")

    def _relative(self, index: int) -> ForestNode:
        return self._family.get(index) or ForestNode(self._forest, index, self._family)

    def __repr__(self) -> str:
        names = self._forest.names
        return f"<node {self._index if names is None else repr(names[self._index])} of a forest>"


def _ints(values: npt.ArrayLike, what: str) -> npt.NDArray[np.int64]:
    """A one-dimensional array of integers, which may be the one given."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise StructureError(f"{what} is no array ({error}); it must be a one-dimensional array of integers") from None
    if array.ndim != 1:
        raise StructureError(f"{what} has {array.ndim} dimensions; it must be a one-dimensional array of integers")
    if array.size and array.dtype.kind not in "iu":
        raise StructureError(f"{what} has elements of type {array.dtype}; it must be an array of integers")
    if array.size and array.dtype.kind == "u" and int(array.max()) > np.iinfo(np.int64).max:
        raise StructureError(f"{what} holds {array.max()}, which is no node")
    return array.astype(np.int64, copy=False)


def _check_range(array: npt.NDArray[np.int64], what: str, low: int, end: int) -> None:
    """Refuse elements outside low..end-1."""
    if not len(array) or (array.min() >= low and array.max() < end):
        return
    wrong = np.flatnonzero((array < low) | (array >= end))
    if len(wrong):
        at = int(wrong[0])
        none = " (-1 for none)" if low == -1 else ""
        nodes = f"nodes 0 to {end - 1}" if end > 0 else "no nodes"
        raise StructureError(f"{what}[{at}] is {array[at]}, which is no node; the forest has {nodes}{none}")


def _frozen32(array: npt.NDArray[Any]) -> Ints:
    """A read-only int32 copy of an array whose values are known to fit."""
    copy = array.astype(np.int32)
    copy.flags.writeable = False
    return copy


def _column(name: str, given: object, n: int) -> Column:
    """A field as the native side reads it: int64, float32, or a tuple of objects."""
    if not isinstance(given, Sequence | np.ndarray) and not hasattr(given, "__array__"):
        raise StructureError(f"field {name!r} is a {type(given).__name__}; it must be an array or a list")
    if isinstance(given, str | bytes):
        raise StructureError(f"field {name!r} is a {type(given).__name__}; it must have one entry per node")
    objects = tuple(given) if isinstance(given, Sequence) else None
    length = np.shape(given)[:1] if objects is None else (len(objects),)
    if length != (n,):
        raise StructureError(
            f"field {name!r} has {length[0] if length else 'no'} entries; it must have one for each of the {n} nodes"
        )
    if objects is not None and not all(isinstance(x, int | float | np.number) for x in objects):
        return objects
    masked = sys.modules.get("numpy.ma")  # which takes a while to load; without it there are no masked arrays
    if masked is not None and masked.is_masked(given):
        raise StructureError(f"field {name!r} is a masked array, and what is masked has no value; give x.filled(value)")
    array = np.asarray(given)
    if _is_fixed(array) and (array.dtype == np.float32 or (array.dtype == np.int64 and array.ndim == 1)):
        return array
    if array.dtype.kind in "iub" and array.ndim == 1 and array.dtype != np.uint64:
        return _read_only(array.astype(np.int64))
    if array.dtype.kind in "iubf":
        return _read_only(narrowed(array, f"field {name!r}"))
    return tuple(array.tolist())


def narrowed(array: npt.NDArray[Any], what: str) -> npt.NDArray[np.float32]:
    """A copy in single precision; refused where a number of a node, in the first axis, is too large for that."""
    with np.errstate(over="ignore"):
        narrow = np.array(array, dtype=np.float32, order="C")
    if not np.isfinite(narrow).all() and len(lost := np.argwhere(np.isinf(narrow) & np.isfinite(array))):
        at = tuple(int(i) for i in lost[0])
        raise StructureError(f"{what} of node {at[0]} has {array[at]}, which is too large for float32 (up to 3.4e38)")
    return narrow


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array


def _is_fixed(array: npt.NDArray[Any]) -> bool:
    """Is nobody to write to the array, and can it be read as it is? A view may be read-only where its base is not."""
    return array.flags.owndata and not array.flags.writeable and array.flags.c_contiguous and array.flags.aligned

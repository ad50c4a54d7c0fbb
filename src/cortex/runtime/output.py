"""What a call returns: states at the roots, and at every node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


class States:
    """Arrays by state name: `out.h`, `out["h"]`, or by position `out[0]`; unpacks in the model's order."""

    __slots__ = ("_get", "_names")

    def __init__(self, names: tuple[str, ...], get: Any) -> None:
        self._names = names
        self._get = get

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
        return [*super().__dir__(), *self._names]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}: {self[n].shape}' for n in self._names)})"


class Output(States):
    """States at the roots of a request; `nodes` has them at every node, in the user's order.

    For one structure an array has the state's shape; for a list of structures it has one row per structure. The
    object holds the memory of its call until it is dropped; the arrays it gives are the caller's own.
    """

    __slots__ = ("_run",)

    def __init__(self, names: tuple[str, ...], run: Any) -> None:
        self._names = names
        self._get = run.root
        self._run = run

    @property
    def nodes(self) -> States:
        """States at every node: order of first visit in a preorder walk, or the index order of arrays.

        A walk takes a node's children by attribute in alphabetical order (`left` before `right`), then lists.
        """
        return States(self._names, self._run.nodes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if len(self) != 1:
            raise TypeError(f"the model has {len(self)} states ({', '.join(self._names)}); choose one")
        return np.asarray(self[0], dtype=dtype)

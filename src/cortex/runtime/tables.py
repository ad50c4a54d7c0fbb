"""Tables of states, their rows computed when a request first looks them up.

A table has a row for every value of a field: 20,000 words take longer to compute than a model to load, and requests
have a few of them. Which rows are there is kept beside the table; the native call looks at the values of a request and
has those filled that are missing. A row has the same bits whenever it is computed, so that two threads may compute it
at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cortex.runtime.forest import Forest
from cortex.runtime.storage import Array, padded_zeros

ROWS = 1024  # that are computed at a time
Run = Callable[[Forest, list[Array]], object]
"""Writes the states of the roots of a forest into arrays."""


@dataclass(frozen=True)
class TableForm:
    """The parameters of a table, the shapes of their rows and the multiples to which rows are padded.

    There is a row for each value below `limit` of a field.
    """

    field: str
    limit: int
    params: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    aligns: tuple[int, ...]


class Rows:
    """The parameters of a table: the states of a node for every value of a field, as `run` computes them.

    `padded` are the arrays as code takes them, `params` the same without padding.
    """

    def __init__(self, form: TableForm, run: Run) -> None:
        self.form = form
        self._run = run
        shapes = [(form.limit, *shape) for shape in form.shapes]
        whole = [padded_zeros(shape, align) for shape, align in zip(shapes, form.aligns, strict=True)]
        self._views = [w[tuple(map(slice, shape))] for w, shape in zip(whole, shapes, strict=True)]
        self.padded = dict(zip(form.params, whole, strict=True))
        self.params = dict(zip(form.params, self._views, strict=True))
        self.filled = np.zeros(form.limit, np.uint8)

    def fill(self, values: Array) -> None:
        """Compute the rows of some values of the field."""
        for first in range(0, len(values), ROWS):
            some = values[first : first + ROWS]
            rows = [np.empty((len(some), *shape), np.float32) for shape in self.form.shapes]
            self._compute(some, rows)
            for view, computed in zip(self._views, rows, strict=True):
                view[some] = computed
            self.filled[some] = 1

    def complete(self) -> None:
        """Compute all rows; what is computed is still in the cache when it is written to its place."""
        for first in range(0, len(self.filled), ROWS):
            here = slice(first, first + ROWS)
            if not self.filled[here].all():
                self._compute(np.arange(len(self.filled))[here], [v[here] for v in self._views])
                self.filled[here] = 1

    def _compute(self, values: Array, rows: list[Array]) -> None:
        self._run(Forest.from_children(np.zeros(len(values) + 1, np.int64), [], {self.form.field: values}), rows)

    def for_native(self) -> tuple[Any, ...]:
        """What a call has to know."""
        return self.form.field, self.filled, self.fill

"""Where the results of a call stand among the states of a forward pass, and where adjoints of results go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cortex.lower.linear_form import LinearForm
from cortex.runtime.storage import Array
from cortex.runtime.training import Pass


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows of a result: the state `state` of the nodes `ids`, in the rows `at` of the result, None for all of them."""

    state: str
    ids: Array
    at: Array | None = None


@dataclass(frozen=True, eq=False)
class ResultRows:
    """A result with a row for each of some nodes; `counts` are the rows of each structure, None for one row each."""

    pieces: tuple[Piece, ...]
    counts: tuple[int, ...] | None = None

    def value(self, made: Pass) -> Array:
        """The rows of the result."""
        first = self.pieces[0]
        if first.at is None:
            whole: Array = np.ascontiguousarray(made.value(first.state)[first.ids])
            return whole
        shape = made.value(first.state).shape[1:]
        whole = np.empty((sum(len(piece.ids) for piece in self.pieces), *shape), np.float32)
        for piece in self.pieces:
            whole[piece.at] = made.value(piece.state)[piece.ids]
        return whole

    def add_adjoints(self, given: Array, made: Pass, into: dict[str, Array]) -> None:
        """Add adjoints of the result to those of states, which are of all nodes in the order of ids."""
        for piece in self.pieces:
            rows = given if piece.at is None else given[piece.at]
            if piece.state not in into:
                into[piece.state] = at_nodes(made, piece.state, piece.ids, rows)
            else:
                np.add.at(into[piece.state], piece.ids, rows)


def at_ids(state: str, ids: Array) -> ResultRows:
    """A state at certain nodes."""
    return ResultRows((Piece(state, ids),))


def of_lists(runs: Sequence[tuple[str, str, str]], form: LinearForm) -> ResultRows:
    """States of children of the roots, root by root: (state, relation, how) as `ra.Rows` says."""
    roots = form.arrays["root"]
    found: dict[str, tuple[list[Array], list[Array]]] = {state: ([], []) for state, _, _ in runs}
    counts, end = [], 0
    for root in roots:
        begin = end
        for state, relation, how in runs:
            ids = _children(form, int(root), relation, how)
            found[state][0].append(ids)
            found[state][1].append(np.arange(end, end + len(ids)))
            end += len(ids)
        counts.append(end - begin)
    pieces = (Piece(s, np.concatenate(ids), np.concatenate(at)) for s, (ids, at) in found.items() if ids)
    return ResultRows(tuple(pieces), tuple(counts))


def _children(form: LinearForm, node: int, relation: str, how: str) -> Array:
    if how == "slot":
        child = form.arrays[f"child_{relation}"][node : node + 1]
        there: Array = child[child >= 0]
        return there
    pointers = form.arrays[f"{relation}_ptr"]
    ids: Array = form.arrays[f"{relation}_child"][pointers[node] : pointers[node + 1]]
    return ids[::-1] if how == "reversed" else ids


def at_nodes(made: Pass, name: str, ids: Array, given: Array) -> Array:
    """Adjoints of a state at some nodes as those of all, in the order of ids; several for one node are added up."""
    whole = np.zeros(made.value(name).shape, np.float32)
    if len(np.unique(ids)) == len(ids):
        whole[ids] = given
    else:
        np.add.at(whole, ids, given)
    return whole

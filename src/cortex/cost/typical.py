"""Requests of typical shape for a model, for predictions when nobody has given any structures.

Only what decides the cost is made: groups, and how many edges nodes have. A model that follows one child per node
gets sequences; every other model gets trees with the sizes and depth of parse trees. Kinds of inner nodes take turns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cortex.lower.linear_form import (
    MAX_WINDOW,
    NUM_PARTS,
    NUM_WINDOWS,
    PART_GROUP,
    WINDOW_GROUP,
    WINDOW_NODES,
    LinearForm,
    max_edges,
    num_edges,
    window_kind,
)
from cortex.ra import ir as ra

Array = npt.NDArray[Any]

BATCHES = (1, 10)
SEQUENCE = 50
# Nodes by height in a parse tree of 19 words: the leaves, then inner nodes with two children each.
PARSE_TREE = (19, 6, 3, 2, 2, 1, 1, 1, 1, 1)
EDGES = 2
# Of so many groups of a kind by height, "agenda" saves one where several kinds alternate: over random trees of 20 to
# 150 nodes and 2 to 6 kinds of inner nodes 2198 groups are left of 2608, and of the fuzz tests' structures 135 of 173.
AGENDA_SAVES_ONE_OF = 5
ABOVE_LEAVES, NOT_ABOVE_LEAVES = ra.Fact(ra.IsAboveLeaves(), True), ra.Fact(ra.IsAboveLeaves(), False)


def typical(m: ra.Model, threads: int = 1) -> list[LinearForm]:
    """A request of one structure and one of ten; in parts for so many threads, for programs that compute by parts."""
    return [_request(m, batch, min(batch, threads)) for batch in BATCHES]


def recurses(kind: ra.Kind) -> bool:
    """Does this kind read a child's state, or know about its children?"""
    return any(isinstance(let.op, ra.State | ra.OverChildren) for let in kind.lets) or ABOVE_LEAVES in kind.guard


def _at_height(kind: ra.Kind, height: int) -> bool:
    """Can a node of this kind, which has children, have this height?"""
    return (ABOVE_LEAVES if height > 1 else NOT_ABOVE_LEAVES) not in kind.guard


def _windows(lengths: list[int]) -> Array:
    """The first group of each window, and the number of groups."""
    first, nodes = [0], 0
    for g, length in enumerate(lengths):
        if nodes + length > WINDOW_NODES and g > first[-1]:
            first.append(g)
            nodes = 0
        nodes += length
    return np.array([*first, len(lengths)])


def _request(m: ra.Model, batch: int, parts: int) -> LinearForm:
    inner = [k for k, kind in enumerate(m.kinds) if recurses(kind)]
    leaves = [k for k, kind in enumerate(m.kinds) if not recurses(kind)] or inner
    single = not m.lists and all(len(_children(m.kinds[k])) <= 1 for k in inner)
    levels = (1,) * SEQUENCE if single else PARSE_TREE
    kinds, lengths, heights, part_group = [], [], [], [0]
    for part in range(parts):
        structures = batch * (part + 1) // parts - batch * part // parts
        for height, nodes in enumerate(levels):
            fitting = [k for k in inner if _at_height(m.kinds[k], height)]
            allowed = leaves if height == 0 or not fitting else fitting
            shared = min(len(allowed), nodes * structures)
            for i in range(shared):
                kinds.append(allowed[(i + height) % len(allowed)])
                lengths.append((nodes * structures * (i + 1)) // shared - (nodes * structures * i) // shared)
                heights.append(height)
        if m.batching == "agenda" and len(inner) > 1:
            _merge(kinds, lengths, heights, part_group[-1], inner)
        part_group.append(len(lengths))
    total = sum(lengths)
    ends = np.cumsum(lengths)
    starts = total - ends
    kind_nodes = [np.arange(s, s + n) for s, n in zip(starts, lengths, strict=True)]
    by_kind = [
        np.concatenate([x for x, k in zip(kind_nodes, kinds, strict=True) if k == kind] or [np.zeros(0, int)])
        for kind in range(len(m.kinds))
    ]
    arrays = {
        "group_start": starts,
        "group_len": np.array(lengths),
        "group_kind": np.array(kinds),
        "kind_start": np.concatenate([[0], np.cumsum([len(x) for x in by_kind])]),
        "kind_node": np.concatenate(by_kind),
        PART_GROUP.name: np.array(part_group),
    }
    sizes = {"num_nodes": total, "num_groups": len(lengths), "num_roots": batch, "max_group": max(lengths)}
    sizes[NUM_PARTS.name] = parts
    windows = _windows(lengths)
    bounds = np.concatenate([[0], ends])[windows]  # nodes before each window, in the order that groups run
    sizes |= {NUM_WINDOWS.name: len(windows) - 1, MAX_WINDOW.name: int(np.diff(bounds).max())}
    arrays[WINDOW_GROUP.name] = windows
    for k in range(len(m.kinds)):
        ahead = np.concatenate([[0], np.cumsum(np.where(np.array(kinds) == k, lengths, 0))])[windows]
        arrays[window_kind(k).name] = arrays["kind_start"][k] + ahead
    has_edges = np.zeros(total, int)
    for nodes_of, k, height in zip(kind_nodes, kinds, heights, strict=True):
        has_edges[nodes_of] = EDGES if k in inner and height else 0
    for relation in m.lists:
        pointer = np.concatenate([[0], np.cumsum(has_edges)])
        edges = int(pointer[-1])
        per_group = [int(pointer[s + n] - pointer[s]) for s, n in zip(starts, lengths, strict=True)]
        arrays[f"{relation}_ptr"] = pointer
        arrays[f"{relation}_child"] = np.full(edges, total - 1)
        arrays[f"{relation}_parent"] = np.repeat(np.arange(total), has_edges)
        sizes |= {num_edges(relation).name: edges, max_edges(relation).name: max(per_group)}
    for slot in m.slots:
        arrays[f"child_{slot}"] = np.full(total, total - 1)
    for field in m.fields:
        arrays[f"field_{field.name}"] = np.zeros(total, int)
    return LinearForm(sizes, arrays, {})


def _merge(kinds: list[int], lengths: list[int], heights: list[int], first: int, inner: list[int]) -> None:
    """Let the groups from `first` on be those of policy "agenda": every so often, the nodes of two run together."""
    for kind in inner:
        mine = [g for g in range(first, len(kinds)) if kinds[g] == kind and heights[g] > 0]
        saved = mine[AGENDA_SAVES_ONE_OF - 1 :: AGENDA_SAVES_ONE_OF]
        for g in reversed(saved):
            lengths[mine[mine.index(g) - 1]] += lengths[g]
            del kinds[g], lengths[g], heights[g]


def _children(kind: ra.Kind) -> set[object]:
    return {let.op.path for let in kind.lets if isinstance(let.op, ra.State)}

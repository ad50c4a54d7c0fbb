"""Running traced models: real nodes, linearized by hand, through the interpreter that defines what RA means."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

import cortex
from cortex.frontend.facts import Seen
from cortex.frontend.postorder import postorder
from cortex.frontend.trace import Trace
from cortex.lower.linear_form import LinearForm
from cortex.ra import interp
from cortex.ra.ir import Model
from cortex.ra.verify import verify
from cortex.runtime.linearize import linearize as native_form


class Node(SimpleNamespace):
    """A node of a test: hashable by identity, unlike a SimpleNamespace."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def checked(trace: Trace) -> Model:
    """The traced model, after verifying it."""
    m = trace.model()
    verify(m)
    return m


def evaluate(trace: Trace, root: Any) -> dict[str, Any]:
    """The states of `root`, after tracing what is new in it."""
    trace.see([root])
    m = checked(trace)
    form = native_form(m, [root], accessors=trace.accessors) if m.positions else linearize(trace, m, root)
    params = trace.weights.arrays(p.name for p in m.params)
    states = interp.run(m, params, form)
    return {name: values[form.arrays["root"][0]] for name, values in states.items()}


def linearize(trace: Trace, m: Model, root: Any) -> LinearForm:
    """The linear form of one structure, one group per height and kind, as `lower.linear_form` describes it."""
    read, items = trace.accessors.read, trace.accessors.items

    def children(node: Any) -> list[Any]:
        slots = [child for name in m.slots if (child := read(node, name, None)) is not None]
        return slots + [child for name in m.lists for child in items(node, name)]

    heights: dict[int, int] = {}
    groups: dict[tuple[int, int], list[Any]] = {}
    for node in postorder([root], children):
        heights[id(node)] = 1 + max((heights[id(k)] for k in children(node)), default=-1)
        answer = Seen(node, trace._knowledge).answer
        kind = [i for i, k in enumerate(m.kinds) if all(answer(f.test) == f.answer for f in k.guard)]
        assert len(kind) == 1, "guards are disjoint, and every node that was seen has a kind"
        groups.setdefault((heights[id(node)], kind[0]), []).append(node)
    order = [node for key in sorted(groups, reverse=True) for node in groups[key]]
    ids = {id(node): n for n, node in enumerate(order)}
    arrays: dict[str, Any] = {
        "group_start": np.array([ids[id(groups[key][0])] for key in sorted(groups)]),
        "group_len": np.array([len(groups[key]) for key in sorted(groups)]),
        "group_kind": np.array([kind for _, kind in sorted(groups)]),
        "root": np.array([ids[id(root)]]),
    }
    for name in m.slots:
        found = [read(node, name, None) for node in order]
        arrays[f"child_{name}"] = np.array([-1 if c is None else ids[id(c)] for c in found])
    for name in m.lists:
        lists = [[ids[id(c)] for c in items(node, name)] for node in order]
        arrays[f"{name}_ptr"] = np.cumsum([0, *map(len, lists)])
        arrays[f"{name}_child"] = np.array([c for each in lists for c in each], dtype=int)
        arrays[f"{name}_parent"] = np.repeat(np.arange(len(lists)), [len(x) for x in lists])
    fields: dict[str, Any] = {}
    for f in m.fields:
        present = [read(node, f.name, None) for node in order]
        values = np.array([np.zeros(f.type.shape) if value is None else value for value in present])
        if f.type.dtype == "i64":
            arrays[f"field_{f.name}"] = values.astype(int).reshape(len(order))
        else:
            fields[f.name] = values
    return LinearForm({"num_nodes": len(order), "num_groups": len(groups)}, arrays, fields)


def compute(function: Any, **weights: Any) -> Any:
    """What `function(w)` computes, as the only state of a single node."""

    @cortex.model
    def alone(node: Any, w: Any) -> Any:
        return function(w)

    return evaluate(Trace(alone, weights), Node())["out"]


def weights(rng: int = 0, **shapes: tuple[int, ...]) -> dict[str, Any]:
    """Random float32 weights."""
    draw = np.random.default_rng(rng)
    return {name: draw.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))

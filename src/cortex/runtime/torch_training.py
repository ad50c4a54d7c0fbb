"""Calls of a module that is trained: the forward pass now, the backward pass when torch asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cortex.errors import StructureError
from cortex.runtime.executable import Executable
from cortex.runtime.known_kinds import Kinds
from cortex.runtime.storage import Array
from cortex.runtime.training import Pass, Training, dense_gradients
from cortex.runtime.vjp import at_nodes

if TYPE_CHECKING:
    from cortex.frontend.torch.model import TorchModel
    from cortex.frontend.torch.serving import Serving
    from cortex.frontend.torch.torch_entry import TorchEntry


class TrainedStates:
    """States of a request as tensors: by name at the roots, and `nodes` at every node in the user's order."""

    def __init__(self, at_roots: dict[str, Any], at_nodes: dict[str, Any]) -> None:
        self._at_roots = at_roots
        self.nodes = at_nodes

    def __getitem__(self, name: str) -> Any:
        return self._at_roots[name]

    def result(self, name: str, is_single: bool) -> Any:
        """A state at the roots."""
        return self[name]


def trained_states(
    entry: TorchEntry,
    model: TorchModel | Serving,
    run: Executable,
    request: Any,
    threads: int | None,
    everywhere: bool = False,
) -> TrainedStates:
    """The states that a call of the module reads, at the roots or `everywhere`, with gradients for its parameters."""
    from cortex.frontend.torch.autograd import in_memory, sparse_weights, with_gradients

    weights = entry.current_weights()
    single = not isinstance(request, list)

    def go(kinds: Kinds, nodes: Any, team: int) -> tuple[Training, Pass, dict[str, Array], list[str], list[str], int]:
        names = _names(model, everywhere)
        m = kinds.model()
        if not {*names} <= {s.name for s in m.states}:
            raise StructureError(
                f"{entry.name} returns a row for each of many nodes, and such results have no gradients yet. While it "
                "is trained, take the results at all nodes from fast.nodes(tree), whose tensors have them."
            )
        wanted = [p.name for p in m.params if p.name in weights and weights[p.name].requires_grad]
        training = run.trainings.training(kinds, team, names, wanted)
        held = kinds.weights.arrays(p.name for p in m.params if p.name not in weights)
        params = held | {p.name: in_memory(weights[p.name], p.name) for p in m.params if p.name in weights}
        return training, training.forward(nodes, params, team), params, wanted, names, team

    training, made, params, wanted, names, team = run.passes([request] if single else request, threads, go)
    ids = made.form.arrays["order" if everywhere else "root"]
    results = [np.ascontiguousarray(made.value(name)[ids]) for name in names]
    results = [x[0] for x in results] if single and not everywhere else results
    sparse = sparse_weights(entry.modules.values())

    def pull_back(given: list[Any]) -> list[Any]:
        rows = [x[None] if single and not everywhere and x is not None else x for x in given]
        adjoints = {n: at_nodes(made, n, ids, x) for n, x in zip(names, rows, strict=True) if x is not None}
        found, tables, _ = training.backward(made, adjoints, params, team)
        shapes = {name: tuple(weights[name].shape) for name in wanted}
        as_rows = {n for n in wanted if id(weights[n]) in sparse and n not in found and len(tables.get(n, ())) == 1}
        dense = dense_gradients(found, tables, {n: shape for n, shape in shapes.items() if n not in as_rows})
        return [(*tables[n][0], shapes[n]) if n in as_rows else dense[n] for n in wanted]

    tensors = dict(zip(names, with_gradients(results, pull_back, [weights[n] for n in wanted]), strict=True))
    return TrainedStates({}, tensors) if everywhere else TrainedStates(tensors, {})


def _names(model: TorchModel | Serving, everywhere: bool) -> list[str]:
    """The states that are read."""
    names: Sequence[str] = model.result()[1]
    if everywhere:
        names = [n for r in model.routine_states() for n in (*r.names, *(n for _, _, own in r.stored for n in own))]
    return list(dict.fromkeys(names))

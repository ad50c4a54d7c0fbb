"""Calls of a module that is trained: the forward pass now, the backward pass when torch asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cortex.frontend.torch.serving import Request
from cortex.ra import ir as ra
from cortex.runtime import tensor_sources
from cortex.runtime.executable import Executable
from cortex.runtime.known_kinds import Kinds
from cortex.runtime.output import rows_of_results
from cortex.runtime.result_rows import ResultRows, at_ids, of_lists
from cortex.runtime.storage import Array
from cortex.runtime.tensor_sources import TensorSources, by_field, fields_of_tensors, numbered_fields, refuse_others
from cortex.runtime.training import Pass, Training, dense_gradients

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
    from cortex.frontend.torch.autograd import in_memory, sparse_weights, split, wants_gradient, with_gradients

    weights = entry.current_weights()
    single = not isinstance(request, list)

    requests = [request] if single else request

    def go(kinds: Kinds, nodes: Any, team: int) -> _Made:
        m = run.trainings.traced(kinds)
        names, runs = _results(model, m, everywhere)
        seeds = {state for each in runs.values() for state, _, _ in each} | {n for n in names if n not in runs}
        wanted = [p.name for p in m.params if p.name in weights and weights[p.name].requires_grad]
        held = kinds.weights.arrays(p.name for p in m.params if p.name not in weights)
        params = held | {p.name: in_memory(weights[p.name], p.name) for p in m.params if p.name in weights}
        training = run.trainings.training(kinds, team, seeds, wanted)
        sources, numbers = TensorSources(), dict[str, Array]()
        try:
            form = training.linearize(nodes)
            is_wanted = any(wants_gradient(x) for r in requests if isinstance(r, Request) for x in r.arguments.values())
        except RuntimeError as error:
            if not tensor_sources.wants_gradient(error):
                raise
            form, is_wanted = None, True
        if is_wanted:
            fields = fields_of_tensors(m, kinds)
            training = run.trainings.training(kinds, team, seeds, wanted, fields)
            numbered, numbers = numbered_fields(m, kinds, training.windows, requests, sources, fields)
            if form is not None:
                refuse_others(form, numbered)
            form = numbered
            form.fields.update({name: sources.values(n) for name, n in numbers.items()})
        assert form is not None
        made = training.forward(form, params, team)
        ids = form.arrays["order" if everywhere else "root"]
        rows = {n: of_lists(runs[n], form) if n in runs else at_ids(n, ids) for n in names}
        return _Made(training, made, params, wanted, rows, team, sources, numbers)

    found = run.passes(requests, threads, go)
    is_bare = {name: single and not everywhere and rows.counts is None for name, rows in found.rows.items()}
    values = {name: rows.value(found.made) for name, rows in found.rows.items()}
    sparse = sparse_weights(entry.modules.values())

    def pull_back(given: list[Any]) -> list[Any]:
        adjoints: dict[str, Array] = {}
        for (name, rows), x in zip(found.rows.items(), given, strict=True):
            if x is not None:
                rows.add_adjoints(x[None] if is_bare[name] else x, found.made, adjoints)
        of_params, tables, of_fields = found.training.backward(found.made, adjoints, found.params, found.threads)
        shapes = {name: tuple(weights[name].shape) for name in found.wanted}
        is_sparse = (n for n in found.wanted if id(weights[n]) in sparse and n not in of_params)
        as_rows = {n for n in is_sparse if len(tables.get(n, ())) == 1}
        dense = dense_gradients(of_params, tables, {n: shape for n, shape in shapes.items() if n not in as_rows})
        of_weights = [(*tables[n][0], shapes[n]) if n in as_rows else dense[n] for n in found.wanted]
        return of_weights + found.sources.gradients(by_field(found.numbers, of_fields))

    results = [x[0, ...] if is_bare[name] else x for name, x in values.items()]
    made = with_gradients(results, pull_back, [*(weights[n] for n in found.wanted), *found.sources.tensors])
    tensors = {
        name: made_of if rows.counts is None or single else split(made_of, rows.counts)
        for (name, rows), made_of in zip(found.rows.items(), made, strict=True)
    }
    return TrainedStates({}, tensors) if everywhere else TrainedStates(tensors, {})


@dataclass(frozen=True, eq=False)
class _Made:
    """A forward pass, and what its backward pass needs."""

    training: Training
    made: Pass
    params: dict[str, Array]
    wanted: list[str]
    """The parameters whose gradients are wanted."""
    rows: dict[str, ResultRows]
    threads: int
    sources: TensorSources
    """Tensors beside the structure and on nodes, where gradients of any are wanted."""
    numbers: dict[str, Array]
    """The number of the element that each element of a field is, for each node."""


def _results(
    model: TorchModel | Serving, m: ra.Model, everywhere: bool
) -> tuple[list[str], dict[str, list[tuple[str, str, str]]]]:
    """The names of what is read, and of those that have rows, where these are."""
    names: Sequence[str]
    if everywhere:
        names = [n for r in model.routine_states() for n in (*r.names, *(n for _, _, own in r.stored for n in own))]
        return list(dict.fromkeys(names)), {}
    _, names = model.result()
    runs: dict[str, list[tuple[str, str, str]]] = {}
    for name, each in rows_of_results(m):
        if name in names:
            runs[name] = [(m.outputs[number].name, relation, how) for number, relation, how in each]
    return list(dict.fromkeys(names)), runs

"""The recursive suite: Cortex, PyTorch node by node, PyTorch batched by hand, and the machine's limit.

A cell of the suite is a model, a hidden size, a batch size and a number of threads. All systems of a cell run on
the same weights and shapes, interleaved in one process; before that, their results are compared with a
double-precision reference. Timed is the way from the user's objects to arrays the user can read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cortex.bench.data import Workload, workload
from cortex.bench.limit import Machine, limit_us
from cortex.bench.timing import Run, Timing, interleave
from cortex.errors import CortexError, InternalError

if TYPE_CHECKING:
    from cortex.runtime.executable import Executable

Array = npt.NDArray[Any]

MODELS = ("tree_fc", "tree_lstm", "tree_gru", "mv_rnn", "dag_rnn", "lstm", "gru")
TOLERANCE = 1e-4
CHECKED = 10  # structures compared with the reference before timing


@dataclass(frozen=True)
class Cell:
    """One configuration in which all systems are timed."""

    model: str
    hidden: int
    batch: int
    threads: int


@dataclass(frozen=True)
class Row:
    """What one system took in one cell: microseconds per batch, and what there is to know about it."""

    model: str
    hidden: int
    batch: int
    threads: int
    system: str
    us: float
    us_min: float
    repetitions: int
    batches: int
    data: str
    form: str

    def as_json(self) -> dict[str, Any]:
        """Plain data for a JSON file."""
        return asdict(self)


def cells(
    models: Sequence[str], hidden: Sequence[int] | None, batch: Sequence[int], threads: Sequence[int]
) -> list[Cell]:
    """The cells for these choices; without `hidden`, each model's own small and large size."""
    from cortex import zoo

    return [
        Cell(model, h, b, t)
        for t in threads
        for model in models
        for h, b in product(hidden or zoo.load(model).hidden, batch)
    ]


def run_cell(cell: Cell, machine: Machine, data: Path | None, budget: float) -> list[Row]:
    """Check and time every system in one cell for about `budget` seconds."""
    if find_spec("torch") is None:
        raise CortexError(
            "cortex bench --suite recursive: PyTorch, which runs the peers, is not installed; install torch"
        )
    import torch

    import cortex
    from cortex import zoo
    from cortex.bench import eager
    from cortex.bench.peer_weights import peer_weights

    entry = zoo.load(cell.model)
    weights = entry.weights(cell.hidden, entry.vocab)
    peers = peer_weights(cell.model, weights)
    requests = workload(cell.model, entry.vocab, data)
    starts = range(0, len(requests.shapes) - cell.batch + 1, cell.batch)
    batches = [partial(requests.fresh, start, cell.batch) for start in starts]

    torch.set_num_threads(cell.threads)
    with torch.inference_mode():
        began = time.perf_counter()
        fast = cortex.compile(entry.model, weights, threads=cell.threads)
        ours = partial(_root_state, fast, entry.states[0])
        ours(batches[0]())
        compiled = time.perf_counter() - began
        forms = dict(_batched_forms(cell.model, peers))
        systems: dict[str, Run] = {"cortex": ours, "torch-eager": _numpy(eager.make(cell.model, peers)), **forms}
        _check(cell, systems, _numpy(eager.make(cell.model, peers, torch.float64)), requests)
        timings = interleave(systems, batches, budget)

    # Both forms of torch-batched have been timed in full; the faster one speaks for it.
    form = min(forms, key=lambda name: timings[name].us)
    used = timings["cortex"].batches
    bound = median(
        limit_us(cell.model, cell.hidden, requests.levels(start, cell.batch), machine, cell.threads)
        for start in starts[:used]
    )
    results = {
        "cortex": (timings["cortex"], f"first call, with compilation: {compiled:.2f} s{_tables(fast)}"),
        "torch-eager": (timings["torch-eager"], "recursive, node by node"),
        "torch-batched": (timings[form], form),
        "limit": (
            Timing(bound, bound, 1, used),
            f"FMA peak {machine.peak:.0f} GFLOP/s, reads {machine.l2:.0f} and {machine.beyond:.0f} GB/s",
        ),
    }
    return [
        Row(**asdict(cell), system=system, **asdict(timing), data=requests.source, form=how)
        for system, (timing, how) in results.items()
    ]


def _tables(fast: Executable) -> str:
    """What the model was given ahead of the calls that are timed."""
    size = sum(fast.tables.values())
    return f", tables of {size / 1e6:.1f} MB computed in it" if size else ""


def _root_state(fast: Callable[[list[Any]], Any], state: str, batch: list[Any]) -> Array:
    """A state at the roots of a batch, as Cortex returns it."""
    roots: Array = getattr(fast(batch), state)
    return roots


def _numpy(run: Callable[[list[Any]], Any]) -> Run:
    """`run` with its tensor as an array the user can read."""
    return lambda batch: run(batch).numpy()


def _batched_forms(model: str, weights: Mapping[str, Array]) -> Iterator[tuple[str, Run]]:
    from cortex.bench import batched, scripted

    sequence = model in ("lstm", "gru")
    yield ("torch.nn, native loop" if sequence else "level loop in Python"), _numpy(batched.make(model, weights))
    script = scripted.make(model, weights)
    if script is not None:
        yield "level loop in TorchScript", _numpy(script)


def _check(cell: Cell, systems: Mapping[str, Run], reference: Run, requests: Workload) -> None:
    """Every system gives the reference's root states; otherwise its time means nothing."""
    expected = reference(requests.fresh(0, CHECKED))
    for name, run in systems.items():
        error = float(np.abs(run(requests.fresh(0, CHECKED)) - expected).max())
        if not error < TOLERANCE:
            raise InternalError(
                f"cortex bench: {name} on {cell.model}, H={cell.hidden}, is off by {error:.2g} "
                f"from the double-precision reference; at most {TOLERANCE:g} is accepted"
            )

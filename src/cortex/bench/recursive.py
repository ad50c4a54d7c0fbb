"""The recursive suite: Cortex, PyTorch node by node, PyTorch batched by hand, other peers, and the machine's limit.

A cell of the suite is a model, a hidden size, a batch size and a number of threads. All systems of a cell run on
the same weights and shapes, interleaved in one process; before that, their results are compared with a
double-precision reference. Timed is the way from the user's objects to arrays the user can read. Programs of the
peers' folder are processes of their own and run in turns with the rest (`peers`).

The system `cortex` does all the work that the model describes, as the limit counts it: no tables, no sharing.
`cortex-tables` is what `cortex.compile` gives with examples, tables included; `cortex-tables-sharing` may have larger
tables (`table_bytes=`) and computes equal subtrees of a request once.
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
from cortex.bench.memory import request_bytes, state_bytes, weight_bytes
from cortex.bench.peers import Peer, peers_of
from cortex.bench.peers_data import CHECKED as PEERS_CHECK
from cortex.bench.quiet import watch
from cortex.bench.timing import MIN_TURNS, IsSlow, Run, Timing, how_many, interleave, median_of
from cortex.errors import CortexError, InternalError

if TYPE_CHECKING:
    from cortex.runtime.executable import Executable

Array = npt.NDArray[Any]

MODELS = ("tree_fc", "tree_lstm", "tree_gru", "mv_rnn", "dag_rnn", "lstm", "gru")
TOLERANCE = 1e-4
CHECKED = 10  # structures compared with the reference before timing
EXAMPLES = 10  # structures that a model with tables is compiled for
LARGE_TABLES = 256 << 20  # bytes that tables may take on request
ROUNDS = 3  # turns of programs that are processes of their own
OTHERS_AGAIN = 2  # runs of these at most that are had again because the machine was slow


@dataclass(frozen=True)
class Cell:
    """One configuration in which all systems are timed."""

    model: str
    hidden: int
    batch: int
    threads: int


@dataclass(frozen=True)
class Row:
    """What one system took in one cell: microseconds per batch, and what there is to know about it.

    Of Cortex also, for the first batch, the bytes of a call with packed weights and tables (`peak_bytes`), and of
    these the states of all nodes with packed weights and tables alone (`needed_bytes`).
    """

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
    peak_bytes: int | None = None
    needed_bytes: int | None = None

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


def run_cell(cell: Cell, machine: Machine, data: Path | None, budget: float, folder: Path | None = None) -> list[Row]:
    """Check and time every system in one cell for about `budget` seconds, and those of the peers' folder."""
    if find_spec("torch") is None:
        raise CortexError(
            "cortex bench --suite recursive: PyTorch, which runs the peers, is not installed; install torch"
        )
    import torch

    from cortex import zoo
    from cortex.bench import eager
    from cortex.bench.peer_weights import peer_weights

    entry = zoo.load(cell.model)
    weights = entry.weights(cell.hidden, entry.vocab)
    peers = peer_weights(cell.model, weights)
    requests = workload(cell.model, entry.vocab, data)
    batches = [partial(requests.fresh, start, cell.batch) for start in _starts(cell, requests)]

    torch.set_num_threads(cell.threads)
    with torch.inference_mode():
        ours = dict(_our_systems(cell, entry, weights, batches))
        forms = dict(_batched_forms(cell.model, peers))
        systems: dict[str, Run] = {
            **{name: mine.run for name, mine in ours.items()},
            "torch-eager": _numpy(eager.make(cell.model, peers)),
            **forms,
        }
        reference = _numpy(eager.make(cell.model, peers, torch.float64))
        _check(cell, systems, reference, requests)
        batches = batches[: how_many(systems, batches, budget)]  # the same for all systems
        same = requests.first(max(cell.batch * len(batches), PEERS_CHECK))
        with peers_of(cell, weights, same, reference, folder) as others:
            timings = _in_rounds(systems, others, batches, budget, watch(machine, cell.threads))

    # Both forms of torch-batched have been timed in full; the faster one speaks for it.
    form = min(forms, key=lambda name: timings[name].us)
    used = timings["cortex"].batches
    bound = limit_of(cell, requests, used, machine)
    results = {
        **{name: (timings[name], mine.form) for name, mine in ours.items()},
        "torch-eager": (timings["torch-eager"], "recursive, node by node"),
        "torch-batched": (timings[form], form),
        **{name: (timings[name], other.form) for name, other in others.items()},
        "limit": (
            Timing(bound, bound, 1, used),
            f"FMA peak {machine.peak:.0f} GFLOP/s, reads {machine.l2:.0f} and {machine.beyond:.0f} GB/s",
        ),
    }
    return [
        Row(
            **asdict(cell),
            system=system,
            **asdict(timing),
            data=requests.source,
            form=how,
            peak_bytes=ours[system].peak_bytes if system in ours else None,
            needed_bytes=ours[system].needed_bytes if system in ours else None,
        )
        for system, (timing, how) in results.items()
    ]


def limit_of(cell: Cell, requests: Workload, batches: int, machine: Machine, tables: bool = False) -> float:
    """The limit of a cell: the median over the first so many of its batches."""
    levels = [requests.levels(start, cell.batch) for start in _starts(cell, requests)[:batches]]
    return median(limit_us(cell.model, cell.hidden, each, machine, cell.threads, tables=tables) for each in levels)


def _starts(cell: Cell, requests: Workload) -> range:
    """The first structure of each batch."""
    return range(0, len(requests.shapes) - cell.batch + 1, cell.batch)


@dataclass(frozen=True)
class _Ours:
    """A compiled model as a system to be timed, and what there is to know about it."""

    run: Run
    form: str
    peak_bytes: int
    needed_bytes: int


def _our_systems(
    cell: Cell, entry: Any, weights: Mapping[str, Array], batches: Sequence[Callable[[], list[Any]]]
) -> Iterator[tuple[str, _Ours]]:
    """Cortex in its modes, each called once."""
    import cortex
    from cortex.recursion.dedup import Dedup

    def system(**wishes: Any) -> tuple[Executable, _Ours]:
        began = time.perf_counter()
        fast = cortex.compile(entry.model, weights, threads=cell.threads, **wishes)
        run = partial(_root_state, fast, entry.states[0])
        answer = run(batches[0]()).nbytes
        form = f"first call, with compilation: {time.perf_counter() - began:.2f} s{_tables(fast)}"
        linear, f, kept = fast.linearize(batches[0]()), fast.compiled.func, sum(weight_bytes(fast).values())
        peak = kept + request_bytes(f, linear, cell.threads, answer)
        return fast, _Ours(run, form, peak, kept + state_bytes(f, linear))

    plain, ours = system(table_bytes=0)
    if plain.tables or plain.compiled.model.dedup:
        raise CortexError(
            f"cortex bench: the schedule that tuning found for {cell.model} has tables or sharing, and all work is to "
            "be timed; measure with another CORTEX_CACHE"
        )
    yield "cortex", ours
    examples = [batch()[0] for batch in batches[:EXAMPLES]]
    yield "cortex-tables", system(examples=examples)[1]
    recursion = system(examples=examples, table_bytes=LARGE_TABLES)[0].schedule.on_recursion
    sharing = () if any(isinstance(step, Dedup) for step in recursion) else (Dedup(),)
    yield "cortex-tables-sharing", system(recursion=(*recursion, *sharing))[1]


def _in_rounds(
    systems: Mapping[str, Run],
    others: Mapping[str, Peer],
    batches: Sequence[Callable[[], list[Any]]],
    budget: float,
    is_slow: IsSlow,
) -> dict[str, Timing]:
    """Time the systems of this process, in turns with those that are processes of their own."""
    seen: dict[str, list[Timing]] = {}
    rounds = ROUNDS if any(other.turns for other in others.values()) else 1
    for turn in range(rounds):
        once = interleave(systems, batches, budget / rounds, max(1, MIN_TURNS // rounds), is_slow)
        now = {name: other for name, other in others.items() if other.turns or turn == rounds - 1}
        once |= {name: _run_of(other, is_slow) for name, other in now.items()}
        for name, timing in once.items():
            seen.setdefault(name, []).append(timing)
    return {name: median_of(timings) for name, timings in seen.items()}


def _run_of(other: Peer, is_slow: IsSlow) -> Timing:
    """What a program of its own takes; a run at whose end the machine is slow is had again, at most twice."""
    timing = other.run()
    for _ in range(OTHERS_AGAIN):
        if not is_slow():
            break
        timing = other.run()
    return timing


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

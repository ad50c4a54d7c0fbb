"""The ablation suite: what each optimization gives, one after the other, on the models of the paper.

For a model and a hidden size all rungs of the ladder are compiled in one process. Every rung's answers are compared
with the first one's; then the rungs are timed in turns on the same requests, from the user's objects to arrays the
user can read. The time that linearizing takes of it is measured apart, and so is memory, against PyTorch's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import cortex
from cortex import zoo
from cortex.bench.data import Workload, workload
from cortex.bench.ladder import AUTOMATIC, LADDER, Rung, beside
from cortex.bench.memory import request_bytes, torch_peak_bytes, weight_bytes
from cortex.bench.peer_weights import peer_weights
from cortex.bench.recursive import MODELS as PEERS
from cortex.bench.timing import Timing, how_many, interleave
from cortex.codegen.target import Target
from cortex.errors import CortexError, InternalError, ScheduleError
from cortex.runtime.executable import Executable
from cortex.schedule.schedule import Schedule
from cortex.zoo.entry import Entry

Array = npt.NDArray[Any]

MODELS = (
    *("tree_fc", "tree_rnn", "tree_lstm", "nary_tree_lstm", "tree_gru", "simple_tree_gru"),
    *("mv_rnn", "dag_rnn", "lstm", "gru", "rntn"),
)
TOLERANCE = 1e-4
CHECKED = 10  # structures on which answers are compared
LINEARIZING = 0.1  # of the budget
MEASURED = ("us", "us_min", "linearize_us", "peak_bytes", "packed_bytes", "table_bytes")


@dataclass(frozen=True)
class Subject:
    """What is compiled once and then measured at every batch size."""

    model: str
    hidden: int
    threads: int


@dataclass(frozen=True)
class Row:
    """One rung in one cell. Times are None where there is nothing to time; `note` then says why.

    `us` and `us_min` are microseconds per batch, `linearize_us` the part of it that makes the linear form.
    `peak_bytes` is what the largest request takes, `packed_bytes` and `table_bytes` what is kept from call to call
    beside the weights; `torch_peak_bytes` is for PyTorch node by node, `torch_batched_peak_bytes` level by level.
    """

    model: str
    hidden: int
    batch: int
    threads: int
    rung: str
    against: str
    us: float | None
    us_min: float | None
    linearize_us: float | None
    peak_bytes: int | None
    packed_bytes: int | None
    table_bytes: int | None
    torch_peak_bytes: int
    torch_batched_peak_bytes: int | None
    repetitions: int
    batches: int
    data: str
    note: str

    def as_json(self) -> dict[str, Any]:
        """Plain data for a JSON file."""
        return asdict(self)


@dataclass(frozen=True)
class Compiled:
    """The rungs of a subject: programs by name, and why the others have none."""

    programs: dict[str, Executable]
    notes: dict[str, str]
    against: dict[str, str]


def subjects(models: Sequence[str], hidden: Sequence[int] | None, threads: Sequence[int]) -> list[Subject]:
    """What to measure; without `hidden`, each model's own small and large size."""
    return [Subject(m, h, t) for t in threads for m in models for h in hidden or zoo.load(m).hidden]


def run_subject(subject: Subject, batch_sizes: Sequence[int], data: Path | None, budget: float) -> Iterator[list[Row]]:
    """The rows of each batch size in turn, each measured for about `budget` seconds."""
    if find_spec("torch") is None:
        raise CortexError("cortex bench --suite ablation: PyTorch, whose memory is compared, is not installed")
    import torch

    torch.set_num_threads(subject.threads)
    entry = zoo.load(subject.model)
    weights = entry.weights(subject.hidden, entry.vocab)
    requests = workload(subject.model, entry.vocab, data)
    compiled = compile_rungs(entry, weights, requests.fresh(0, CHECKED), subject.threads)
    _check(subject, compiled.programs, entry.states[0], requests)
    for batch in batch_sizes:
        yield _cell(subject, batch, entry, compiled, requests, peer_weights(subject.model, weights), budget)


def compile_rungs(entry: Entry, weights: Any, examples: list[Any], threads: int) -> Compiled:
    """The ladder, the automatic schedule, and what stands beside them for the model.

    A rung whose schedule is that of the one it adds to is not compiled again.
    """
    automatic = cortex.compile(entry.model, weights, threads=threads)
    automatic(examples)  # all kinds are known from here on
    target = Target.host()
    schedules: dict[str, Schedule] = {}
    extra = beside(entry.name)
    found = Compiled({}, {}, _against(LADDER) | {AUTOMATIC: LADDER[0].name} | _against(extra))
    for rung in (*LADDER, *extra):
        try:
            schedule = rung.schedule(automatic.traced, target, threads)
        except ScheduleError as refused:
            found.notes[rung.name] = str(refused).split("\n", 1)[0]
            continue
        schedules[rung.name] = schedule
        if schedule == schedules.get(rung.against):
            found.notes[rung.name] = f"nothing to do: the same schedule as {rung.against!r}"
            continue
        found.programs[rung.name] = cortex.compile(
            entry.model, weights, examples=examples, schedule=schedule, threads=threads
        )
    found.programs[AUTOMATIC] = automatic
    return found


def _against(ladder: Sequence[Rung]) -> dict[str, str]:
    return {rung.name: rung.against for rung in ladder}


def _cell(
    subject: Subject,
    batch: int,
    entry: Entry,
    compiled: Compiled,
    requests: Workload,
    peers: Mapping[str, Array],
    budget: float,
) -> list[Row]:
    """Time every rung on batches of one size, and count its memory on the batch that has most nodes."""
    starts = range(0, len(requests.shapes) - batch + 1, batch)
    batches = [partial(requests.fresh, start, batch) for start in starts]
    programs = compiled.programs
    systems = {name: partial(_answer, fast, entry.states[0]) for name, fast in programs.items()}
    batches = batches[: how_many(systems, batches, budget)]
    timings = interleave(systems, batches, budget)
    linearizing = interleave({name: fast.linearize for name, fast in programs.items()}, batches, budget * LINEARIZING)
    largest = max(starts, key=lambda start: sum(requests.levels(start, batch)))
    request = requests.fresh(largest, batch)
    eager, batched = _torch_bytes(subject.model, peers, request)
    rows = []
    for name in compiled.against:
        measured: dict[str, Any] = dict.fromkeys(MEASURED)
        timing = Timing(0.0, 0.0, 0, 0)
        if name in programs:
            fast, timing = programs[name], timings[name]
            kept = weight_bytes(fast)
            answer = _answer(fast, entry.states[0], request).nbytes
            measured = {
                "us": timing.us,
                "us_min": timing.us_min,
                "linearize_us": linearizing[name].us,
                "peak_bytes": request_bytes(fast.compiled.func, fast.linearize(request), subject.threads, answer),
                "packed_bytes": kept["packed"],
                "table_bytes": kept["tables"],
            }
        rows.append(
            Row(
                **asdict(subject),
                batch=batch,
                rung=name,
                against=compiled.against[name],
                **measured,
                torch_peak_bytes=eager,
                torch_batched_peak_bytes=batched,
                repetitions=timing.repetitions,
                batches=timing.batches,
                data=requests.source,
                note=compiled.notes.get(name, ""),
            )
        )
    return rows


def _answer(fast: Executable, state: str, batch: list[Any]) -> Array:
    """A state at the roots of a batch."""
    roots: Array = getattr(fast(batch), state)
    return roots


def _torch_bytes(model: str, weights: Mapping[str, Array], batch: list[Any]) -> tuple[int, int | None]:
    """Peak memory of PyTorch on a batch: node by node, and level by level where there is such a program."""
    import torch

    from cortex.bench import batched, eager

    with torch.inference_mode():
        node_by_node = eager.make(model, weights)
        level_by_level = batched.make(model, weights) if model in PEERS else None
        runs = [run for run in (node_by_node, level_by_level) if run is not None]
        for run in runs:
            run(batch)  # what is set up once is no part of a request
        peaks = [torch_peak_bytes(partial(run, batch)) for run in runs]
    return peaks[0], peaks[1] if len(peaks) > 1 else None


def _check(subject: Subject, programs: Mapping[str, Executable], state: str, requests: Workload) -> None:
    """Every rung gives the first one's answers; otherwise its time means nothing."""
    answers = {name: _answer(fast, state, requests.fresh(0, CHECKED)) for name, fast in programs.items()}
    first, expected = next(iter(answers.items()))
    for name, answer in answers.items():
        error = float(np.abs(answer - expected).max())
        if not error < TOLERANCE:
            raise InternalError(
                f"cortex bench: {name!r} on {subject.model}, H={subject.hidden}, is off by {error:.2g} from {first!r}; "
                f"at most {TOLERANCE:g} is accepted"
            )

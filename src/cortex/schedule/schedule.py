"""Schedules: tuples of steps that print as Python, can be keys, and are read from files without running them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cortex.errors import ScheduleError
from cortex.ilir.ir import Func
from cortex.ir.step import Step
from cortex.ra.ir import Model
from cortex.recursion.batch import Batch
from cortex.recursion.dedup import Dedup
from cortex.recursion.fix_arity import FixArity
from cortex.recursion.hoist import Hoist
from cortex.recursion.inputs_inside import InputsInside
from cortex.recursion.refactor import Refactor
from cortex.recursion.specialize import Specialize
from cortex.recursion.specialize_leaves import SpecializeLeaves
from cortex.recursion.tabulate import Tabulate
from cortex.recursion.tabulate_leaf_products import TabulateLeafProducts
from cortex.recursion.unroll import UnrollRecursion
from cortex.schedule.alternate import Alternate
from cortex.schedule.barrier import PlaceBarriers
from cortex.schedule.compute_at import ComputeAt
from cortex.schedule.dense import Dense
from cortex.schedule.distribute import Distribute
from cortex.schedule.flatten import Flatten
from cortex.schedule.fuse import Fuse
from cortex.schedule.inline import Inline
from cortex.schedule.interleave import Interleave
from cortex.schedule.item_barriers import PlaceItemBarriers
from cortex.schedule.item_sums import ItemSums
from cortex.schedule.items import AloneItem, Items
from cortex.schedule.layout import Layout
from cortex.schedule.narrow import Narrow
from cortex.schedule.narrow_inputs import NarrowInputs
from cortex.schedule.pack import Pack
from cortex.schedule.parallel import Alone, Parallel
from cortex.schedule.parallel_trees import ParallelTrees
from cortex.schedule.parse_steps import parse_steps
from cortex.schedule.peel import Peel
from cortex.schedule.persist import Persist
from cortex.schedule.reorder import Reorder
from cortex.schedule.replicate import Replicate
from cortex.schedule.resident import Resident
from cortex.schedule.split import Split
from cortex.schedule.stage import Stage
from cortex.schedule.stream import Stream
from cortex.schedule.surround import Surround
from cortex.schedule.tile import Tile
from cortex.schedule.unroll import Unroll
from cortex.schedule.vector_reduce import VectorReduce
from cortex.schedule.vectorize import Vectorize
from cortex.schedule.windows import Windows

RECURSION_STEPS: tuple[type[Step[Model]], ...] = (
    *(Batch, Specialize, SpecializeLeaves, Hoist, Tabulate, TabulateLeafProducts, Dedup, InputsInside),
    *(FixArity, Refactor, UnrollRecursion),
)
THREAD_STEPS: tuple[type[Step[Func]], ...] = (Parallel, ParallelTrees, Replicate, Alone, PlaceBarriers, Persist)
GPU_STEPS: tuple[type[Step[Func]], ...] = (Items, ItemSums, Resident, AloneItem, PlaceItemBarriers)
LOOP_STEPS: tuple[type[Step[Func]], ...] = (
    *(Fuse, Distribute, Flatten, Split, Peel, Unroll, Reorder, Tile, Vectorize, VectorReduce),
    *(Pack, Narrow, NarrowInputs, Dense, Inline, Stage, ComputeAt, Layout, Interleave, Surround, Stream),
    *(Alternate, Windows),
    *THREAD_STEPS,
    *GPU_STEPS,
)
STEPS: tuple[type[Step[Any]], ...] = (*RECURSION_STEPS, *LOOP_STEPS)

LARGEST_FILE = 1 << 20  # bytes; a schedule has tens of steps


@dataclass(frozen=True)
class Schedule:
    """Steps on the recursion, then steps on its loops, in the order they apply.

    Barriers are placed for the program as it is then, so a schedule with `Parallel` or `Alone` has `PlaceBarriers` as
    its last step but for `Persist`, which changes nothing, and `PlaceItemBarriers`, which is last where there are
    `Items`.

    `repr` is Python that rebuilds the schedule from the names in `namespace()`.
    """

    steps: tuple[Step[Any], ...] = ()

    def __post_init__(self) -> None:
        fault = _fault(self.steps)
        if fault is not None:
            raise ScheduleError(f"Schedule: step {fault[0] + 1}, {fault[1]}")

    @property
    def on_recursion(self) -> tuple[Step[Model], ...]:
        """The steps that transform the model."""
        return tuple(s for s in self.steps if isinstance(s, RECURSION_STEPS))

    @property
    def on_loops(self) -> tuple[Step[Func], ...]:
        """The steps that transform its loops."""
        return tuple(s for s in self.steps if isinstance(s, LOOP_STEPS))

    def __repr__(self) -> str:
        lines = "".join(f"    {s!r},\n" for s in self.steps)
        return f"Schedule((\n{lines}))" if lines else "Schedule(())"

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step[Any]]:
        return iter(self.steps)

    def save(self, path: str | Path) -> None:
        """Write the schedule to a file that `load` reads."""
        Path(path).write_text(f"{self!r}\n", encoding="utf-8")

    @staticmethod
    def load(path: str | Path) -> Schedule:
        """The schedule in a file: `Schedule((...))` with steps whose arguments are literals. Nothing is executed."""
        try:
            with Path(path).open("rb") as file:
                content = file.read(LARGEST_FILE + 1)
        except OSError as error:
            raise ScheduleError(f"Schedule.load({str(path)!r}): cannot read the file: {error.strerror}.") from None
        if len(content) > LARGEST_FILE:
            raise ScheduleError(f"Schedule.load({str(path)!r}): the file is larger than {LARGEST_FILE} bytes.")
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            raise ScheduleError(f"Schedule.load({str(path)!r}): the file is not UTF-8 text.") from None
        return Schedule.parse(text, str(path))

    @staticmethod
    def parse(text: str, source: str = "<text>") -> Schedule:
        """The schedule written in `text`, which is not executed; `source` is its name in messages."""
        found = parse_steps(text, source, {s.__name__: s for s in STEPS})
        steps = tuple(s for _, s in found)
        fault = _fault(steps)
        if fault is not None:
            raise ScheduleError(f"{source}, line {found[fault[0]][0]}: {fault[1]}")
        return Schedule(steps)


def _fault(steps: tuple[Step[Any], ...]) -> tuple[int, str] | None:
    """The place of the first step that cannot stand where it does, and why."""
    late = False
    for number, s in enumerate(steps):
        if not isinstance(s, STEPS):
            return number, f"{s!r}, is no step. The steps are {', '.join(each.__name__ for each in STEPS)}."
        if late and isinstance(s, RECURSION_STEPS):
            return number, (
                f"{s!r}, is a step on the recursion and stands after steps on loops. Put it before them: the "
                "recursion is gone once there are loops."
            )
        late = late or isinstance(s, LOOP_STEPS)
    team = next((number for number, s in enumerate(steps) if isinstance(s, Parallel | Alone)), None)
    ending = [s for s in steps if not isinstance(s, Persist)][-2:]
    items = next((number for number, s in enumerate(steps) if isinstance(s, Items | AloneItem)), None)
    if items is not None and not isinstance(ending[-1], PlaceItemBarriers):
        return items, (
            f"{steps[items]!r}, shares work among items, and nothing says where they wait for each other. Put Alone(), "
            "AloneItem(), PlaceBarriers() and PlaceItemBarriers() last; only Persist may follow."
        )
    if team is not None and not any(isinstance(s, PlaceBarriers) for s in ending[-1 if items is None else -2 :]):
        return team, (
            f"{steps[team]!r}, shares work among threads, and nothing says where they wait for each other. Put Alone() "
            "and PlaceBarriers() last; only Persist may follow."
        )
    return None


def namespace() -> dict[str, type[Any]]:
    """What the Python of a printed schedule refers to."""
    return {"Schedule": Schedule} | {s.__name__: s for s in STEPS}

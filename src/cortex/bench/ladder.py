"""The ladder of the ablation suite: schedules, each of which adds one thing to the one before.

    none            one node at a time, one loop nest per operator, every kind behind a test of the node
    batching        nodes of one height together
    fusion          nests that share their loops run together
    specialization  leaves have their own code and come first, with all input products; what needs no node is
                    computed at load
    packing         weights in panels, register tiles, and the tail of the cell on the tile; on several threads, each
                    keeps its share of the weights
    tabulation      leaves are looked up
    automatic       what `compile` does without being told

A rung says nothing about particular models. On top of the ladder stand rungs that the paper shows on some models:
`unrolling`, `refactoring`, and `one node at a time`, which takes batching out again once there are tiles to feel it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cortex.codegen.target import Target
from cortex.ir.step import Step, apply
from cortex.lower.lower import lower
from cortex.ra import ir as ra
from cortex.ra.simplify import simplify
from cortex.recursion.batch import Batch
from cortex.recursion.fix_arity import FixArity
from cortex.recursion.hoist import Hoist
from cortex.recursion.refactor import Refactor
from cortex.recursion.specialize import Specialize
from cortex.recursion.specialize_leaves import SpecializeLeaves
from cortex.recursion.tabulate import Tabulate
from cortex.recursion.unroll import UnrollRecursion
from cortex.schedule.default import Registers, default_schedule
from cortex.schedule.parallel_default import parallel_schedule
from cortex.schedule.plain import plain_schedule
from cortex.schedule.schedule import Schedule

Loops = Literal["a nest per operator", "fused", "packed"]

TABLE_BYTES = 256 << 20
"""The largest tables: those of TreeLSTM, H=512, take 80 MB for 20,000 words."""


@dataclass(frozen=True)
class Rung:
    """Steps on the recursion, a way to schedule its loops, and the rung that it adds something to."""

    name: str
    recursion: tuple[Step[ra.Model], ...]
    loops: Loops
    against: str = ""

    def schedule(self, m: ra.Model, target: Target, threads: int) -> Schedule:
        """The whole schedule for the traced model `m`; a ScheduleError where the model has no use for a step."""
        f = lower(apply(simplify(m), self.recursion), target.lanes)
        registers = Registers(target.registers, target.lanes)
        if self.loops == "packed":
            steps = default_schedule(f, registers)
        else:
            steps = plain_schedule(f, registers, fuse=self.loops == "fused")
        if threads > 1:
            steps = (*steps, *parallel_schedule(apply(f, steps), threads))
        return Schedule((*self.recursion, *steps))


_SHARED = (Batch("height"), Specialize(()))
_OWN = (Batch("height"), SpecializeLeaves(), Hoist())

LADDER = (
    Rung("none", (Batch("none"), Specialize(())), "a nest per operator"),
    Rung("batching", _SHARED, "a nest per operator", "none"),
    Rung("fusion", _SHARED, "fused", "batching"),
    Rung("specialization", _OWN, "fused", "fusion"),
    Rung("packing", _OWN, "packed", "specialization"),
    Rung("tabulation", (*_OWN, Tabulate(None, TABLE_BYTES)), "packed", "packing"),
)
AUTOMATIC = "automatic"

_ONE_AT_A_TIME = Rung("one node at a time", (Batch("none"), *_OWN[1:]), "packed", "packing")
_UNROLLING = Rung("unrolling", (*_OWN, UnrollRecursion()), "packed", "packing")
_REFACTORING = Rung("refactoring", (*_OWN, Refactor()), "packed", "packing")
_TWO_CHILDREN = (*_OWN, FixArity("inner", 2))


def rungs(model: str) -> tuple[Rung, ...]:
    """The ladder, and what stands on top of it for a model of the zoo."""
    match model:
        case "tree_rnn":
            return (*LADDER, _ONE_AT_A_TIME, _UNROLLING)
        case "tree_lstm":  # a list of children is unrolled where its length is known
            fixed = Rung("two children", _TWO_CHILDREN, "packed", "packing")
            unrolled = Rung("unrolling", (*_TWO_CHILDREN, UnrollRecursion()), "packed", "two children")
            return (*LADDER, _ONE_AT_A_TIME, fixed, unrolled)
        case "tree_gru" | "simple_tree_gru":
            return (*LADDER, _ONE_AT_A_TIME, _REFACTORING)
        case _:
            return (*LADDER, _ONE_AT_A_TIME)

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

A rung says nothing about particular models. Beside the ladder stand rungs that take something out of `packing` again,
because some optimizations are felt only where there are tiles (`without batching`, `without fusion`), and those that
the paper shows on some models, `unrolling` and `refactoring`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, assert_never

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
from cortex.schedule.default import Choices, default_schedule
from cortex.schedule.parallel_default import parallel_schedule
from cortex.schedule.plain import plain_schedule
from cortex.schedule.registers import Registers
from cortex.schedule.schedule import Schedule

Loops = Literal["a nest per operator", "fused", "packed", "packed, a nest per operator"]

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
        registers = Registers(target.registers, target.lanes, target.broadcasts)
        match self.loops:
            case "a nest per operator" | "fused":
                steps = plain_schedule(f, registers, fuse=self.loops == "fused")
            case "packed" | "packed, a nest per operator":
                steps = default_schedule(f, registers, Choices(fuse=self.loops == "packed"))
            case _:
                assert_never(self.loops)
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

_WITHOUT = (
    Rung("without batching", (Batch("none"), *_OWN[1:]), "packed", "packing"),
    Rung("without fusion", _OWN, "packed, a nest per operator", "packing"),
)
_TWO_CHILDREN = (*_OWN, FixArity("inner", 2))


def beside(model: str) -> tuple[Rung, ...]:
    """What stands beside the ladder for a model of the zoo."""
    match model:
        case "tree_rnn":
            return (*_WITHOUT, Rung("unrolling", (*_OWN, UnrollRecursion()), "packed", "packing"))
        case "tree_lstm":  # a list of children is unrolled where its length is known
            fixed = Rung("two children", _TWO_CHILDREN, "packed", "packing")
            unrolled = Rung("unrolling", (*_TWO_CHILDREN, UnrollRecursion()), "packed", "two children")
            return (*_WITHOUT, fixed, unrolled)
        case "tree_gru" | "simple_tree_gru":
            return (*_WITHOUT, Rung("refactoring", (*_OWN, Refactor()), "packed", "packing"))
        case _:
            return _WITHOUT

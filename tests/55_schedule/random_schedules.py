"""Random sequences of schedule steps on lowered models, and the comparison of their results."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cortex import zoo
from cortex.codegen.target import Target
from cortex.compiler import Plan, stages
from cortex.errors import ScheduleError
from cortex.frontend.trace import Trace
from cortex.frontend.weights import Weights
from cortex.ilir import interp
from cortex.ilir.ir import For, Func, Scope
from cortex.ilir.verify import verify
from cortex.ir.node import walk
from cortex.ir.scalar import Load
from cortex.ir.step import Step
from cortex.lower.linear_form import LinearForm
from cortex.ra import interp as ra_interp
from cortex.runtime.linearize import linearizer
from cortex.schedule.compute_at import ComputeAt
from cortex.schedule.dense import Dense
from cortex.schedule.distribute import Distribute
from cortex.schedule.fuse import Fuse
from cortex.schedule.inline import Inline
from cortex.schedule.interleave import Interleave
from cortex.schedule.layout import Layout
from cortex.schedule.locate import blocks
from cortex.schedule.pack import Pack
from cortex.schedule.peel import Peel
from cortex.schedule.reorder import Reorder
from cortex.schedule.split import Split, Tail
from cortex.schedule.stage import Stage
from cortex.schedule.tile import Tile
from cortex.schedule.unroll import Unroll
from cortex.schedule.vector_reduce import VectorReduce
from cortex.schedule.vectorize import Vectorize
from cortex.structures import generators
from cortex.structures.grid import grid
from cortex.structures.sequences import sequence
from cortex.structures.tree import with_children

LoopStep = Step[Func]
VOCAB = 5
MAX_STATEMENTS = 400  # beyond it, a program is no longer small and takes no further steps


@dataclass(frozen=True)
class Case:
    """A lowered model with a request."""

    name: str
    f: Func
    sizes: dict[str, int]
    index: dict[str, Any]
    buffers: dict[str, Any]

    def states(self, f: Func) -> dict[str, Any]:
        """The states that `f`, which is this model's function after any steps, computes."""
        result = interp.run(f, self.sizes, self.index, self.buffers)
        return {b.name: result.buffers[b.name] for b in f.buffers if b.scope is Scope.STATE}


def random_case(rng: random.Random, parts: int | None = None) -> Case:
    """A model of the zoo at a hidden size of 3 to 6, and one or two tiny structures for it, or so many as `parts`."""
    entry = zoo.load(rng.choice(list(zoo.ENTRIES)))
    structures = [_structure(entry.name, rng) for _ in range(parts or rng.randint(1, 2))]
    trace = Trace(entry.model, Weights(entry.weights(rng.randint(3, 6), VOCAB, seed=rng.randint(0, 99))))
    trace.see(structures)
    lowered = next(s for s in stages(trace.model(), Plan(Target.host())) if s.name == "lowered")
    params = trace.weights.arrays(p.name for p in trace.model().params)
    divided = linearizer(lowered.model, trace.accessors, parts=parts is not None)
    form = LinearForm(**divided.linearize(structures, parts or 1))
    buffers = ra_interp.derived(lowered.model, params) | {f"field_{k}": v for k, v in form.fields.items()}
    return Case(entry.name, lowered.func, form.sizes, form.arrays, buffers)


def _structure(name: str, rng: random.Random) -> Any:
    if name in ("lstm", "gru"):
        return sequence([rng.randrange(VOCAB) for _ in range(rng.randint(1, 4))])
    if name == "dag_rnn":
        rows, columns = rng.randint(1, 2), rng.randint(1, 3)
        return grid(rows, columns, [rng.randrange(VOCAB) for _ in range(rows * columns)])
    if name in ("tree_lstm", "tree_lstm_words", "tree_gru", "tree_gru_words", "simple_tree_gru"):
        if name.endswith("_words") or rng.random() < 0.7:
            return generators.random_tree(rng, rng.randint(1, 6), VOCAB)
        return with_children(generators.perfect_tree(rng, rng.randint(1, 2), VOCAB))
    return generators.perfect_tree(rng, rng.randint(1, 2), VOCAB)


def random_step(f: Func, rng: random.Random) -> LoopStep:
    """A step whose arguments exist in `f`; whether it is legal there is for the step to say."""
    lists = [block for block in blocks(f.body) if any(isinstance(s, For) for s in block)]
    loops = {s.var: s for block in lists for s in block if isinstance(s, For)}
    loop = rng.choice(list(loops))
    temporaries = [b.name for b in f.buffers if b.scope is Scope.SCRATCH] or ["none"]
    nest = list(_chain(loops[loop]))
    factor = rng.choice((1, 2, 3, 4, 5))
    lanes = rng.choice((2, 4, 8))

    def tile() -> LoopStep:
        rows = rng.choice((None, *nest[:-1]))
        height = 1 if rows is None else rng.randint(1, 3)
        unroll = tuple(rng.randint(1, 3) for _ in range(height))
        return Tile(loop, rng.choice(nest), rows, height, rng.randint(1, 2), lanes, unroll)

    def fuse() -> LoopStep:
        together = [s.var for s in rng.choice(lists) if isinstance(s, For)]
        count = min(len(together), rng.randint(2, 4))
        first = rng.randint(0, len(together) - count)
        return Fuse(tuple(together[first : first + count]), rng.randint(1, 3))

    def reorder() -> LoopStep:
        chosen = nest[: rng.randint(2, 4)]
        return Reorder(tuple(rng.sample(chosen, len(chosen))))

    def layout() -> LoopStep:
        name = rng.choice(temporaries)
        rank = next((len(b.shape) for b in f.buffers if b.name == name), 1)
        return Layout(name, tuple(rng.sample(range(rank), rank)))

    tails: tuple[Tail, ...] = ("guard", "peel", "cases", "none")
    choices: tuple[Callable[[], LoopStep], ...] = (
        fuse,
        fuse,
        tile,
        reorder,
        reorder,
        layout,
        lambda: Split(loop, factor, rng.choice(tails)),
        lambda: Unroll(loop, rng.choice((None, factor))),
        lambda: Peel(loop, rng.randint(0, 2), rng.randint(0, 1)),
        lambda: Distribute(loop, rng.randint(1, 3)),
        lambda: Inline(rng.choice(temporaries)),
        lambda: Inline(rng.choice(temporaries)),
        lambda: Stage(rng.choice(sorted(_used(loops[loop])) or ["none"]), loop),
        lambda: ComputeAt(rng.choice(sorted(_used(loops[loop]) & set(temporaries)) or ["none"]), loop),
        lambda: ComputeAt(rng.choice(sorted(_used(loops[loop]) & set(temporaries)) or ["none"]), loop),
        lambda: Interleave(tuple(rng.sample(temporaries, min(2, len(temporaries)))), rng.randint(0, 2)),
        lambda: Pack(loop, lanes),
        lambda: Vectorize(loop, lanes),
        lambda: VectorReduce(loop, lanes),
        lambda: Dense(tuple(rng.sample(temporaries, rng.randint(1, min(3, len(temporaries)))))),
    )
    return rng.choice(choices)()


def _used(loop: For) -> set[str]:
    """The buffers that a loop reads."""
    return {n.buffer for n in walk(loop) if isinstance(n, Load)}


def _chain(loop: For) -> Iterator[str]:
    """The names of the loops of a perfect nest."""
    yield loop.var
    for s in loop.body:
        if isinstance(s, For):
            yield from _chain(s)
            return


@dataclass(frozen=True)
class Outcome:
    """A random schedule: the steps that applied, and how many refused."""

    steps: tuple[LoopStep, ...]
    f: Func
    refused: int


def random_schedule(f: Func, rng: random.Random, tries: int) -> Outcome:
    """`f` after the legal ones of `tries` random steps. A step that refuses must leave the program as it was."""
    steps: list[LoopStep] = []
    refused = 0
    for _ in range(tries):
        if sum(len(block) for block in blocks(f.body)) > MAX_STATEMENTS:
            break
        step = random_step(f, rng)
        kept = f
        try:
            new = step.apply(f)
        except ScheduleError:
            assert f == kept
            refused += 1
            continue
        verify(new)
        steps.append(step)
        f = new
    return Outcome(tuple(steps), f, refused)


def same(wanted: dict[str, Any], got: dict[str, Any]) -> bool:
    """Are the states equal, up to the rounding of sums in another order?"""
    return all(np.allclose(got[name], value, rtol=1e-9, atol=1e-11, equal_nan=True) for name, value in wanted.items())

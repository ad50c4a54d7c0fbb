"""Random steps: of any class, with arguments that mostly exist in the program, whether they are legal there or not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, get_args

from cortex.ilir.ir import Accumulate, For, Func, Scope, Store
from cortex.ir.node import walk
from cortex.ir.scalar import Load
from cortex.ir.step import Step
from cortex.ra import ir as ra
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
from cortex.schedule.layout import Layout
from cortex.schedule.locate import blocks, constant_extent
from cortex.schedule.pack import Pack
from cortex.schedule.parallel import Alone, Parallel
from cortex.schedule.parallel_trees import ParallelTrees
from cortex.schedule.peel import Peel
from cortex.schedule.persist import Persist
from cortex.schedule.reorder import Reorder
from cortex.schedule.replicate import Replicate
from cortex.schedule.split import Split, Tail
from cortex.schedule.stage import Stage
from cortex.schedule.tile import Tile
from cortex.schedule.unroll import Unroll
from cortex.schedule.vector_reduce import VectorReduce
from cortex.schedule.vectorize import Vectorize
from cortex.schedule.windows import Windows

Draw = Callable[[], Step[Any]]


def random_recursion_step(m: ra.Model, rng: random.Random) -> Step[ra.Model]:
    """A step on the recursion of `m`."""
    kinds = [k.name for k in m.kinds]
    kind = rng.choice(m.kinds)
    reducing = [k.name for k in m.kinds if any(isinstance(let.op, ra.OverChildren) for let in k.lets)] or kinds
    lets = [let.name for let in kind.lets] or ["none"]
    lists = ("", "", "", *m.lists)
    limit = rng.choice((64 << 20, 64 << 20, 64 << 20, 100))
    draws: tuple[Draw, ...] = (
        lambda: Batch(rng.choice(get_args(ra.Batching))),
        lambda: Specialize(rng.choice((None, (), tuple(rng.sample(kinds, rng.randint(1, len(kinds))))))),
        SpecializeLeaves,
        Hoist,
        lambda: Tabulate(rng.choice((None, kind.name)), limit),
        lambda: TabulateLeafProducts(limit),
        Dedup,
        Refactor,
        lambda: Refactor(kind.name, tuple(rng.sample(lets, min(len(lets), rng.randint(0, 2))))),
        lambda: FixArity(kind.name, rng.randint(1, 3), rng.choice(lists)),
        lambda: FixArity(rng.choice(reducing), rng.randint(1, 3)),
        lambda: UnrollRecursion(rng.choice((2, 2, 2, 3, 4))),
        lambda: UnrollRecursion(rng.choice((2, 2, 2, 3, 4))),
        InputsInside,
    )
    return _spoilt(rng.choice(draws)(), rng)


def random_loop_step(f: Func, rng: random.Random) -> Step[Func]:
    """A step on the loops of `f`."""
    lists = [block for block in blocks(f.body) if any(isinstance(s, For) for s in block)]
    loops = {s.var: s for block in lists for s in block if isinstance(s, For)}
    loop = rng.choice(list(loops))
    column = _one_of(loops, lambda s: any(isinstance(x, For) for x in s.body), rng)
    sum_over = _one_of(loops, lambda s: any(isinstance(x, Accumulate) for x in s.body), rng)
    several = _one_of(loops, lambda s: len(s.body) > 1, rng)
    temporaries = [b.name for b in f.buffers if b.scope is Scope.SCRATCH] or ["none"]
    weights = [b.name for b in f.buffers if b.scope in (Scope.PARAM, Scope.PACKED)] or ["none"]
    nest = list(_chain(loops[loop]))
    factor = rng.choice((1, 2, 3, 4, 5))
    lanes = rng.choice((2, 4, 8))

    def tile() -> Step[Func]:
        rows = rng.choice((None, *nest[:-1]))
        height = 1 if rows is None else rng.randint(1, 3)
        unroll = tuple(rng.randint(1, 3) for _ in range(height))
        rows_first = rows is not None and rng.random() < 0.3
        return Tile(loop, rng.choice(nest), rows, height, rng.randint(1, 2), lanes, unroll, rows_first=rows_first)

    def fuse() -> Step[Func]:
        together = [s.var for s in rng.choice(lists) if isinstance(s, For)]
        count = min(len(together), rng.randint(2, 4))
        first = rng.randint(0, len(together) - count)
        apart = sorted(rng.sample(range(first, min(len(together), first + count + 2)), count))
        chosen = rng.choice((range(first, first + count), apart))
        return Fuse(tuple(together[place] for place in chosen), rng.randint(1, 3))

    def reorder() -> Step[Func]:
        chosen = nest[: rng.randint(2, 4)]
        return Reorder(tuple(rng.sample(chosen, len(chosen))))

    def flatten() -> Step[Func]:
        pairs = [(s.var, s.body[0].var) for s in loops.values() if len(s.body) == 1 and isinstance(s.body[0], For)]
        constant = [pair for pair in pairs if all(constant_extent(loops[name]) for name in pair)]
        return Flatten(rng.choice(constant or pairs or [(loop,)]))

    def layout() -> Step[Func]:
        name = rng.choice(temporaries)
        rank = next((len(b.shape) for b in f.buffers if b.name == name), 1)
        return Layout(name, tuple(rng.sample(range(rank), rank)))

    def compute_at() -> Step[Func]:
        return ComputeAt(rng.choice(sorted(_used(loops[loop]) & set(temporaries)) or ["none"]), loop)

    def alternate() -> Step[Func]:
        turned = rng.choice([*nest[1:], loop])
        return Alternate(turned, rng.choice(nest[: nest.index(turned)] or list(loops)))

    tails: tuple[Tail, ...] = ("guard", "peel", "cases", "none")
    draws: tuple[Draw, ...] = (
        *(fuse, fuse, tile, reorder, reorder, flatten, layout, compute_at, compute_at, alternate),
        lambda: Split(loop, factor, rng.choice(tails)),
        lambda: Unroll(loop, rng.choice((None, factor))),
        lambda: Peel(loop, rng.randint(0, 2), rng.randint(0, 1)),
        lambda: Distribute(several, rng.randint(1, 3)),
        lambda: Inline(rng.choice(temporaries)),
        lambda: Inline(rng.choice(temporaries)),
        lambda: Stage(rng.choice(sorted(_used(loops[loop])) or ["none"]), loop),
        lambda: Interleave(tuple(rng.sample(temporaries, min(2, len(temporaries)))), rng.randint(0, 2)),
        lambda: Pack(column, lanes),
        lambda: Vectorize(loop, lanes),
        lambda: VectorReduce(sum_over, lanes),
        lambda: Dense(tuple(rng.sample(temporaries, rng.randint(1, min(3, len(temporaries)))))),
        lambda: Parallel(loop, rng.choice((1, 1, factor))),
        lambda: rng.choice(
            (Alone(), PlaceBarriers(), Persist(rng.choice(weights)), ParallelTrees(), Windows(), Windows())
        ),
    )
    return _spoilt(rng.choice(draws)(), rng)


def random_sharing_step(f: Func, rng: random.Random) -> Step[Func]:
    """A step that shares the work of `f` among threads, or says how it is shared; now and then any step."""
    if rng.random() < 0.3:
        return random_loop_step(f, rng)
    loops = [s.var for block in blocks(f.body) for s in block if isinstance(s, For)]
    weights = [b.name for b in f.buffers if b.scope in (Scope.PARAM, Scope.PACKED)] or ["none"]
    draws: tuple[Draw, ...] = (
        lambda: Parallel(rng.choice(loops), rng.choice((1, 1, 1, 2, 3))),
        lambda: Parallel(rng.choice(loops)),
        lambda: rng.choice((Alone(), PlaceBarriers())),
        lambda: Persist(rng.choice(weights)),
        ParallelTrees,
    )
    return rng.choice(draws)()


def random_copies(f: Func, rng: random.Random) -> Replicate:
    """A step that gives every thread copies of what one nest computes, or of any temporaries."""
    temporaries = [b.name for b in f.buffers if b.scope is Scope.SCRATCH] or ["none"]
    nests = [s for block in blocks(f.body) for s in block if isinstance(s, For)]
    written = {n.buffer for n in walk(rng.choice(nests)) if isinstance(n, Store | Accumulate)} & set(temporaries)
    return Replicate(rng.choice((tuple(sorted(written)) or ("none",), tuple(rng.sample(temporaries, 1)))))


def _spoilt(step: Step[Any], rng: random.Random) -> Step[Any]:
    """`step`, in which one argument, now and then, is one that nobody should give."""
    arguments = fields(step)  # type: ignore[arg-type]
    if not arguments or rng.random() < 0.93:
        return step
    name = rng.choice(arguments).name
    match getattr(step, name):
        case str():
            return replace(step, **{name: "nowhere"})  # type: ignore[type-var]
        case int():
            return replace(step, **{name: rng.choice((-1, 0, 7))})  # type: ignore[type-var]
        case (first, *_) as several:
            return replace(step, **{name: rng.choice(((), (*several, first), (first,)))})  # type: ignore[type-var]
        case _:
            return step


def _one_of(loops: dict[str, For], suits: Callable[[For], bool], rng: random.Random) -> str:
    """A loop that suits, or now and then any loop."""
    found = [name for name, loop in loops.items() if suits(loop)]
    return rng.choice(found if found and rng.random() < 0.8 else list(loops))


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

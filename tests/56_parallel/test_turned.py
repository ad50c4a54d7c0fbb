"""Turned loops: each thread runs its own iterations in the other order, and no bit of a result changes."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from breadth import some

import cortex
from cortex import zoo
from cortex.codegen.llvm.run import prepare
from cortex.codegen.target import Target
from cortex.ilir import interp
from cortex.ilir.ir import Buffer, For, Func, LoopKind, Scope, Store
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Float, Int, Load, Var
from cortex.ir.step import apply
from cortex.lower.lower import lower
from cortex.lower.places import GROUP
from cortex.runtime.linearize import linearize
from cortex.schedule.alternate import Alternate, panel_loops
from cortex.schedule.barrier import PlaceBarriers
from cortex.schedule.default import DEFAULT
from cortex.schedule.parallel_default import Sharing
from cortex.schedule.schedule import Schedule, namespace

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
from races import races, share_of
from random_models import compilable, random_model
from random_structures import random_batch

Build = Callable[..., tuple[Any, list[Any]]]
HIDDEN, VOCAB = 72, 50
SEEDS = some((1, 25, 26, 32, 34, 40, 64, 68, 69, 70, 75, 77), (26, 70, 77))
"""Random models that have panels: weights so wide, in products of so few rows."""

NOW = Load("clock", (Int(0),))
LATER = Store("clock", (Int(0),), Binary("add", NOW, Float(1.0)))
SHOWS_ORDER = Func(
    "shows_order",
    ("n",),
    (),
    (Buffer("clock", "f32", (Int(1),), Scope.SCRATCH), Buffer("at", "f32", (Int(3), Var("n")), Scope.SCRATCH)),
    (
        For("g", Int(0), Int(3), (
            Store("clock", (Int(0),), Float(0.0)),
            For("i", Int(0), Var("n"), (LATER, Store("at", (Var("g"), Var("i")), NOW)), LoopKind.PARALLEL, Var("g")),
        )),
    ),
)  # fmt: skip
"""Not what `verify` or a step would allow: iterations pass the time on, so that their order can be seen."""


def compiled_order(thread: int, threads: int, n: int) -> Any:
    """What one thread of a team writes to `at`; the others do not run at all."""
    made = prepare(SHOWS_ORDER, Target.host(), {"n": n}, {}, {})
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    entry = ctypes.CFUNCTYPE(None, pointer, pointer, number, number, pointer)(made.code.address)
    entry(made.addresses.ctypes.data, made.sizes.ctypes.data, thread, threads, None)
    return made.buffers["at"]


def interpreted_order(thread: int, threads: int, n: int) -> Any:
    """The same by the interpreter."""
    return interp.run(share_of(SHOWS_ORDER, thread, threads), {"n": n}, {}, {}).buffers["at"]


@pytest.mark.parametrize("order", [compiled_order, interpreted_order])
@pytest.mark.parametrize("n", [0, 1, 2, 7])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_thread_keeps_its_share_in_the_other_order(order: Callable[..., Any], n: int, threads: int) -> None:
    for thread in range(threads):
        lo, hi = thread * n // threads, (thread + 1) * n // threads
        want = np.full((3, n), np.nan)
        want[:, lo:hi] = np.arange(1, hi - lo + 1)
        want[1, lo:hi] = want[1, lo:hi][::-1]
        np.testing.assert_array_equal(order(thread, threads, n), want)


def turned(fast: Any) -> Schedule:
    """The schedule of a compiled model with all its panels turned, before barriers are placed."""
    steps = fast.schedule.steps
    at = next((i for i, s in enumerate(steps) if isinstance(s, PlaceBarriers)), len(steps))
    turns = (Alternate(p.var, GROUP.name) for p in panel_loops(fast.compiled.func))
    return Schedule((*steps[:at], *turns, *steps[at:]))


def turned_loops(fast: Any) -> list[For]:
    return [n for n in walk(fast.compiled.func) if isinstance(n, For) and n.turned is not None]


def bits(fast: Any, structures: list[Any], **threads: int) -> list[bytes]:
    out = fast(structures, **threads)
    return [np.asarray(out.nodes[s.name]).tobytes() for s in fast.compiled.model.outputs]


@pytest.mark.parametrize("name", ["lstm", "tree_gru"])
@pytest.mark.parametrize("mapping", [None, "columns", "nodes", "trees"])
def test_bits_do_not_depend_on_the_direction(compiled: Build, name: str, mapping: Sharing | None) -> None:
    threads = 1 if mapping is None else 2
    plain, trees = compiled(name, HIDDEN, threads, 3, mapping)
    schedule = turned(plain)
    weights = zoo.load(name).weights(HIDDEN, VOCAB)
    fast = cortex.compile(zoo.load(name).model, weights, examples=trees, threads=threads, schedule=schedule)
    loops = turned_loops(fast)
    assert len(loops) == len(panel_loops(plain.compiled.func)) > 0
    assert any(loop.kind is LoopKind.PARALLEL for loop in loops) == (mapping == "columns")
    assert eval(repr(schedule), namespace()) == Schedule.parse(repr(schedule)) == schedule
    for batch in (trees[:1], trees):
        want = bits(plain, batch, threads=1)
        assert all(bits(fast, batch, threads=team) == want for team in ((1, 2, 3) if threads > 1 else (1,)))


def test_the_turned_default_has_no_races(compiled: Build) -> None:
    plain, trees = compiled("tree_gru", HIDDEN, 2, 1, "columns")
    f = apply(lower(plain.compiled.model, Target.host().lanes), turned(plain).on_loops)
    assert any(isinstance(n, For) and n.turned is not None for n in walk(f))
    form = linearize(plain.compiled.model, trees)
    assert all(races(f, form.sizes, form.arrays, team) == [] for team in (2, 3))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_models_with_all_panels_turned(seed: int) -> None:
    m = random_model(seed, {40: 1, 72: 1})
    structures = random_batch(seed, m.family, m.vector)[:3]
    model, weights = compilable(m), None if m.closure else m.arrays(0.5)
    plain = cortex.compile(model, weights, choices=DEFAULT, examples=structures)
    fast = cortex.compile(model, weights, schedule=turned(plain), examples=structures)
    assert bits(fast, structures) == bits(plain, structures)
    assert turned_loops(fast)


def test_turning_asks_no_prover() -> None:
    code = """
import sys, cortex
from cortex import zoo
from cortex.schedule.alternate import Alternate, panel_loops
from cortex.schedule.default import Choices
entry = zoo.load("tree_gru")
for mapping in ("columns", "nodes", "trees"):
    fast = cortex.compile(entry.model, entry.weights(160, 9), choices=Choices(parallel=mapping), threads=2)
    f = fast.compiled.func
    panels = panel_loops(f)
    assert panels
    for panel in panels:
        Alternate(panel.var, "g").apply(f)
print(sorted({"islpy", "z3"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr

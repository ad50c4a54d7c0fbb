"""Where panels of weights are read in alternating directions, by the curve of the example machine."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

import cortex
from cortex import zoo
from cortex.cost.alternating import LEAST, alternating, saving
from cortex.cost.choose import ALWAYS
from cortex.cost.machine import MIB, Machine
from cortex.ilir.ir import For, Func
from cortex.ilir.show import show
from cortex.ir.node import walk
from cortex.ir.scalar import Var
from cortex.ir.step import apply
from cortex.runtime import measure_machine
from cortex.schedule.alternate import Alternate, panel_loops
from cortex.schedule.default import DEFAULT
from cortex.schedule.parallel import Parallel

MACHINE = Machine.example()  # with 2 MB of L2
FLAT = replace(MACHINE, reads=tuple((size, 100.0) for size, _ in MACHINE.reads))
HIDDEN = 64
WEIGHTS = 4 * HIDDEN * HIDDEN * 4
"""Bytes of the weights that an LSTM reads in its recursion; those of its inputs are read ahead of it."""


def with_l2(size: float) -> Machine:
    """The example machine with a second cache of so many bytes, and all that lies behind it scaled likewise."""
    scale = size / MACHINE.l2
    return replace(MACHINE, l2=int(size), reads=tuple((int(at * scale), rate) for at, rate in MACHINE.reads))


def test_nothing_is_saved_where_the_share_stays_in_the_cache() -> None:
    assert [saving(share, MACHINE) for share in (0, 1000, MIB / 2, MIB)] == [0.0] * 4


def test_most_is_saved_where_the_share_is_as_large_as_the_cache() -> None:
    saved = [saving(share * MIB, MACHINE) for share in (1.25, 1.5, 2, 3, 4, 8, 16, 64)]
    assert saved[:3] == sorted(saved[:3]) and saved[2:] == sorted(saved[2:], reverse=True)
    assert saving(2 * MIB, MACHINE) == pytest.approx(0.75 * (1 - 60 / 150))
    assert saving(4 * MIB, MACHINE) == pytest.approx(0.75 / 2 * (1 - 31 / 150))
    assert saved[-1] < LEAST < saved[0]


def test_nothing_is_saved_where_reading_is_as_fast_from_afar() -> None:
    faster = replace(MACHINE, reads=tuple((size, float(size)) for size, _ in MACHINE.reads))
    for share in (MIB, 2 * MIB, 4 * MIB, 64 * MIB):
        assert saving(share, FLAT) == saving(share, faster) == 0.0


def scheduled(p: Any) -> Func:
    return next(s.func for s in p.stages if s.name == "scheduled")


@pytest.fixture
def lstm(program: Any) -> Func:
    return scheduled(program("lstm", HIDDEN))


def test_the_panels_of_the_recursion_are_turned(lstm: Func) -> None:
    steps, (considered,) = alternating(lstm, with_l2(WEIGHTS), 1)
    assert steps == tuple(Alternate(p.var, "g") for p in panel_loops(lstm)) != ()
    assert {n.var for n in walk(apply(lstm, steps)) if isinstance(n, For) and n.turned == Var("g")} == {
        s.loop for s in steps
    }
    assert considered.taken
    assert considered.text() == (
        "panels of weights in alternating directions (0.1 MB for a thread): taken, what was read last is still in the "
        "cache: reading takes 0.55 of the time"
    )


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        (with_l2(2 * WEIGHTS), "they stay in the cache anyway"),
        (with_l2(2 * WEIGHTS - 16), "what was read last is still in the cache: reading takes 1.00 of the time"),
        (with_l2(WEIGHTS / 40), "what was read last is still in the cache: reading takes 0.98 of the time"),
        (replace(FLAT, l2=WEIGHTS), "what was read last is still in the cache: reading takes 1.00 of the time"),
    ],
    ids=["half", "hardly more", "many times larger", "flat"],
)
def test_panels_are_left_as_they_are(lstm: Func, machine: Machine, why: str) -> None:
    steps, (considered,) = alternating(lstm, machine, 1)
    assert steps == ()
    assert (considered.taken, considered.why) == (False, why)


def test_threads_that_share_panels_have_a_part_of_them_each(lstm: Func) -> None:
    shared = apply(lstm, tuple(Parallel(p.var) for p in panel_loops(lstm)))
    machine = with_l2(WEIGHTS)
    assert alternating(shared, machine, 1)[0] != ()
    assert alternating(shared, machine, 2)[0] == (), "half of the weights stays in the cache"
    assert alternating(shared, with_l2(WEIGHTS / 2), 2)[0] == alternating(shared, machine, 1)[0]
    assert alternating(lstm, machine, 2) == alternating(lstm, machine, 1), "each thread reads all"


def test_a_program_without_panels_has_nothing_to_turn(program: Any, lstm: Func) -> None:
    plain = program("lstm", HIDDEN).stages
    assert alternating(next(s.func for s in plain if s.name == "lowered"), MACHINE, 1) == ((), ())
    assert alternating(replace(lstm, body=()), MACHINE, 1) == ((), ())


def compiled(size: float, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Any:
    """An LSTM compiled for a machine like this one with a second cache of `size` bytes."""
    machine = with_l2(size)
    monkeypatch.setattr(measure_machine, "here", lambda: machine)
    entry = zoo.load("lstm")
    return cortex.compile(
        entry.model, entry.weights(HIDDEN, 30), examples=entry.structures(Random(0), 1, 30), **options
    )


def turns(fast: Any) -> list[Alternate]:
    return [s for s in fast.schedule if isinstance(s, Alternate)]


def test_compile_turns_panels_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    turned, plain = (compiled(size, monkeypatch) for size in (WEIGHTS, 2 * WEIGHTS))
    assert turns(turned) and not turns(plain)
    text = turned.explain()
    assert "alternating directions (0.1 MB for a thread): taken, what was read last is still in the cache" in text
    assert f"for {turns(turned)[0].loop} in 0..4 down where g is odd:" in show(turned.compiled.func)
    assert "alternating directions (0.1 MB for a thread): left, they stay in the cache anyway" in plain.explain()
    structures = zoo.load("lstm").structures(Random(1), 3, 30)
    assert turned(structures).nodes.h.tobytes() == plain(structures).nodes.h.tobytes()


def test_on_two_threads_panels_are_turned_before_barriers_are_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = compiled(WEIGHTS / 2, monkeypatch, threads=2)
    names = [type(s).__name__ for s in fast.schedule]
    assert "Parallel" not in names or names.index("Parallel") < names.index("Alternate") < names.index("PlaceBarriers")
    structures = zoo.load("lstm").structures(Random(1), 3, 30)
    assert len({fast(structures, threads=threads).nodes.h.tobytes() for threads in (1, 2, 3)}) == 1


def test_what_is_asked_for_is_not_turned(monkeypatch: pytest.MonkeyPatch) -> None:
    turned = compiled(WEIGHTS, monkeypatch)
    assert not turns(compiled(WEIGHTS, monkeypatch, choices=DEFAULT, recursion=ALWAYS))
    without = replace(turned.schedule, steps=tuple(s for s in turned.schedule if not isinstance(s, Alternate)))
    assert not turns(compiled(WEIGHTS, monkeypatch, schedule=without))
    assert compiled(WEIGHTS, monkeypatch, schedule=turned.schedule).compiled.func == turned.compiled.func

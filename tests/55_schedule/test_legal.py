"""Legality: what isl and the prover accept beyond the quick rules, and that no tier accepts what changes the meaning.

pytest tests/55_schedule/test_legal.py --schedules 1000
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from cortex.errors import ScheduleError
from cortex.ilir.interp import run
from cortex.ilir.ir import For, Func, If, IndexFunction, Let, Stmt, Store
from cortex.ilir.verify import verify
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Expr, Float, Index, Int, Load, Var
from cortex.ir.simplify import add, substitute
from cortex.ir.step import Step
from cortex.poly import legal
from cortex.poly.legal import why_not_any_order
from cortex.poly.quick import QuickRules
from cortex.schedule.distribute import Distribute
from cortex.schedule.fuse import Fuse
from cortex.schedule.locate import Names, find_loop, replace_loop
from cortex.schedule.parallel import Parallel
from cortex.schedule.rename import fresh_copy
from cortex.schedule.reorder import Reorder
from cortex.schedule.split import Split
from cortex.schedule.vectorize import Vectorize

sys.path.insert(0, str(Path(__file__).parent))
import random_nests

Golden = Callable[[str, str], None]

ROW, COLUMN, K = Var("i"), Var("j"), Var("k")


def at(x: Expr, offset: int) -> Expr:
    return add(x, offset)


def states(*body: Stmt, sizes: tuple[str, ...] = (), functions: tuple[IndexFunction, ...] = ()) -> Func:
    """A program over the two states of `random_nests`, which are filled first."""
    return random_nests.filled(Func("program", sizes, functions, (), body), Int(random_nests.SIDE))


def diagonal(rows: int, columns: int) -> Func:
    """An element from one that lies `rows` before and `columns` after it."""
    earlier = Load("a", (at(ROW, 2 - rows), at(COLUMN, columns)))
    store = Store("a", (at(ROW, 2), COLUMN), Binary("mul", Float(0.5), earlier))
    return states(For("i", Int(0), Int(5), (For("j", Int(1), Int(6), (store,)),)))


def pipeline(offset: int) -> Func:
    """A producer, and a consumer that reads what it wrote `offset` iterations after its own."""
    produce = For("i", Int(1), Int(6), (Store("a", (ROW, Int(0)), Load("b", (ROW, Int(1)))),))
    consume = For("j", Int(1), Int(6), (Store("b", (COLUMN, Int(0)), Load("a", (at(COLUMN, offset), Int(0)))),))
    return states(produce, consume)


def scatter(*facts: str) -> Func:
    """Two halves of a row, stored through an index function."""
    value = Load("b", (Int(0), K))
    halves = tuple(Store("a", (Index("p", (at(K, half),)), Int(0)), value) for half in (0, 4))
    declared = IndexFunction("p", Int(8), ("non_negative", *facts), Int(random_nests.SIDE))  # type: ignore[arg-type]
    return states(For("k", Int(0), Int(4), halves), functions=(declared,))


def rows_of_eight(condition: bool) -> Func:
    """A loop over n rows, in a place where n is known to be a multiple of 8."""
    n = Var("n")
    loop = For("i", Int(0), n, (Store("a", (Binary("mod", ROW, Int(4)), Int(0)), Float(1.0)),))
    multiple = Binary("eq", Binary("mod", n, Int(8)), Int(0))
    return states(If(multiple, (loop,)) if condition else loop, sizes=("n",))


def in_the_other_order() -> Func:
    """Bounds that are equal, but are not written alike."""
    n = Var("n")
    half = Binary("floordiv", Binary("mul", n, Int(2)), Int(2))
    first = For("i", Int(0), n, (Store("a", (ROW, Int(0)), Float(2.0)),))
    second = For("j", Int(0), half, (Store("b", (COLUMN, Int(0)), Load("a", (COLUMN, Int(0)))),))
    return states(first, second, sizes=("n",))


P = np.array([3, 1, 4, 5, 9, 2, 6, 8])
ACCEPTED: dict[str, tuple[Func, Step[Func]]] = {
    "interchange with a dependence forward in both loops": (diagonal(1, -1), Reorder(("j", "i"))),
    "fuse with a consumer of earlier iterations": (pipeline(-1), Fuse(("i", "j"))),
    "vectorize stores through an injective function": (scatter("injective"), Vectorize("k", 4)),
    "share out stores through an injective function": (scatter("injective"), Parallel("k")),
    "split what a condition makes divisible": (rows_of_eight(True), Split("i", 4, "none")),
    "fuse loops of equal bounds": (in_the_other_order(), Fuse(("i", "j"))),
}
REFUSED: dict[str, tuple[Func, Step[Func]]] = {
    "interchange": (diagonal(1, 1), Reorder(("j", "i"))),
    "fuse": (pipeline(1), Fuse(("i", "j"))),
    "vectorize": (scatter(), Vectorize("k", 4)),
    "parallel": (scatter(), Parallel("k")),
    "split": (rows_of_eight(False), Split("i", 4, "none")),
}


def outcome(f: Func) -> dict[str, object]:
    start = np.random.default_rng(0).normal(size=(2, random_nests.SIDE, random_nests.SIDE))
    given = {"a_start": start[0], "b_start": start[1]}
    return run(f, dict.fromkeys(f.sizes, 8), {"p": P}, given).buffers  # type: ignore[return-value]


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_beyond_the_quick_rules(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, step = ACCEPTED[name]
    g = step.apply(f)
    assert g != f
    if not isinstance(step, Parallel):  # what it leaves to every thread is for `Alone`
        verify(g)
    before, after = outcome(f), outcome(g)
    assert all(np.array_equal(before[b], after[b]) for b in random_nests.STATES)  # type: ignore[arg-type]
    only_quick_rules(monkeypatch)
    with pytest.raises(ScheduleError):
        step.apply(f)


def only_quick_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the first pair that the quick rules do not settle for a conflict, and prove nothing."""

    def first(f: Func, name: str, pairs: Iterator[legal.Pair], quickly: Callable[..., bool], order: object) -> object:
        return next((legal.Conflict(x, y, ()) for x, y in pairs if not quickly(x, y)), None)

    monkeypatch.setattr(legal, "_first_conflict", first)
    monkeypatch.setattr(legal, "_proven", lambda *question: False)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_dependence(name: str, golden: Golden) -> None:
    f, step = REFUSED[name]
    kept = repr(f)
    with pytest.raises(ScheduleError) as refusal:
        step.apply(f)
    assert repr(f) == kept
    golden(f"schedule/refused_exactly_{name}", str(refusal.value) + "\n")


def candidates(f: Func, rng: random.Random) -> Iterator[Step[Func]]:
    """Changes of order to try on a program: of each nest, and of the nests together."""
    nests = [s for s in f.body[1:] if isinstance(s, For)]
    if nests[0].var == "g":
        nests = [s for s in nests[0].body if isinstance(s, For)]
        yield Distribute("g")
    for nest in nests:
        loops = [n.var for n in walk(nest) if isinstance(n, For)]
        orders = [order for order in permutations(loops) if order != tuple(loops)]
        yield Reorder(rng.choice(orders))
        yield Distribute(loops[0], rng.randint(1, len(loops)))
    if len(nests) > 1:
        depth = sum(isinstance(n, For) for n in walk(nests[0]))
        yield Fuse(tuple(s.var for s in nests), rng.randint(1, depth))


def orders_of(f: Func, name: str, rng: random.Random) -> Iterator[Func]:
    """`f` with the iterations of a loop of constant bounds in other orders: backwards, shuffled, by statements."""
    loop = find_loop(f, name, None)
    assert isinstance(loop.lo, Int)
    assert isinstance(loop.hi, Int)
    values = list(range(loop.lo.value, loop.hi.value))

    names = Names(f)

    def iteration(value: int, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return fresh_copy(substitute(body, {name: Int(value)}), names)

    for order in (values[::-1], rng.sample(values, len(values))):
        yield replace_loop(f, name, tuple(s for value in order for s in iteration(value, loop.body)))
    if not any(isinstance(s, Let) for s in loop.body):
        by_statement = (s for each in loop.body for value in values for s in iteration(value, (each,)))
        yield replace_loop(f, name, tuple(by_statement))


def without_the_quick_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let isl and the prover answer everything."""
    monkeypatch.setattr(QuickRules, "aligned", lambda *question: False)
    monkeypatch.setattr(QuickRules, "loose", lambda known, x, y, chain: chain)
    monkeypatch.setattr(QuickRules, "separate", lambda *question: False)


def changes_the_meaning(f: Func, changed: Iterable[Func], rng: random.Random) -> bool:
    """Do the states differ in a bit, for some arrays that keep the declared facts?"""
    requests = [random_nests.arrays(rng) for _ in range(4)]
    wanted = [random_nests.results(f, index) for index in requests]
    return not all(
        random_nests.same(random_nests.results(g, index), want)
        for g in changed
        for index, want in zip(requests, wanted, strict=True)
    )


@pytest.mark.parametrize("quick", [True, False], ids=["all tiers", "exact tiers alone"])
def test_no_tier_accepts_what_changes_the_meaning(
    quick: bool, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random programs and random changes of order, run with arrays that keep the declared facts."""
    if not quick:
        without_the_quick_rules(monkeypatch)
    tried: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    count = request.config.getoption("--schedules")
    for seed in range(count):
        rng = random.Random(seed)
        f = random_nests.Writer(rng, rng.choice((0.0, 0.3))).program(rng.randint(1, 2))
        verify(f)
        for step in candidates(f, rng):
            tried[type(step).__name__] += 1
            if (g := applied(f, step)) is not None:
                accepted[type(step).__name__] += 1
                assert not changes_the_meaning(f, [g], rng), f"seed {seed}: {step}"
        loop = rng.choice([n for s in f.body[1:] for n in walk(s) if isinstance(n, For) and isinstance(n.lo, Int)])
        tried["any order"] += 1
        if why_not_any_order(f, (loop,)) is None:
            accepted["any order"] += 1
            assert not changes_the_meaning(f, orders_of(f, loop.var, rng), rng), f"seed {seed}: {loop.var}"
    if count >= 100:  # enough that each was legal somewhere, and was not somewhere else
        assert all(0 < accepted[name] < tried[name] for name in tried)


def applied(f: Func, step: Step[Func]) -> Func | None:
    """`f` after a step; None where it refuses."""
    try:
        g = step.apply(f)
    except ScheduleError:
        return None
    verify(g)
    return g


def test_no_step_changes_the_meaning_over_trees(request: pytest.FixtureRequest) -> None:
    """The same over groups of nodes and their children, from the facts and promises of the linear form."""
    tried = accepted = 0
    for seed in range(request.config.getoption("--schedules") // 4):
        rng = random.Random(seed)
        f, form = random_nests.over_trees(rng, rng.randint(1, 2))
        want = random_nests.results(f, form.arrays, form.sizes)
        for step in candidates(f, rng):
            tried += 1
            if (g := applied(f, step)) is None:
                continue
            accepted += 1
            assert random_nests.same(random_nests.results(g, form.arrays, form.sizes), want), f"seed {seed}: {step}"
    assert 0 < accepted < tried

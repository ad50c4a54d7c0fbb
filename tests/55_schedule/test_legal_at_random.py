"""No tier of legality accepts what changes the meaning: random programs, and changes of order tried on them.

pytest tests/55_schedule/test_legal_at_random.py --schedules 1000
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import permutations
from pathlib import Path

import pytest

from cortex.ilir.ir import For, Func, Let, Stmt
from cortex.ilir.verify import verify
from cortex.ir.node import walk
from cortex.ir.scalar import Int
from cortex.ir.simplify import substitute
from cortex.ir.step import Step, attempt
from cortex.poly.legal import why_not_any_order
from cortex.poly.quick import QuickRules
from cortex.schedule.distribute import Distribute
from cortex.schedule.fuse import Fuse
from cortex.schedule.locate import Names, find_loop, replace_loop
from cortex.schedule.rename import fresh_copy
from cortex.schedule.reorder import Reorder

sys.path.insert(0, str(Path(__file__).parent))
import random_nests


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
    g = attempt(f, step)
    if g is not None:
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

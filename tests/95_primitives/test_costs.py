"""What variants are ranked by: exact counts of lines, where data comes from, the published cost, the study of both."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from time import thread_time
from typing import Any

import pytest

from cortex.bench.ranking import authors, expected_best, spearman
from cortex.cost.machine import MIB, Machine
from cortex.cost.reuse import FULL, LINE, Loop, Use, crowded, exact_lines, movement, streaming_pays
from cortex.cost.working_sets import Hierarchy, placed, published_cost, working_sets
from cortex.ilir.ir import Func
from cortex.ir.scalar import Binary, Expr, Int, Var
from cortex.ir.simplify import add, mul
from cortex.options import Options
from cortex.poly import footprint
from cortex.poly.footprint import lines
from cortex.primitives.choose import Ranking
from cortex.primitives.convolution import Convolution, lower

EMPTY = Func("none", (), (), (), ())
P, Q, R, C, K = (Var(name) for name in "pqrck")


@pytest.mark.parametrize(
    ("index", "box"),
    [
        ((add(P, R), add(mul(Q, 6), C)), {"p": 3, "r": 3, "q": 5, "c": 12}),
        ((mul(P, 2), mul(Q, 40)), {"p": 3, "q": 4}),
        ((Binary("floordiv", K, Int(16)), Binary("mod", K, Int(16))), {"k": 40}),
        ((add(mul(P, 2), mul(R, 3)), C), {"p": 4, "r": 2, "c": 17}),
    ],
)
def test_lines_are_counted_exactly(index: tuple[Expr, ...], box: dict[str, int]) -> None:
    def value(e: Expr, at: dict[str, int]) -> int:
        match e:
            case Int(c):
                return c
            case Var(name):
                return at[name]
            case Binary(fn, x, y):
                a, b = value(x, at), value(y, at)
                return {"add": a + b, "mul": a * b, "floordiv": a // max(b, 1), "mod": a % max(b, 1)}[fn]
            case _:
                raise AssertionError(e)

    met = set()
    for values in product(*(range(n) for n in box.values())):
        at = dict(zip(box, values, strict=True))
        place = [value(e, at) for e in index]
        met.add((*place[:-1], place[-1] // 16))
    assert lines(EMPTY, index, box, 16) == len(met)


def test_data_comes_from_as_far_as_the_loop_that_touches_it_again() -> None:
    # for k in 4 panels: for p in 8 rows: a tile of 3 rows of x and one panel of w
    uses = (Use("x", (add(P, R), C)), Use("w", (K, R, C)))
    loops, tile = (Loop("k", 1, 4), Loop("p", 1, 8)), {"k": 1, "p": 1, "r": 3, "c": 16}
    extents = {"k": 4, "p": 8, "r": 3, "c": 16}
    moved = movement(loops, tile, extents, uses, exact_lines(EMPTY))
    by = {(m.name, m.distance): m.bytes for m in moved}
    one, row, everything = 6 * LINE, 13 * LINE, (10 + 12) * LINE
    assert by["w", one] == 4 * 7 * 3 * LINE  # again for every row but the first
    assert by["w", everything] == 4 * 3 * LINE
    assert by["x", one] == pytest.approx(4 * (8 * 3 - 10) * LINE)  # rows that neighbouring tiles share
    assert by["x", row] == pytest.approx(3 * 10 * LINE)  # all of x, for every panel but the first
    assert sum(by.values()) == 32 * 6 * LINE


def test_rows_a_page_apart_crowd_one_place() -> None:
    assert crowded(range(0, 14 * 4096, 4096), 32 * 1024) == 6
    assert crowded(range(0, 14 * 2048, 2048), 32 * 1024) == 0
    assert crowded(range(0, 8 * 8192, 8192), 32 * 1024) == FULL  # weights pass through, too
    assert crowded(range(0, 7 * 8192, 8192), 32 * 1024) == 0
    assert crowded(range(0, 14 * 4096, 4096), 48 * 1024) == 2


def test_the_published_cost() -> None:
    uses = (Use("x", (P, C)), Use("w", (K, C)))
    loops, tile = (Loop("k", 1, 4), Loop("p", 1, 8)), {"k": 1, "p": 1, "c": 16}
    sets = working_sets(loops, tile, {"k": 4, "p": 8, "c": 16}, uses, exact_lines(EMPTY))
    # w between neighbouring p and over all p; x between neighbouring k and over all k
    assert sets == [2 * LINE, 9 * LINE, 9 * LINE, 12 * LINE]
    caches = Hierarchy((4 * LINE, 20 * LINE, 100 * LINE), (1, 10, 100, 1000), (8, 4, 2, 1))
    assert placed(sets, caches) == (2 * LINE, 18 * LINE, 12 * LINE, 0)
    cost, other = published_cost((1, 2, 3, 4), caches)
    assert (cost, other) == (4321, 1 / 8 + 2 / 4 + 3 / 2 + 4)


@pytest.mark.parametrize("cost", ["movement", "working sets"])
def test_a_choice_asks_seldom_and_runs_nothing(cost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """isl takes a millisecond to count lines: 1,870 variants of six boxes each ask about the same 205 boxes."""
    asked = 0

    def counted(*question: Any) -> int:
        nonlocal asked
        asked += 1
        return lines(*question)

    monkeypatch.setattr(footprint, "lines", counted)
    f = lower(Convolution(1, (28, 28), 256, 512, (3, 3), padding=((1, 1), (1, 1))))
    start = thread_time()
    choices = Ranking(f, Machine.example(), cost).choices  # type: ignore[arg-type]
    assert thread_time() - start < 5  # less than one
    assert 0 < asked < 300
    assert len(choices) > 100
    assert choices == sorted(choices, key=lambda c: c.cost)


def test_results_beyond_the_caches_are_streamed() -> None:
    machine = Machine.example()  # reads 31 GB/s of 4 MiB, 17 GB/s of 64 MiB
    assert not streaming_pays(1 * MIB, machine)
    assert not streaming_pays(8 * MIB, machine)
    assert streaming_pays(64 * MIB, machine)


def test_ties_are_broken_by_the_mean() -> None:
    assert expected_best([0, 0, 1], [1.0, 3.0, 9.0], 1) == 2.0
    assert expected_best([0, 0, 0], [1.0, 2.0, 6.0], 2) == pytest.approx((2 + 6 + 6) / 3)
    assert expected_best([0, 1, 2, 3], [5.0, 1.0, 2.0, 9.0], 3) == 5.0
    assert expected_best([1, 0], [4.0, 2.0], 3) == 4.0


def test_correlation_of_ranks() -> None:
    assert spearman([1, 2, 3], [30.0, 20.0, 10.0]) == pytest.approx(1.0)
    assert spearman([1, 2, 3], [10.0, 20.0, 30.0]) == pytest.approx(-1.0)
    assert spearman([7, 7, 7], [10.0, 20.0, 30.0]) == 0.0


def test_the_default_ranks_the_authors_variants_better_than_the_published_cost() -> None:
    folder: Path = Options.from_environment().data
    if not (folder / "polyscientist").is_dir():
        pytest.skip("the authors' measurements are not here")
    found = {(row.threads, row.cost): row for row in authors(folder)}
    assert sum(found[threads, "random"].variants for threads in (1, 28)) == 4084
    assert found[1, "movement"].top >= 0.985
    assert found[1, "working sets"].top == pytest.approx(0.973, abs=0.0005)
    for threads in (1, 28):
        top = [found[threads, cost].top for cost in ("random", "working sets", "movement")]
        assert top == sorted(top)

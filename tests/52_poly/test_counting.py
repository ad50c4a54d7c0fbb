"""Counts of sets and of programs equal what going through them one by one gives."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import islpy as isl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex import zoo
from cortex.errors import InternalError
from cortex.ilir.interp import run
from cortex.ilir.ir import Func, Scope, Store
from cortex.ir.scalar import Int, Var
from cortex.poly.counting import count, independent
from cortex.poly.domains import Vocabulary, runs
from cortex.poly.points import points

sys.path.insert(0, str(Path(__file__).parent))
from poly_programs import loop, matmul, program, stencil, subject, triangle
from poly_work import fix, work

BOX = 6
NAMES = ("a", "b", "c")
LITTLE = st.integers(-3, 3)


@st.composite
def conditions(draw: st.DrawFn) -> str:
    """A condition over three variables that Python and isl read alike."""
    x, y, z, w = (draw(LITTLE) for _ in range(4))
    line = f"{x}*a + {y}*b + {z}*c + {w}"
    one = draw(st.sampled_from(NAMES))
    return draw(st.sampled_from([
        f"{line} >= 0",
        f"{one} <= {draw(st.integers(0, BOX))}",
        f"({line}) MOD {draw(st.integers(2, 4))} EQ 1",
        f"({line} >= 0 or {one} >= {draw(st.integers(0, BOX))})",
    ]))  # fmt: skip


@given(st.lists(conditions(), max_size=4))
@settings(max_examples=60)
def test_count_of_random_sets(chosen: list[str]) -> None:
    box = [f"0 <= {v} < {BOX}" for v in NAMES]
    whole = " and ".join(f"({c})" for c in (*box, *chosen))
    s = isl.Set(f"{{ [a, b, c] : {whole.replace('MOD', 'mod').replace('EQ', '=')} }}")
    condition = compile(whole.replace("MOD", "%").replace("EQ", "=="), "<condition>", "eval")
    expected = sum(eval(condition, dict(zip(NAMES, p, strict=True))) for p in product(range(BOX), repeat=3))
    assert count(s) == expected


def test_large_sets_are_not_enumerated() -> None:
    s = isl.Set("{ [i, j, k] : 0 <= i < 1000000000 and 0 <= j < 1000000 and 0 <= k <= 3 }")
    (piece,) = s.get_basic_sets()
    assert independent(piece) == [[0], [1], [2]]
    assert count(isl.Set("{ [i, j, k, l] : 0 <= i < 5000 and 0 <= j < 5000 and 0 <= k <= l < 20 }")) == 5000**2 * 210


def test_what_cannot_be_counted() -> None:
    with pytest.raises(InternalError, match="parameters"):
        count(isl.Set("[n] -> { [i] : 0 <= i < n }"))
    with pytest.raises(InternalError, match="infinitely"):
        count(isl.Set("{ [i] : 0 <= i }"))


def stores(f: Func, speak: Vocabulary | None = None) -> list[tuple[isl.Set, bool]]:
    """The runs of each store."""
    return [runs(speak or Vocabulary(f), "S", p, p.loops) for p in points(f) if isinstance(p.stmt, Store)]


def test_domains() -> None:
    found = stores(triangle())
    assert [exact for _, exact in found] == [True, True]
    assert [count(domain) for domain, _ in found] == [16, 12]
    assert found[0][0] == isl.Set("{ S[a, b] : 0 <= a < 7 and a <= b < 7 and b mod 2 = 0 }")


def test_domain_with_a_size() -> None:
    f = Func("f", ("n",), (), matmul().buffers, (loop("i", 0, Var("n"), *stencil().body),))
    speak = Vocabulary(f)
    ((domain, _),) = stores(f, speak)
    assert count(fix(speak, domain, lambda e: 4 if e == Var("n") else 0)) == 4 * 3 * 5


@pytest.mark.parametrize("make", [matmul, stencil, triangle, program])
def test_work_of_affine_programs(make: Callable[[], Func]) -> None:
    f = make()
    assert work(f, {}, {}) == run(f, {}, {}, {}).counts


@pytest.mark.parametrize("name", zoo.ENTRIES)
@pytest.mark.parametrize("stage", ["lowered", "passes"])
def test_work_of_the_zoo(name: str, stage: str) -> None:
    it = subject(name)
    f, form = it.funcs[stage], it.linear_form()
    params = [b for b in f.buffers if b.scope is Scope.PARAM]
    given = {b.name: np.zeros([e.value for e in b.shape if isinstance(e, Int)]) for b in params}
    given |= {f"field_{name}": values for name, values in form.fields.items()}
    assert work(f, form.sizes, form.arrays) == run(f, form.sizes, form.arrays, given, check_bounds=False).counts

"""Steps on the recursion change what is computed when, and how often; but for one, not a bit of the result."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from sums_and_products import SIZE, WORDS, cell, cell_forest, weights

import cortex
from cortex.cost.choose import ALWAYS
from cortex.errors import ScheduleError
from cortex.ilir import interp
from cortex.ilir.show import show
from cortex.ilir.verify import verify
from cortex.ir.step import Step
from cortex.lower.lower import lower
from cortex.ra import interp as ra_interp
from cortex.ra import ir as ra
from cortex.recursion.batch import Batch
from cortex.recursion.dedup import Dedup
from cortex.recursion.specialize import Specialize
from cortex.recursion.tabulate import Tabulate
from cortex.recursion.tabulate_leaf_products import TabulateLeafProducts
from cortex.runtime.executable import Executable

FORESTS = [cell_forest(seed, count, dag) for seed, (count, dag) in enumerate([(1, False), (40, False), (60, True)])]
LEAF = "leaf"

STEPS: list[tuple[Step[ra.Model], ...]] = [
    (Batch("depth"),),
    (Batch("agenda"),),
    (Batch("none"),),
    (Specialize(()),),
    (Specialize((LEAF,)),),
    (Specialize(()), Batch("none")),
    (Tabulate(),),
    (Tabulate(LEAF), Specialize(()), Batch("agenda")),
    (Dedup(),),
    (Dedup(), Batch("depth"), Tabulate()),
]

# Sums of products for products of sums: other bits than without, the same ones in all of these.
LEAF_PRODUCTS: list[tuple[Step[ra.Model], ...]] = [
    (TabulateLeafProducts(),),
    (Tabulate(), TabulateLeafProducts()),
    (TabulateLeafProducts(), Batch("depth")),
    (Tabulate(LEAF), TabulateLeafProducts(), Specialize(()), Batch("agenda")),
    (Dedup(), TabulateLeafProducts()),
]


@cache
def compiled(*steps: Step[ra.Model]) -> Executable:
    """The model compiled with steps beyond the usual ones."""
    return cortex.compile(cell, weights(), examples=FORESTS[1].root_nodes(), recursion=(*ALWAYS, *steps))


@pytest.mark.parametrize("steps", STEPS, ids=repr)
def test_not_a_bit_changes(steps: tuple[Step[ra.Model], ...]) -> None:
    fast, usual = compiled(*steps), compiled()
    for forest in FORESTS:
        for structures in (forest, list(forest.root_nodes())):
            want, got = usual(structures), fast(structures)
            for name in ("h", "c"):
                assert got[name].tobytes() == want[name].tobytes()
                assert got.nodes[name].tobytes() == want.nodes[name].tobytes()


@pytest.mark.parametrize("steps", LEAF_PRODUCTS, ids=repr)
def test_products_of_leaves_are_the_same_bits_everywhere(steps: tuple[Step[ra.Model], ...]) -> None:
    fast, first, usual = compiled(*steps), compiled(*LEAF_PRODUCTS[0]), compiled()
    assert "sum_above_leaves" in " ".join(kind.name for kind in fast.compiled.model.kinds)
    for forest in FORESTS:
        together = fast(forest)
        for name in ("h", "c"):
            assert together.nodes[name].tobytes() == first(forest).nodes[name].tobytes()
            np.testing.assert_allclose(together.nodes[name], usual(forest).nodes[name], rtol=1e-5, atol=1e-6)
            for number, root in enumerate(forest.root_nodes()):
                assert fast(root)[name].tobytes() == together[name][number].tobytes()
                assert fast(root, threads=2)[name].tobytes() == together[name][number].tobytes()


@pytest.mark.parametrize("steps", [*STEPS, *LEAF_PRODUCTS], ids=repr)
def test_interpreters_agree(steps: tuple[Step[ra.Model], ...]) -> None:
    fast = compiled(*steps)
    forest = FORESTS[1]
    form, m = fast.linearize(forest), fast.compiled.model
    want = ra_interp.run(m, weights(), form)  # fills tables itself
    given = ra_interp.tables(m, ra_interp.derived(m, weights()))
    for f in (lower(m, 4), fast.compiled.func):
        verify(f)
        result = interp.run(f, form.sizes, form.arrays, given)
        for name, value in want.items():
            np.testing.assert_allclose(result.buffers[f"state_{name}"], value, rtol=1e-4, atol=1e-4)
    for name, value in fast.interpret(forest).items():
        np.testing.assert_allclose(fast(forest).nodes[name], value, rtol=1e-4, atol=1e-4)


def test_shared_kinds_are_told_apart_at_every_node(golden: Callable[[str, str], None]) -> None:
    fast = compiled(Specialize((LEAF,)))
    golden("lower/shared_kinds", show(lower(fast.compiled.model, 16)))
    assert len(set(fast.linearize(FORESTS[1]).arrays["group_kind"].tolist())) == 2


def test_tables_are_reported_and_bounded() -> None:
    fast = compiled(Tabulate())
    # The states of leaves, and the input product of sums.
    assert set(fast.tables) == {"leaf_h", "leaf_c", "op_sum_t4"}
    assert set(fast.tables.values()) == {WORDS * SIZE * 4}
    assert compiled().tables == {}
    with pytest.raises(ScheduleError, match=r"the tables would take 2052 bytes .* limit is 1000"):
        compiled(Tabulate(limit_bytes=1000))


def test_tables_outlive_new_kinds() -> None:
    leaf = SimpleNamespace(children=[], word=3, op="")
    fast = cortex.compile(cell, weights(), recursion=(*ALWAYS, Tabulate()))
    before = fast(leaf).h
    top = SimpleNamespace(children=[leaf, leaf], word=1, op="sum")
    assert fast(top).nodes.h[1].tobytes() == before.tobytes()


def test_nodes_computed_and_nodes_given() -> None:
    fast = compiled(Dedup())
    trees = [
        SimpleNamespace(op="sum", word=1, children=[SimpleNamespace(children=[], word=w, op="") for w in (1, 2, 1)])
        for _ in range(5)
    ]
    run = fast(trees)._run
    assert (run.num_nodes, run.num_user_nodes) == (3, 20)
    assert run.nodes(0).shape == (20, SIZE)
    assert len(run.linear_form()["arrays"]["order"]) == 20

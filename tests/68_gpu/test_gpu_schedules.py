"""The default schedule for GPUs: it means the same, items do not race, and local memory is used where it fits."""

from __future__ import annotations

import os
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from item_races import item_races
from scheduled_for_gpu import VOCAB, Scheduled, attentive, attentive_weights, of_zoo

from cortex import zoo
from cortex.ilir.ir import Barrier, For, Func, LoopKind, Scope
from cortex.ir.node import walk
from cortex.ir.step import apply
from cortex.lower.lower import lower
from cortex.poly.accesses import Access
from cortex.poly.dependences import Dependences
from cortex.poly.order import Order
from cortex.recursion.unroll import UnrollRecursion
from cortex.schedule.gpu_default import Grid, gpu_schedule, width_of
from cortex.schedule.item_barriers import PlaceItemBarriers
from cortex.schedule.item_sums import ItemSums
from cortex.schedule.items import AloneItem, Items
from cortex.schedule.locate import Block
from cortex.schedule.resident import Resident

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
from random_models import compilable, random_model
from random_structures import Node, random_batch

GRID = Grid(2, (2, 2), 1 << 16)


def with_attention(grid: Grid) -> Scheduled:
    trees = zoo.load("tree_lstm").structures(random.Random(1), 1, VOCAB)
    return Scheduled(attentive, attentive_weights(), trees, grid)


@pytest.mark.parametrize("name", ["tree_lstm", "mv_rnn", "dag_rnn"])
def test_it_means_the_same_without_races(name: str) -> None:
    s = of_zoo(name, GRID)
    assert s.worst_error() < 1e-6  # expand_math's own
    assert not list(item_races(s.func, s.form.sizes, s.form.arrays, 2, (2, 2)))


@pytest.mark.parametrize("groups", [1, 3])
def test_sums_by_items(groups: int) -> None:
    s = with_attention(Grid(groups, (4, 2), 1 << 16))
    assert sum(isinstance(step, ItemSums) for step in s.steps) == 6
    assert s.worst_error() < 1e-6
    assert not list(item_races(s.func, s.form.sizes, s.form.arrays, groups, (4, 2)))


@pytest.mark.parametrize("seed", range(40) if os.environ.get("CORTEX_FUZZ") == "long" else (1, 2))
def test_random_models_do_not_race(seed: int) -> None:
    m = random_model(seed)
    batch = sorted(random_batch(seed, m.family, m.vector), key=size)[:1]
    s = Scheduled(compilable(m), None if m.closure else m.arrays(0.25), batch, Grid(3, (2, 2), 1 << 12))
    assert not list(item_races(s.func, s.form.sizes, s.form.arrays, 3, (2, 2)))


def size(node: Node) -> int:
    """The number of nodes, those with several parents as often as they have parents."""
    below = [*node.children, *(c for c in (node.left, node.right, node.prev) if c is not None)]
    return 1 + sum(map(size, below))


def without(f: Func, among: str) -> Func:
    """`f` without one kind of barriers."""

    def block(body: Block) -> Block:
        kept = (s for s in body if not (isinstance(s, Barrier) and s.among == among))
        return tuple(_with_blocks(s) for s in kept)

    def _with_blocks(s: object) -> object:
        names = {name: block(getattr(s, name)) for name in ("body", "then", "orelse") if hasattr(s, name)}
        return replace(s, **names) if names else s  # type: ignore[type-var]

    return replace(f, body=block(f.body))


@pytest.mark.parametrize("among", ["team", "items"])
def test_barriers_are_needed(among: str) -> None:
    s = of_zoo("tree_lstm", GRID)
    assert list(item_races(without(s.func, among), s.form.sizes, s.form.arrays, 2, (2, 2)))


def test_weights_stay_in_local_memory_where_they_fit() -> None:
    whole = of_zoo("tree_lstm", Grid(2, (2, 2), 1 << 16))
    assert sum(isinstance(step, Resident) for step in whole.steps) == 2
    # U of three gates takes 12*12*3 words, half of them in each of two work-groups; Uf a third of that.
    for room, kept in ((864 + 288, 2), (864 + 287, 1), (863, 1), (287, 0)):
        steps = gpu_schedule(whole.lowered, Grid(2, (2, 2), room))
        assert sum(isinstance(step, Resident) for step in steps) == kept


@pytest.mark.parametrize(
    ("columns", "groups", "width"),
    [
        (256, 1, 32),
        (256, 8, 32),
        (256, 80, None),
        (256, 64, 4),
        (12, 2, 6),
        (31, 2, 16),
        (5, 1, 5),
        (3, 1, 3),
        (3, 2, None),
    ],
)
def test_blocks_are_for_all_work_groups(columns: int, groups: int, width: int | None) -> None:
    assert width_of(columns, groups) == width


def test_no_prover_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes write states of the nodes below them, and no rule says that two of them never write the same ones."""
    whole = of_zoo("tree_rnn", GRID)
    f = lower(apply(whole.model, (UnrollRecursion(2),)), 1)
    monkeypatch.setattr(Dependences, "conflict", asked)
    steps = gpu_schedule(f, GRID)
    shared = apply(f, steps[: steps.index(AloneItem())])
    to_items = {n.var for n in walk(shared) if isinstance(n, For) and n.kind is LoopKind.ITEMS_Y}
    assert "inner_with_right_inner_right_t1_n" in to_items
    assert "inner_with_right_inner_state_h_right_n" not in to_items
    with pytest.raises(AssertionError, match="a question for a prover"):
        Items("inner_with_right_inner_state_h_right_n", "y").apply(shared)


def asked(self: Dependences, x: Access, y: Access, order: Order) -> NoReturn:
    raise AssertionError(f"a question for a prover: do {x} and {y} meet?")


def test_nodes_go_to_work_groups_where_columns_are_too_few() -> None:
    f = of_zoo("tree_fc", Grid(2, (2, 2)), hidden=6).lowered
    loops = [n for n in walk(apply(f, gpu_schedule(f, Grid(4, (2, 2))))) if isinstance(n, For)]
    parallel = [loop.var for loop in loops if loop.kind is LoopKind.PARALLEL]
    assert parallel and all(name.endswith(("_n", "_i")) for name in parallel)


def test_item_barriers_are_placed_anew() -> None:
    s = with_attention(GRID)
    again = PlaceItemBarriers().apply(s.func)
    assert again == s.func
    assert any(b.scope is Scope.LOCAL for b in s.func.buffers)

"""The default schedule for GPUs: it means the same, items do not race, and local memory is used where it fits."""

from __future__ import annotations

import random

import pytest
from item_races import item_races
from scheduled_for_gpu import VOCAB, Scheduled, attentive, attentive_weights, of_zoo

from cortex import zoo
from cortex.ilir.ir import Barrier, For, Func, LoopKind, Scope
from cortex.ir.node import walk
from cortex.schedule.gpu_default import Grid, gpu_schedule, width_of
from cortex.schedule.item_barriers import PlaceItemBarriers
from cortex.schedule.item_sums import ItemSums
from cortex.schedule.resident import Resident

GRID = Grid(2, (2, 2), 1 << 16)


def with_attention(grid: Grid) -> Scheduled:
    trees = zoo.load("tree_lstm").structures(random.Random(1), 1, VOCAB)
    return Scheduled(attentive, attentive_weights(), trees, grid)


@pytest.mark.parametrize("name", ["tree_lstm", "mv_rnn", "dag_rnn", "tree_rnn", "gru"])
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


def without(f: Func, among: str) -> Func:
    """`f` without one kind of barriers."""
    from dataclasses import replace

    from cortex.schedule.locate import Block

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
        s = of_zoo("tree_lstm", Grid(2, (2, 2), room))
        assert sum(isinstance(step, Resident) for step in s.steps) == kept
        assert s.worst_error() < 1e-6


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


def test_nodes_go_to_work_groups_where_columns_are_too_few() -> None:
    f = of_zoo("tree_fc", Grid(2, (2, 2)), hidden=6).lowered
    kinds = {
        n.var: n.kind
        for step in [gpu_schedule(f, Grid(4, (2, 2)))]
        for n in walk(_applied(f, step))
        if isinstance(n, For)
    }
    parallel = [name for name, kind in kinds.items() if kind is LoopKind.PARALLEL]
    assert parallel and all(name.endswith(("_n", "_i")) for name in parallel)


def _applied(f: Func, steps: tuple[object, ...]) -> Func:
    from cortex.ir.step import apply

    return apply(f, steps)  # type: ignore[arg-type]


def test_item_barriers_are_placed_anew() -> None:
    s = with_attention(GRID)
    again = PlaceItemBarriers().apply(s.func)
    assert again == s.func
    assert any(b.scope is Scope.LOCAL for b in s.func.buffers)

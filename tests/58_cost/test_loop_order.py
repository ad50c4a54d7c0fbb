"""Which loop is outside in a model's products: what counts of lines say, and that both orders give the same bits."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import cortex
from cortex import zoo
from cortex.cost.loop_order import nest_ns, rows_go_outside
from cortex.cost.machine import Machine
from cortex.cost.tiles import Tiles
from cortex.schedule.default import Choices
from cortex.schedule.registers import AS_REGISTERS_ALLOW, Registers, SumsNest, TileChoice
from cortex.schedule.tile import Tile

MACHINE = Machine.example()
REGISTERS = Registers(32, 16)
SHORT_SUMS = SumsNest("n", 1, 1, 1, 256, 16, None)
"""16 kB of weights, which stay near whatever the order, and rows of 64 bytes."""


def goes_outside(nest: SumsNest, rows: int) -> bool:
    tile = REGISTERS.tile(nest.sums, nest.weights, nest.columns)
    return rows_go_outside(MACHINE, nest, tile, np.full(3, rows))


def test_rows_go_outside_where_there_are_many_and_weights_are_few() -> None:
    assert goes_outside(SHORT_SUMS, 20_000)  # more than a megabyte, read again for every one of 4 blocks of columns
    assert not goes_outside(SHORT_SUMS, 100)  # all near


@pytest.mark.parametrize("sums", [1, 3, 4, 5])
@pytest.mark.parametrize("hidden", [64, 128, 256, 512])
def test_columns_stay_outside_for_cells_on_groups_of_usual_size(sums: int, hidden: int) -> None:
    for rows in (1, 7, 12, 50, 200):
        assert not goes_outside(SumsNest("n", sums, sums, 1, hidden, hidden, None), rows)


def test_weights_that_are_far_are_read_once() -> None:
    wide = SumsNest("n", 1, 1, 1, 1024, 1024, None)  # 4 MB of weights, 400 kB of rows
    assert nest_ns(MACHINE, wide, (6, 4), 100, rows_first=True) > nest_ns(MACHINE, wide, (6, 4), 100, rows_first=False)


def test_one_tile_of_rows_or_one_block_of_columns_has_no_order() -> None:
    assert not goes_outside(SHORT_SUMS, 6)
    assert not goes_outside(SumsNest("n", 1, 1, 1, 64, 16, None), 20_000)


def test_the_order_is_part_of_the_choice_for_one_thread() -> None:
    rows, far = {"n": np.full(3, 20_000)}, {"n": 2.0**14}
    assert Tiles(MACHINE, rows, far)(SHORT_SUMS) == TileChoice(rows_first=True)
    assert Tiles(MACHINE, rows, far, threads=2)(SHORT_SUMS) == AS_REGISTERS_ALLOW


@pytest.mark.parametrize(("name", "state"), [("tree_lstm", "h"), ("mv_rnn", "M")])
def test_both_orders_give_the_same_bits(name: str, state: str) -> None:
    entry = zoo.load(name)
    weights, trees = entry.weights(32, 30), entry.structures(Random(0), 5, 30)

    def compiled(choice: TileChoice) -> Any:
        return cortex.compile(entry.model, weights, examples=trees, choices=Choices(tile=choice))

    usual, rows_first = compiled(TileChoice(2, 3)), compiled(TileChoice(2, 3, rows_first=True))
    orders = [{s.rows_first for s in each.schedule.steps if isinstance(s, Tile)} for each in (usual, rows_first)]
    assert orders[0] == {False} and True in orders[1]
    np.testing.assert_array_equal(getattr(rows_first(trees).nodes, state), getattr(usual(trees).nodes, state))

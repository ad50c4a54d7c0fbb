"""The steps for GPUs: legal, refused, unchanged after refusal."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cortex.errors import InternalError, ScheduleError
from cortex.ilir.ir import Accumulate, Barrier, Buffer, For, Func, LoopKind, Scope, Store
from cortex.ilir.verify import verify
from cortex.ir.scalar import Float, Int, Load, Var
from cortex.ir.step import Step, apply
from cortex.schedule.alternate import Alternate
from cortex.schedule.barrier import PlaceBarriers
from cortex.schedule.item_barriers import PlaceItemBarriers
from cortex.schedule.item_sums import ItemSums
from cortex.schedule.items import AloneItem, Items
from cortex.schedule.pack import Pack
from cortex.schedule.parallel import Alone, Parallel
from cortex.schedule.reorder import Reorder
from cortex.schedule.resident import Resident
from cortex.schedule.schedule import Schedule
from cortex.schedule.split import Split

sys.path.insert(0, str(Path(__file__).parents[1] / "55_schedule"))
import programs
from checks import Golden, check_legal, check_prints, check_refused

Steps = tuple[Step[Func], ...]
LAST: Steps = (Alone(), AloneItem(), PlaceBarriers(), PlaceItemBarriers())
BLOCKS: Steps = (Pack("p_j", 5), Split("p_j", 5), Reorder(("p_j_o", "p_n", "p_j_i")), Parallel("p_j_o"))
BY_ITEMS: Steps = (*BLOCKS, Items("p_j_i", "x"), Items("p_n", "y"))

LEGAL: dict[str, tuple[Steps, Step[Func]]] = {
    "items": ((*BLOCKS, Items("p_n", "y")), Items("p_j_i", "x")),
    "items_of_a_turned_loop": ((*BLOCKS, Alternate("p_j_o", "g"), Alternate("p_n", "g")), Items("p_n", "y")),
    "item_sums": ((Parallel("p_n"),), ItemSums("p_k", 4)),
    "resident": (BY_ITEMS, Resident("p_j_packed")),
    "alone_item": (BLOCKS, AloneItem()),
    "place_item_barriers": ((Parallel("p_n"), ItemSums("p_k", 2), *LAST[:3]), PlaceItemBarriers()),
}
REFUSED: dict[str, tuple[Steps, Step[Func]]] = {
    "items_of_nobody": ((), Items("p_j", "x")),
    "items_axis": (BLOCKS, Items("p_j_i", "z")),  # type: ignore[arg-type]
    "items_twice": (BY_ITEMS[:-1], Items("p_n", "x")),
    "items_of_one_element": (BLOCKS, Items("p_k", "x")),
    "item_sums_of_columns": ((Parallel("p_n"),), ItemSums("p_j", 4)),
    "item_sums_of_three": ((Parallel("p_n"),), ItemSums("p_k", 3)),
    "item_sums_of_nobody": ((), ItemSums("p_k", 4)),
    "resident_scratch": (BY_ITEMS, Resident("t")),
    "resident_shared": ((Pack("p_j", 5), Parallel("p_n")), Resident("p_j_packed")),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str, golden: Golden) -> None:
    before, step = LEGAL[name]
    after = check_legal(golden, f"gpu/{name}", programs.cell(), before, step)
    verify(apply(after, LAST))


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, golden: Golden) -> None:
    before, step = REFUSED[name]
    check_refused(golden, f"gpu/refused_{name}", apply(programs.cell(), before), step)


def test_steps_print_as_python() -> None:
    check_prints(each for before, step in (*LEGAL.values(), *REFUSED.values()) for each in (*before, step))


def test_a_schedule_with_items_ends_in_their_barriers() -> None:
    assert Schedule((*BY_ITEMS, *LAST)).on_loops[-1] == PlaceItemBarriers()
    for wrong in (BY_ITEMS, (*BY_ITEMS, *LAST[:3]), (*BY_ITEMS, Alone(), AloneItem(), PlaceItemBarriers())):
        with pytest.raises(ScheduleError, match="wait for each other"):
            Schedule(wrong)


def _program(*body: For | Barrier) -> Func:
    buffers = (
        Buffer("h", "f32", (Int(4), Int(4)), Scope.STATE),
        Buffer("part", "f32", (Int(4),), Scope.LOCAL),
        Buffer("kept", "f32", (Int(4), Int(4)), Scope.RESIDENT),
        Buffer("r", "f32", (Int(1),), Scope.REGISTER),
    )
    return Func("f", (), (), buffers, body)


def _loop(var: str, kind: LoopKind, *body: object) -> For:
    return For(var, Int(0), Int(4), body, kind)  # type: ignore[arg-type]


P, X, Y = LoopKind.PARALLEL, LoopKind.ITEMS_X, LoopKind.ITEMS_Y
WRITE = Store("h", (Var("p"), Var("x")), Float(1.0))


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (_program(_loop("x", X)), "loop of items outside parallel loops"),
        (_program(_loop("p", P, _loop("x", X, _loop("z", X)))), "items x loop 'z' is inside items x loop 'x'"),
        (_program(_loop("p", P, _loop("x", X, WRITE))), "several items write state buffer 'h'"),
        (_program(_loop("p", P, _loop("x", X, _loop("y", Y, Barrier("items"))))), "item barrier inside loop"),
        (_program(_loop("p", P, Barrier())), "barrier inside parallel loop 'p'"),
        (
            _program(_loop("p", P, _loop("x", X, _loop("y", Y, Store("kept", (Var("x"), Var("y")), Float(1.0)))))),
            "resident buffer 'kept' at another one's slice",
        ),
        (
            _program(For("s", Int(0), Int(1), (Store("r", (Int(0),), Load("part", (Int(0),))),))),
            "local buffer 'part' outside parallel loops",
        ),
    ],
)
def test_verify_refuses(program: Func, why: str) -> None:
    with pytest.raises(InternalError, match=why):
        verify(program)


def test_verify_accepts() -> None:
    inner = _loop("y", Y, WRITE, Accumulate("part", (Var("x"),), "add", Float(1.0)))
    verify(_program(_loop("p", P, _loop("x", X, inner), Barrier("items")), Barrier()))

"""Data movement of a small product, worked out by hand."""

from __future__ import annotations

from cortex.cost.count import Counter
from cortex.cost.movement import LINE, Movement
from cortex.ilir.ir import Accumulate, Buffer, For, Func, LoopKind, Scope, Store
from cortex.ir.scalar import Binary, Float, Int, Load, Var
from cortex.lower.linear_form import LinearForm

ROWS, BLOCKS, DEPTH, LANES = 6, 4, 32, 16


def product() -> Func:
    """for j: for t: for k: acc[v] += w[j, k, v] * x[t, k], then y[t, j, v] = acc[v]; one tile is one row."""
    j, t, k, v, m, o = (Var(name) for name in ("j", "t", "k", "v", "m", "o"))
    value = Binary("mul", Load("w", (j, k, v)), Load("x", (t, k)))
    lanes = For("v", Int(0), Int(LANES), (Accumulate("acc", (v,), "add", value),), LoopKind.VECTORIZED)
    start = For("m", Int(0), Int(LANES), (Store("acc", (m,), Float(0.0)),), LoopKind.VECTORIZED)
    keep = For("o", Int(0), Int(LANES), (Store("y", (t, j, o), Load("acc", (o,))),), LoopKind.VECTORIZED)
    tile = (start, For("k", Int(0), Int(DEPTH), (lanes,)), keep)
    body = (For("j", Int(0), Int(BLOCKS), (For("t", Int(0), Var("rows"), tile),)),)
    buffers = (
        Buffer("w", "f32", (Int(BLOCKS), Int(DEPTH), Int(LANES)), Scope.PARAM),
        Buffer("x", "f32", (Var("rows"), Int(DEPTH)), Scope.SCRATCH),
        Buffer("y", "f32", (Var("rows"), Int(BLOCKS), Int(LANES)), Scope.STATE),
        Buffer("acc", "f32", (Int(LANES),), Scope.REGISTER),
    )
    return Func("product", ("rows",), (), buffers, body)


def moved(rows: int) -> dict[str, list[tuple[float, float]]]:
    """(bytes, distance) of all touches of each buffer."""
    counter = Counter(product())
    runs = counter(LinearForm({"rows": rows, "num_groups": 0}, {}, {}))
    traffic = Movement(counter.sites)(runs)
    found: dict[str, list[tuple[float, float]]] = {}
    for a, size, distance in zip(traffic.access, traffic.bytes.sum(axis=1), traffic.distance.max(axis=1), strict=True):
        found.setdefault(a.buffer.name, []).append((float(size), float(distance)))
    return found


def test_traffic_of_a_product() -> None:
    panel, row, line = DEPTH * LANES * 4, DEPTH * 4, LANES * 4
    whole = BLOCKS * panel + ROWS * row + ROWS * BLOCKS * line
    touches = moved(ROWS)
    # Weights: all of them first, since the last call; then each panel again for every row but the first.
    assert touches["w"] == [(BLOCKS * panel, whole), (BLOCKS * (ROWS - 1) * panel, panel + row + line)]
    # Rows: all of them first; then all of them again for every other panel.
    assert touches["x"] == [(ROWS * row, whole), ((BLOCKS - 1) * ROWS * row, panel + ROWS * (row + line))]
    assert touches["y"] == [(ROWS * BLOCKS * line, whole)]
    assert "acc" not in touches


def test_one_row_rereads_no_weights() -> None:
    assert moved(1)["w"][1][0] == 0


def test_a_touch_moves_a_line() -> None:
    assert LINE == 64
    assert all(size % LINE == 0 for touches in moved(3).values() for size, _ in touches)

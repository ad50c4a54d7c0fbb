"""Every narrow number is widened to the f32 that is equal to it, on every target."""

from __future__ import annotations

import numpy as np
import pytest

from cortex.codegen.llvm.run import run
from cortex.codegen.target import Target
from cortex.ilir.ir import Buffer, For, Func, LoopKind, PackedGate, Packing, Scope, Storage, Store
from cortex.ilir.verify import verify
from cortex.ir.scalar import Expr, Int, Load, Var
from cortex.ir.simplify import floordiv, mod


def copy(dtype: Storage, depth: int, lanes: int, kind: LoopKind) -> Func:
    """out[k, j] = packed[0, k, 0, j] for all steps k and `lanes` columns j; in pairs of steps for bf16."""
    steps = 2 if dtype == "bf16" else 1
    p = Packing("packed", (), lanes, depth, lanes, (PackedGate("W", (Var("k"), Var("j"))),), steps=steps)
    k, j = Var("row"), Var("lane")
    place: tuple[Expr, ...] = (Int(0), k, Int(0), j)
    if steps == 2:
        place = (Int(0), floordiv(k, 2), Int(0), j, mod(k, 2))
    lanewise = For("lane", Int(0), Int(lanes), (Store("out", (k, j), Load("packed", place)),), kind)
    body = For("row", Int(0), Int(depth), (lanewise,))
    buffers = (
        Buffer("W", "f32", (Int(depth), Int(lanes)), Scope.PARAM),
        Buffer("packed", dtype, tuple(map(Int, p.shape)), Scope.PACKED),
        Buffer("out", "f32", (Int(depth), Int(lanes)), Scope.STATE),
    )
    return Func("copy", (), (), buffers, (body,), (p,))


@pytest.mark.parametrize("kind", [LoopKind.VECTORIZED, LoopKind.SERIAL])
@pytest.mark.parametrize("dtype", ["bf16", "f16", "i8"])
def test_all_numbers(dtype: Storage, kind: LoopKind, target: Target) -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    match dtype:
        case "bf16":
            values = (bits.astype(np.uint32) << 16).view(np.float32)
        case "f16":
            values = bits.view(np.float16).astype(np.float32)
        case _:  # a scale of 1, as each column has a 127
            values = np.tile(np.arange(-127, 128, dtype=np.float32).repeat(target.lanes), 2)
    values = values.reshape(-1, target.lanes)
    f = copy(dtype, len(values), target.lanes, kind)
    verify(f)
    out = run(f, target, {}, {}, {"W": values})["out"]
    np.testing.assert_array_equal(np.isnan(out), np.isnan(values))
    known = ~np.isnan(values)
    np.testing.assert_array_equal(out[known].view(np.uint32), values[known].view(np.uint32))

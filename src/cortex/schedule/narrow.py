"""Narrow: keep packed weights in 16 or 8 bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from cortex.errors import ScheduleError
from cortex.ilir.ir import Buffer, Func, Packing, Scope
from cortex.ir.node import Node, rewrite
from cortex.ir.scalar import Binary, Int, Load
from cortex.ir.simplify import floordiv, mod
from cortex.ir.step import Step, step
from cortex.schedule.add_in_pairs import add_in_pairs
from cortex.schedule.locate import Names, refuse
from cortex.schedule.sum_integers import sum_integers

_ASKED: dict[str, Literal["bf16", "f16", "i8", "i16"]] = {"bf16": "bf16", "fp16": "f16", "int8": "i8", "int16": "i16"}
NARROW_TYPES = tuple(_ASKED.values())


@step
class Narrow(Step[Func]):
    """Store packed weights as `dtype`, "bf16", "f16", "i8" or "i16": those of `buffer`, or all that are still f32.

    before:  h[j] += packed[j // 16, k, 0, j mod 16] * s[k]
    after:   h[j] += packed[j // 16, k // 2, 0, j mod 16, k mod 2] * s[k]      (bf16; a load gives the equal f32)
             h[j] += packed[j // 16, k, 0, j mod 16] * scale[j // 16, 0, 0, j mod 16] * s[k]       (i8 and i16)
    legal:   for packed buffers of f32. Weights are rounded, so results change: by how much, a report says.

    Where `NarrowInputs` made s narrow too, unrolled sums in registers add the steps 2k and 2k + 1 at once, and those of
    integers are integers, multiplied with their scales where they are read.
    """

    dtype: Literal["bf16", "f16", "i8", "i16"]
    buffer: str | None = None

    def apply(self, f: Func) -> Func:
        """`f` with narrow weights."""
        if self.dtype not in NARROW_TYPES:
            refuse(self, f"there is no narrow type {self.dtype!r}. Use 'bf16', 'f16', 'i8' or 'i16'.", f, "")
        names = {b.name for b in packed_weights(f) if self.buffer in (None, b.name)}
        if not names and self.buffer is None:
            refuse(self, f"{f.name} has no packed weights of f32. Put it after Pack.", f, "")
        if not names:
            refuse(self, f"{self.buffer!r} is not a packed weight of f32.", f, "")
        narrow = tuple(replace(b, dtype=self.dtype) if b.name in names else b for b in f.buffers)
        match self.dtype:
            case "bf16":
                return add_in_pairs(_in_pairs(replace(f, buffers=narrow), names))
            case "i8" | "i16":
                f, scales = _with_scales(replace(f, buffers=narrow), names, self.dtype)
                f, summed = sum_integers(f, scales)
                return add_in_pairs(_in_pairs(f, summed))
            case _:
                return replace(f, buffers=narrow)


def narrow_type(weights_dtype: str | None) -> Narrow | None:
    """The step that `compile(..., weights_dtype=...)` asks for."""
    if weights_dtype is None or weights_dtype == "f32":
        return None
    if not isinstance(weights_dtype, str) or weights_dtype not in _ASKED:
        raise ScheduleError(
            f"weights_dtype={weights_dtype!r}: weights are stored as 'f32', 'bf16', 'fp16', 'int16' or 'int8'; None is "
            "'f32'."
        )
    return Narrow(_ASKED[weights_dtype])


def packed_weights(f: Func) -> list[Buffer]:
    """The packed buffers that could be narrow and are not."""
    weights = {p.buffer for p in f.packings if p.part == "weights"}
    return [b for b in f.buffers if b.scope is Scope.PACKED and b.dtype == "f32" and b.name in weights]


def _in_pairs(f: Func, names: set[str]) -> Func:
    """The steps 2k and 2k + 1 of the buffers `names` side by side."""
    packings = tuple(replace(p, steps=2) if p.buffer in names else p for p in f.packings)
    shapes = {p.buffer: tuple(Int(n) for n in p.shape) for p in packings if p.buffer in names}

    def paired(n: Node) -> Node:
        if not isinstance(n, Load) or n.buffer not in names:
            return n
        *before, k, gate, column = n.index
        return replace(n, index=(*before, floordiv(k, 2), gate, column, mod(k, 2)))

    return replace(
        f,
        buffers=tuple(replace(b, shape=shapes[b.name]) if b.name in names else b for b in f.buffers),
        packings=packings,
        body=tuple(rewrite(s, paired) for s in f.body),
    )


def _with_scales(f: Func, names: set[str], dtype: Literal["i8", "i16"]) -> tuple[Func, dict[str, str]]:
    """Every load of the buffers `names` times the scale of its column; and the buffers of these scales."""
    fresh = Names(f)
    packings: list[Packing] = []
    scale_of: dict[str, str] = {}
    for p in f.packings:
        if p.buffer in names:
            scale_of[p.buffer] = fresh.fresh(f"{p.buffer}_scale")
            packings.append(replace(p, buffer=scale_of[p.buffer], part="scales_i8" if dtype == "i8" else "scales_i16"))
    buffers = [Buffer(p.buffer, "f32", tuple(Int(n) for n in p.shape), Scope.PACKED) for p in packings]

    def scaled(n: Node) -> Node:
        if not isinstance(n, Load) or n.buffer not in names:
            return n
        *before, _, gate, column = n.index
        return Binary("mul", n, Load(scale_of[n.buffer], (*before, Int(0), gate, column)))

    new = replace(
        f,
        buffers=(*f.buffers, *buffers),
        packings=(*f.packings, *packings),
        body=tuple(rewrite(s, scaled) for s in f.body),
    )
    return new, scale_of

"""Which iterations a loop with moving bounds leaves out."""

from __future__ import annotations

import islpy as isl

from cortex.ilir.ir import For, Func
from cortex.ir.scalar import Expr
from cortex.poly.domains import Sayer, Vocabulary


def left_out_within(f: Func, loops: tuple[For, ...], loop: For, place: Expr, size: int) -> bool | None:
    """Does `loop` ever leave out an iteration of the last of `loops` in which 0 <= place < size? None: not known.

    for p in 0..7: for r in 0..3         `loop` is r in max(0, 1 - p)..min(3, 8 - p), place p - 1 + r, size 7:   never
    """
    say = Sayer(Vocabulary(f), loops, ())
    var, at = say.dims[loop.var], say.integer(place)
    formulas = [f"{say.integer(each.lo)} <= {say.dims[each.var]} < {say.integer(each.hi)}" for each in loops]
    formulas += [f"{var} < {say.integer(loop.lo)} or {var} >= {say.integer(loop.hi)}", f"0 <= {at} < {size}"]
    text = say.text("S", None, formulas)
    return None if say.unknowns or say.used else not isl.Set(text).is_empty()

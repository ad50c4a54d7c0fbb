"""How many cache lines an access touches while its loops run over a box, exactly.

x[p + r, 64*q + c]     p < 2, r < 3, q < 14, c < 192      4 rows of 14*64 + 128 elements: 4 * 64 lines of 16
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import islpy as isl

from cortex.ilir.ir import For, Func
from cortex.ir.scalar import Expr, Int
from cortex.ir.simplify import free_vars
from cortex.poly.counting import count
from cortex.poly.domains import Sayer, Vocabulary


def lines(f: Func, index: tuple[Expr, ...], box: Mapping[str, int], line: int) -> int:
    """The lines of `line` elements that `index` meets for all values of its variables from 0 to below `box`.

    Rows are taken to begin at a line. Indices are affine, or quotients and remainders of affine forms by constants.
    """
    used = [v for v in box if v in free_vars(index)]
    say = Sayer(Vocabulary(f), tuple(For(v, Int(0), Int(box[v]), ()) for v in used), ())
    places = [say.integer(e) for e in index]
    if places:
        places[-1] = f"floor(({places[-1]}) / {line})"
    formulas = [f"x{i} = {place}" for i, place in enumerate(places)]
    formulas += [f"0 <= {say.dims[v]} < {box[v]}" for v in used]
    target = f"A[{', '.join(f'x{i}' for i in range(len(index)))}]"
    return _count(isl.Map(say.text("S", target, formulas)).range())


def _count(touched: isl.Set) -> int:
    """The points of a set; dimension by dimension where they do not depend on each other."""
    touched = touched.coalesce()
    spans = [touched.dim_max_val(i).to_python() - touched.dim_min_val(i).to_python() + 1
             for i in range(touched.dim(isl.dim_type.set))]  # fmt: skip
    if touched.is_box():
        return int(prod(spans))
    return count(touched)

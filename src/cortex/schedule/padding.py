"""May a loop over columns run on into the padding of the rows it touches?"""

from __future__ import annotations

from cortex.ilir.ir import Func, Scope, Stmt
from cortex.ir.polynomial import interval_of
from cortex.ir.scalar import Expr, Int
from cortex.ir.simplify import affine, free_vars, simplify
from cortex.poly.accesses import accesses


def padding_is_harmless(f: Func, body: tuple[Stmt, ...], var: str, extent: int, lanes: int) -> bool:
    """Can `var` run to the next multiple of `lanes` above `extent`?

    Every access must either not depend on `var`, or have it, with coefficient 1, only in the last dimension and end
    within the padded row; a write must depend on it and end with the row, so that it spoils nothing but padding.
    """
    rounded = -(-extent // lanes) * lanes
    if rounded == extent:
        return True
    for a in accesses(body):
        if all(var not in free_vars(i) for i in a.index):
            if a.writes:
                return False
            continue
        buffer = f.buffer(a.buffer)
        if buffer.scope is Scope.PACKED:
            places = zip(a.index, buffer.shape, strict=True)
            if any(var in free_vars(i) and not _below(i, var, rounded, size) for i, size in places):
                return False
            continue
        last = buffer.shape[-1]
        form = affine(a.index[-1], var)
        if any(var in free_vars(i) for i in a.index[:-1]) or form is None or form[0] != 1:
            return False
        if not isinstance(form[1], Int) or not isinstance(last, Int):
            return False
        padded = -(-last.value // buffer.align) * buffer.align
        if form[1].value + rounded > padded or (a.writes and form[1].value + extent != last.value):
            return False
    return True


def _below(index: Expr, var: str, end: int, extent: Expr) -> bool:
    """Is `index` within a dimension of `extent` for every `var` below `end`?"""
    limit = interval_of(simplify(index, {var: (0, end - 1)}), {var: (0, end - 1)})[1]
    return isinstance(extent, Int) and limit < extent.value

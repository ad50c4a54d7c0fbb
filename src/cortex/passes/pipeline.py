"""The passes every function goes through, in order."""

from __future__ import annotations

from collections.abc import Callable

from cortex.ilir.ir import Func
from cortex.passes.expand_math import expand_math
from cortex.passes.forward_stores import forward_stores
from cortex.passes.prefetch import prefetch
from cortex.passes.remove_unused import remove_unused
from cortex.passes.share_packings import share_packings
from cortex.passes.simplify_indices import simplify_indices

Pass = Callable[[Func], Func]

PASSES: tuple[Pass, ...] = (
    share_packings,
    simplify_indices,  # early: equal indices must be equal expressions before stores can be matched with loads
    forward_stores,  # makes temporaries of fused nests unread
    remove_unused,  # and this drops them
    prefetch,
    expand_math,  # last: what remains is computed, so the long polynomials are expanded once
)


def run(passes: tuple[Pass, ...], f: Func) -> Func:
    """`f` after all passes."""
    for each in passes:
        f = each(f)
    return f

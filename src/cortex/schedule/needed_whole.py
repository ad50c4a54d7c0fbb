"""Which temporaries products need whole though they take little to compute, such as sums of children's states."""

from __future__ import annotations

from cortex.ilir.ir import Accumulate, For, Func, Scope, Store
from cortex.ir.node import walk
from cortex.ir.scalar import Load
from cortex.ir.simplify import free_vars
from cortex.schedule.locate import Block
from cortex.schedule.nest import Nest, nest_of, sum_reads


def needed_whole(f: Func, block: Block) -> frozenset[str]:
    """Of a statement list of a lowered function, the temporaries that products read element by element, and what
    these are computed from, where the list needs no product to compute them.

    before:  s = sum of the children's h; f = sum of the children's g * c; h = tanh(W @ s) * f
    found:   s, of which each column of W @ s needs all; not f, nor what comes from a product
    """
    nests = [nest_of(f, s) for s in block if isinstance(s, For)]
    scratch = {b.name for b in f.buffers if b.scope is Scope.SCRATCH}
    made_here = {name for nest in nests for name in _written(nest) & scratch}
    reads: dict[str, set[str]] = {}  # of what is computed without products
    wanted: set[str] = set()
    for nest in nests:
        used = {n.buffer for s in nest.body for n in walk(s) if isinstance(n, Load)} & made_here
        if nest.kind in ("product", "dot"):
            wanted |= _single(nest) & made_here
        elif used <= reads.keys():
            for name in _written(nest) & scratch:
                reads.setdefault(name, set()).update(used)
        else:
            for name in _written(nest):
                reads.pop(name, None)
    found: set[str] = set()
    pending = [name for name in wanted if name in reads]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += reads[name]
    return frozenset(found)


def _written(nest: Nest) -> set[str]:
    return {n.buffer for s in nest.body for n in walk(s) if isinstance(n, Store | Accumulate)}


def _single(nest: Nest) -> set[str]:
    """What the sums of a nest read the same element of for all columns."""
    column = nest.columns[-1].var if nest.columns else None
    return {load.buffer for load in sum_reads(nest) if column not in free_vars(load.index)}

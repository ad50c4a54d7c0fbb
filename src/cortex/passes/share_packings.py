"""Keep each packed weight once."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import Func
from cortex.ir.node import Node, rewrite
from cortex.ir.scalar import Load


def share_packings(f: Func) -> Func:
    """Let packed buffers with the same contents be one: kinds that use the same weights then find them in the caches.

    before:  packing a_packed = panels of W; packing b_packed = panels of W; ... b_packed[j, k, 0, l]
    after:   packing a_packed = panels of W; ... a_packed[j, k, 0, l]
    """
    first: dict[object, str] = {}
    shared: dict[str, str] = {}
    declared = {b.name: b for b in f.buffers}
    for p in f.packings:
        contents = (replace(p, buffer=""), replace(declared[p.buffer], name=""))
        shared[p.buffer] = first.setdefault(contents, p.buffer)
    gone = {name for name, kept in shared.items() if name != kept}
    if not gone:
        return f

    def visit(n: Node) -> Node:
        return replace(n, buffer=shared[n.buffer]) if isinstance(n, Load) and n.buffer in gone else n

    return replace(
        f,
        buffers=tuple(b for b in f.buffers if b.name not in gone),
        packings=tuple(p for p in f.packings if p.buffer not in gone),
        body=tuple(rewrite(s, visit) for s in f.body),
    )

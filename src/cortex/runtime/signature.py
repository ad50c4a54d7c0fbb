"""What must be known of a function of ILIR to call its object code: all of it but the body."""

from __future__ import annotations

from cortex.ilir.ir import Buffer, For, Func, LoopKind, Packing, Scope
from cortex.ir.node import Node, node, walk
from cortex.ir.scalar import Load

WITHOUT_ADDRESS = frozenset({Scope.REGISTER, Scope.LOCAL, Scope.RESIDENT})


@node
class Signature(Node):
    """The arguments of a function, and what its body makes of them.

    `sizes` and `index_functions` are names; `buffers` are those that have an address. `read` are the buffers that are
    loaded from. With `shared_out`, it has parallel loops, and so work for a team.
    """

    sizes: tuple[str, ...]
    index_functions: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    packings: tuple[Packing, ...]
    read: tuple[str, ...]
    shared_out: bool

    @staticmethod
    def of(f: Func) -> Signature:
        """The signature of `f`."""
        nodes = [n for s in f.body for n in walk(s)]
        return Signature(
            f.sizes,
            tuple(i.name for i in f.index_functions),
            tuple(b for b in f.buffers if b.scope not in WITHOUT_ADDRESS),
            f.packings,
            tuple(sorted({n.buffer for n in nodes if isinstance(n, Load)})),
            any(isinstance(n, For) and n.kind is LoopKind.PARALLEL for n in nodes),
        )

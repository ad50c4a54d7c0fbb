"""ILIR: irregular loops over the linear form of a structure.

    Func     = name, sizes, index functions, buffers, body, packings, promises
    Stmt     = For | If | Switch | Let | Store | Accumulate | Barrier | Mark | Prefetch
    Expr     = see cortex.ir.scalar

No recursion and no data structures are left: a structure is a few integer arrays, read through
uninterpreted index functions (`Index`) whose declared facts are all that legality may rely on. Loop
variables are unique in a function, so a schedule step names a loop by its variable.

A statement list runs in order. Buffers are disjoint. Reading an element nobody wrote is undefined, except
in the padding of a row, which may be read and holds any value.

Threads. A function with parallel loops is run by a team of T threads, for any T, and means the same for every T.
Each thread runs the whole function; of a parallel loop from lo to hi, n iterations, thread t runs those from
lo + t*n//T to lo + (t+1)*n//T, so equal bounds give a thread equal iterations whenever and wherever they occur.
What is not inside a parallel loop is run by every thread, and control flow there is the same for all, as bounds and
conditions read only index functions. Private and register buffers have a copy per thread and hold nothing from one
iteration of a parallel loop to the next. Copied buffers have a copy per thread, too, which every thread writes for
itself, outside parallel loops, and reads anywhere. All others are shared, and states and scratch are written in
parallel loops only. Where one thread writes an element and another reads or writes it, a barrier lies between;
iterations of one parallel loop never do that.

Items. On a GPU, a thread of the team is a work-group of X by Y items, for any X and Y, and the same holds once more
inside it. Each item runs all that its thread runs; of a loop of kind "items x" from lo to hi, the item with the
coordinate x runs lo + x, lo + x + X, ...; of "items y", the same with y and Y. What threads share, and local buffers,
are written inside such loops of both axes only; registers and private buffers have a copy per item. Where one item
writes an element and another of its work-group reads or writes it, an item barrier (or a barrier) lies between. It is
in no loop of items, so that all items of a work-group meet it equally often. To run such a loop in order, as a thread
that is one item does, is always right.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

from cortex.ir.node import Node, node
from cortex.ir.scalar import DType, Expr, Var


class _Named(StrEnum):
    """Members whose `repr` is Python that names them."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class LoopKind(_Named):
    """How the iterations of a loop are run."""

    SERIAL = "serial"
    UNROLLED = "unrolled"
    VECTORIZED = "vectorized"
    PARALLEL = "parallel"
    ITEMS_X = "items x"
    ITEMS_Y = "items y"


class Scope(_Named):
    """Where a buffer lives and who fills it."""

    PARAM = "param"  # a weight as the user gave it, last dimension padded to the vector width
    PACKED = "packed"  # derived from params once, at load, by the function's `Packing`
    FIELD = "field"  # per node, filled by the linearizer
    STATE = "state"  # per node, the results of the model
    SCRATCH = "scratch"  # per call, undefined on entry
    COPIED = "copied"  # the same, one copy per thread; lives as long as the call
    PRIVATE = "private"  # constant shape, one copy per thread; lives inside one iteration of a parallel loop
    REGISTER = "register"  # constant shape, constant indices after unrolling; lives inside one iteration
    LOCAL = "local"  # constant shape, one copy per work-group, for its items; lives inside one iteration
    RESIDENT = (
        "resident"  # constant shape, a slice for each iteration of parallel loops 0..P; lives as long as the call
    )


ITEMS = frozenset({LoopKind.ITEMS_X, LoopKind.ITEMS_Y})
"""Loops whose iterations the items of a work-group share out."""


Storage = Literal["i64", "f32", "bool", "bf16", "f16", "i8", "i16", "i32"]
"""How an element lies in memory. Of the last five, loads give f32. bf16, f16, i8 and i16 are narrow, and for packed
buffers; scratch may be of bf16 and i16 too, and what is stored there is rounded to nearest, ties to even (i16: 0 for
NaN, and its limits for what is beyond them). The last dimension of a packed buffer of bf16 has 2 elements, which share
a word of 32 bits: so both are widened by one operation. i32 is for registers that sum products of narrow integers,
exactly; a sum must not leave its range."""

NARROW: frozenset[Storage] = frozenset({"bf16", "f16", "i8", "i16"})
ROUNDING: frozenset[Storage] = frozenset({"bf16", "i16"})
"""The narrow types that a program itself may store."""


def value_type(storage: Storage) -> DType:
    """The type of what a load gives."""
    match storage:
        case "bf16" | "f16" | "i8" | "i16" | "i32":
            return "f32"
        case _:
            return storage


@node
class Buffer(Node):
    """A dense row-major array.

    Extents may use the function's sizes. In memory the last dimension is padded to a multiple of `align` elements.
    A load from a buffer of a narrow type gives the f32 equal to the element. A `streamed` state is only written, and
    may be written past the caches.
    """

    name: str
    dtype: Storage
    shape: tuple[Expr, ...]
    scope: Scope
    align: int = 1
    streamed: bool = False


Fact = Literal["in_nodes", "below", "increasing", "non_negative", "injective", "outside_group"]


@node
class IndexFunction(Node):
    """An uninterpreted integer function of one argument, given at run time by an array of `extent` values.

    Facts (for arguments inside the domain): "in_nodes" 0 <= f(x) < num_nodes; "below" f(x) > x (a child's id
    is greater than its parent's), or f(x) == -1 where there is no child; "increasing" f(x) <= f(x+1); "non_negative"
    f(x) >= 0; "injective" f(x) != f(y) for x != y; "outside_group" f(x) lies in another group than the node (or the
    edge's parent) x, and in the same part; `less_than` an upper bound f(x) < less_than.
    """

    name: str
    extent: Expr
    facts: tuple[Fact, ...] = ()
    less_than: Expr | None = None


@node
class For(Node):
    """Run `body` with `var` = lo, ..., hi-1. Bounds may use index functions; they are read once, on entry.

    A vectorized loop has constant bounds and at most the machine's lanes; its iterations are independent. So are
    those of a parallel loop, which no other parallel loop surrounds; each is run by one thread of the team. So are
    those of a loop of items, which stands in a parallel loop and in no other one of its axis.

    The iterations of a loop that is `turned` are independent, too. They run from hi-1 down to lo where the integer
    `turned` is odd: all of them, or those of a thread. Whoever runs them in another order is right, too.
    """

    var: str
    lo: Expr
    hi: Expr
    body: tuple[Stmt, ...]
    kind: LoopKind = LoopKind.SERIAL
    turned: Expr | None = None


@node
class If(Node):
    """Run `then` where `cond` holds, else `orelse`."""

    cond: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@node
class Case(Node):
    """One arm of a `Switch`."""

    value: int
    body: tuple[Stmt, ...]


@node
class Switch(Node):
    """Run the arm whose value equals `value`; run nothing when there is none."""

    value: Expr
    cases: tuple[Case, ...]


@node
class Let(Node):
    """Bind `var` to `value`, evaluated once, for the statements that follow in the same list."""

    var: Var
    value: Expr


@node
class Store(Node):
    """buffer[index] = value."""

    buffer: str
    index: tuple[Expr, ...]
    value: Expr


@node
class Accumulate(Node):
    """buffer[index] = fn(buffer[index], value). A sum of a product is one fused multiply-add."""

    buffer: str
    index: tuple[Expr, ...]
    fn: Literal["add", "max", "min"]
    value: Expr


@node
class Barrier(Node):
    """All threads of the team have finished what precedes before any starts what follows; not in a parallel loop.

    Among "items": all items of a work-group have, before any of them; not in a loop of items.
    """

    among: Literal["team", "items"] = "team"


@node
class Mark(Node):
    """buffer[index] = the machine's clock, in ticks (i64). Programs have it only while they are being measured."""

    buffer: str
    index: tuple[Expr, ...]


@node
class Prefetch(Node):
    """buffer[index] will be read soon, or written: fetch its cache line. Nothing changes; the element must exist."""

    buffer: str
    index: tuple[Expr, ...]
    to: Literal["read", "write"] = "read"


Stmt: TypeAlias = "For | If | Switch | Let | Store | Accumulate | Barrier | Mark | Prefetch"


@node
class PackedGate(Node):
    """One source of a packed buffer: element (outer..., column, k) is `param` at `index`.

    `index` uses the variables `o0`, `o1`, ... (outer), `j` (column) and `k`.
    """

    param: str
    index: tuple[Expr, ...]


@node
class Packing(Node):
    """How a packed buffer is made from params at load: panels of `width` columns, gates side by side.

    packed[outer..., j // width, k, gate, j % width] = gates[gate] at (outer..., j, k), and 0 for j >= columns.

    With `steps` > 1, so many steps k lie side by side: packed[outer..., j // width, k // steps, gate, j % width,
    k % steps], and 0 for k >= depth.

    What is stored is rounded to the type of the buffer. In a buffer of integers it is a multiple of the column's scale,
    which is in the packing of the same gates whose `part` names that type: packed[outer..., j // width, 0, gate,
    j % width] is for i8 the greatest of the column's weights, in size, over 127; for i16, see ilir/storage_types.py.
    """

    buffer: str
    outer: tuple[int, ...]
    columns: int
    depth: int
    width: int
    gates: tuple[PackedGate, ...]
    part: Literal["weights", "scales_i8", "scales_i16"] = "weights"
    steps: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the packed buffer."""
        depth = 1 if self.part != "weights" else -(-self.depth // self.steps)
        together = (self.steps,) if self.steps > 1 else ()
        return (*self.outer, -(-self.columns // self.width), depth, len(self.gates), self.width, *together)


@node
class Promise(Node):
    """For all integers `over`: where all of `given` hold, `then` holds.

    Said of sizes and index functions only: what several of them promise together, beyond the facts of each.
    """

    over: tuple[str, ...]
    given: tuple[Expr, ...]
    then: Expr


@node
class Func(Node):
    """A program over one request: sizes are its integer inputs, buffers and index functions its arrays."""

    name: str
    sizes: tuple[str, ...]
    index_functions: tuple[IndexFunction, ...]
    buffers: tuple[Buffer, ...]
    body: tuple[Stmt, ...]
    packings: tuple[Packing, ...] = ()
    promises: tuple[Promise, ...] = ()

    def buffer(self, name: str) -> Buffer:
        """The buffer called `name`."""
        return next(b for b in self.buffers if b.name == name)

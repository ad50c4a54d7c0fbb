"""A compiled program for a GPU: the source of its kernels, and what the host does to run them.

    GpuProgram = dialect, source, kernels, host statements, number of work-groups, declarations of the function
    Host       = Launch | HostFor | HostIf

In the persistent form the host launches one kernel, once. In the form of one kernel per level it walks the loops and
conditions that hold grid barriers, whose bounds read sizes and index functions only, and launches a kernel for each
stretch between two barriers; kernels run in the order they are launched, each seeing all that earlier ones wrote.

Whoever runs a program gives each kernel exactly `groups` work-groups of `work_items` items, in one dimension of
groups: the shares of groups are constants of the source. In OpenCL the global size is (groups*x, y) and the local
size (x, y); in CUDA the grid is (groups, 1, 1) and the block (x, y, 1). Arguments are passed in order:

    buffer   the device memory of a buffer, 4 bytes an element but for narrow packed ones; `GpuProgram.buffers` has its
             shape in terms of sizes, of which the last dimension is padded to a multiple of `align`
    index    the device memory of an index function's array, int32
    size     a size of the linear form, int32 by value
    loop     a variable of a host loop around the launch, int32 by value
    barrier  the device memory of the grid barrier: `BARRIER_WORDS` words, zero before the first launch; a launch that
             ends leaves them fit for the next

No buffer has 2**31 elements or more: element offsets are int.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from cortex.ilir.ir import Buffer, IndexFunction
from cortex.ir.scalar import Expr

DialectName = Literal["opencl", "cuda"]
DIALECTS: tuple[DialectName, ...] = ("opencl", "cuda")
ArgumentKind = Literal["buffer", "index", "size", "loop", "barrier"]

BARRIER_WORDS = 2


@dataclass(frozen=True)
class Argument:
    """One argument of a kernel."""

    kind: ArgumentKind
    name: str


@dataclass(frozen=True)
class Kernel:
    """A kernel of the source.

    `local_bytes` is the local (shared) memory that it uses: it declares it, or, as CUDA wants it above 48 KB, all of it
    is given to the kernel at its launch, as `launch_bytes`.
    """

    name: str
    arguments: tuple[Argument, ...]
    local_bytes: int
    work_items: tuple[int, int]
    launch_bytes: int = 0


@dataclass(frozen=True)
class Launch:
    """Run the kernel of this name."""

    kernel: str


@dataclass(frozen=True)
class HostFor:
    """Run `body` with `var` = lo, ..., hi-1."""

    var: str
    lo: Expr
    hi: Expr
    body: tuple[Host, ...]


@dataclass(frozen=True)
class HostIf:
    """Run `then` where `cond` holds, else `orelse`."""

    cond: Expr
    then: tuple[Host, ...]
    orelse: tuple[Host, ...] = ()


Host: TypeAlias = "Launch | HostFor | HostIf"


@dataclass(frozen=True)
class GpuProgram:
    """Everything that is needed to build and run a function on a device.

    `sizes`, `index_functions` and `buffers` are those of the function; buffers in registers, private and local memory
    are no arguments. A `persistent` program has a grid barrier: all its work-groups must be resident at once.
    """

    name: str
    dialect: DialectName
    source: str
    kernels: tuple[Kernel, ...]
    host: tuple[Host, ...]
    groups: int
    persistent: bool
    sizes: tuple[str, ...]
    index_functions: tuple[IndexFunction, ...]
    buffers: tuple[Buffer, ...]

    def kernel(self, name: str) -> Kernel:
        """The kernel called `name`."""
        return next(k for k in self.kernels if k.name == name)

"""What a device layer does: memory, copies, kernels. `opencl.py` and `cuda.py` are the two there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from cortex.codegen.gpu.program import GpuProgram, Kernel
from cortex.runtime.storage import Array

Memory: TypeAlias = Any
"""Memory of a device, as its layer knows it."""


class Kernels(Protocol):
    """The built kernels of a program."""

    def launch(self, kernel: Kernel, arguments: Sequence[Memory | int]) -> None:
        """Run a kernel after all that was launched or copied before; does not wait. Integers are passed as int32.

        Calls from several threads may come at once, each with memory of its own.
        """


class Device(Protocol):
    """A device with its one queue, in which everything is done in order."""

    @property
    def name(self) -> str:
        """What its maker calls it."""

    @property
    def alignment(self) -> int:
        """Bytes; parts of memory begin at multiples of so many."""

    def build(self, program: GpuProgram) -> Kernels:
        """The kernels of a program, compiled for this device. A program that was built before is not built again."""

    def allocate(self, size: int) -> Memory:
        """So many bytes, at least one; a MemoryError where there are not so many."""

    def part(self, memory: Memory, offset: int, size: int) -> Memory:
        """Some bytes of what `allocate` gave, from a multiple of `alignment` on."""

    def write(self, memory: Memory, data: Array) -> None:
        """Copy an array to the beginning of memory; it may be changed as soon as this returns."""

    def read(self, memory: Memory, offset: int, into: Array) -> None:
        """Copy bytes from memory into an array, once everything before is done."""

"""What the assembler of CUDA (ptxas -v) says of kernels: registers, shared memory, spills."""

from __future__ import annotations

import re
from dataclasses import dataclass

REGISTERS = 65536
"""Of 32 bits, of a multiprocessor."""


@dataclass(frozen=True)
class KernelUse:
    """What one kernel uses: registers per thread, bytes of shared memory that it declares, of stack and spilled."""

    name: str
    registers: int
    shared: int
    stack: int
    spill_stores: int
    spill_loads: int

    def is_resident(self, threads: int, most_shared: int, launch_bytes: int = 0) -> bool:
        """Does a block of so many threads, given `launch_bytes` of shared memory, fit a multiprocessor?"""
        return self.registers * threads <= REGISTERS and self.shared + launch_bytes <= most_shared


_KERNEL = re.compile(r"Compiling entry function '([^']+)' for '")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def kernel_uses(log: str) -> tuple[KernelUse, ...]:
    """The kernels that a log of `ptxas -v` speaks of, in order."""
    found: list[KernelUse] = []
    for part in re.split(r"(?=ptxas info\s*: Compiling entry function)", log):
        name, stack, used = _KERNEL.search(part), _STACK.search(part), _USED.search(part)
        if name is None or used is None:
            continue
        shared = _SHARED.search(part)
        frame = tuple(map(int, stack.groups())) if stack else (0, 0, 0)
        found.append(KernelUse(name[1], int(used[1]), int(shared[1]) if shared else 0, *frame))
    return tuple(found)


def warnings_of(log: str) -> tuple[str, ...]:
    """The lines of a log that warn of the program; that the compiler will drop an architecture is about itself."""
    lines = (line.strip() for line in log.splitlines() if re.search(r"\bwarning\b( #|\s*:)", line))
    return tuple(line for line in lines if "Architectures prior to" not in line)

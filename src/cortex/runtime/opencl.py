"""Devices through OpenCL: real ones, or PoCL, which runs kernels on the processor. The only importer of pyopencl."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Sequence
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from cortex.codegen.gpu.program import GpuProgram, Kernel
from cortex.errors import InternalError, ModelError
from cortex.runtime.device import Memory
from cortex.runtime.storage import Array

REMEDY = "pip install 'cortex-recursive[opencl]'"
UNKNOWN_PROCESSOR = "unknown target CPU"
OPTIONS = ("-cl-std=CL1.2",)
POCL, UNCHANGED = "Portable Computing Language", "-cl-opt-disable"
"""PoCL runs the items of a work-group in loops, and what is optimized before it makes them it may split wrongly."""
EXACT = "-cl-fp32-correctly-rounded-divide-sqrt"


def find_device(name: str | None = None) -> OpenClDevice:
    """The device whose name contains `name`; by default a real one, if there is one, and else PoCL's."""
    found = devices()
    chosen = [d for d in found if name is None or name.lower() in full_name(d).lower()]
    if not chosen and found:
        raise ModelError(
            f"an OpenCL device called {name!r} was asked for; there are {', '.join(repr(full_name(d)) for d in found)}."
        )
    if not chosen:
        raise ModelError(f"target='opencl': there is no OpenCL device here, and PoCL is not installed: {REMEDY}.")
    return _opened(chosen[0])


@cache
def _opened(device: Any) -> OpenClDevice:
    """A process has one queue for each device: work-groups that wait for each other must not meet others that do."""
    return OpenClDevice(device)


def devices() -> list[Any]:
    """The devices there are, GPUs and accelerators before processors; a ModelError without pyopencl."""
    cl = _opencl()
    try:
        platforms = cl.get_platforms()
    except cl.LogicError:  # the loader finds no implementation
        return []
    found = [d for p in platforms for d in p.get_devices()]
    return sorted(found, key=lambda d: bool(d.type & cl.device_type.CPU))


def full_name(device: Any) -> str:
    """What the maker of a device calls it, and who runs it."""
    return f"{device.name.strip()} ({device.platform.name})"


def _opencl() -> Any:
    try:
        import pyopencl
    except ImportError as error:
        raise ModelError(f"target='opencl' needs pyopencl, which cannot be imported ({error}): {REMEDY}.") from None
    return pyopencl


class OpenClDevice:
    """A device with a context and a queue of its own."""

    def __init__(self, device: Any) -> None:
        self._cl = _opencl()
        self._device = device
        self._context = self._cl.Context([device])
        self._queue = self._cl.CommandQueue(self._context)  # in order
        self._built: dict[str, Any] = {}
        self._lock = Lock()

    @property
    def name(self) -> str:
        """What its maker calls it, and who runs it."""
        return full_name(self._device)

    @property
    def is_processor(self) -> bool:
        """Are its compute units the cores of a processor, each with one work-group at a time?"""
        return bool(self._device.type & self._cl.device_type.CPU)

    @property
    def compute_units(self) -> int:
        """Work-groups that are sure to run at once, on a processor; multiprocessors of a GPU."""
        return int(self._device.max_compute_units)

    @property
    def local_bytes(self) -> int:
        """Local memory of a work-group."""
        return int(self._device.local_mem_size)

    @property
    def work_items(self) -> int:
        """The most items of a work-group."""
        return int(self._device.max_work_group_size)

    @property
    def alignment(self) -> int:
        """Where parts of memory may begin."""
        return max(64, int(self._device.mem_base_addr_align) // 8)

    def build(self, program: GpuProgram) -> OpenClKernels:
        """The kernels of a program. Equal text is compiled once; kernels have arguments, and so are made anew."""
        if program.persistent and self.is_processor and program.groups > self.compute_units:
            raise InternalError(
                f"{program.name} waits for {program.groups} work-groups, and {self.name} runs {self.compute_units} "
                "at once"
            )
        with self._lock:
            if program.source not in self._built:
                self._built[program.source] = self._compile(program)
            return OpenClKernels(self._cl, self._queue, program, self._built[program.source])

    def allocate(self, size: int) -> Memory:
        """Memory of the device, which some make only when it is first used."""
        try:
            return self._cl.Buffer(self._context, self._cl.mem_flags.READ_WRITE, size)
        except (self._cl.MemoryError, self._cl.RuntimeError, self._cl.LogicError) as error:
            raise MemoryError(f"{self.name} has no {size} bytes for a request ({error}); split it up") from None

    def part(self, memory: Memory, offset: int, size: int) -> Memory:
        """A sub-buffer."""
        return memory.get_sub_region(offset, size)

    def write(self, memory: Memory, data: Array) -> None:
        """Copy an array to the device."""
        self._cl.enqueue_copy(self._queue, memory, np.ascontiguousarray(data), is_blocking=True)

    def read(self, memory: Memory, offset: int, into: Array) -> None:
        """Copy from the device, after everything before."""
        self._cl.enqueue_copy(self._queue, into, memory, src_offset=offset, is_blocking=True)

    def _compile(self, program: GpuProgram) -> Any:
        cl = self._cl
        is_pocl = self._device.platform.name == POCL
        if is_pocl and shutil.which("ld") is None:  # PoCL would end the process
            raise ModelError("target='opencl': PoCL links kernels with `ld`, which is not installed: install binutils.")
        exact = bool(self._device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT)
        options = [*OPTIONS, *([EXACT] if exact else []), *([UNCHANGED] if is_pocl else [])]
        try:
            with warnings.catch_warnings():  # that there is a log; it is of use only where something is wrong
                warnings.simplefilter("ignore", cl.CompilerWarning)
                return cl.Program(self._context, program.source).build(options=options)
        except cl.RuntimeError as error:
            if is_pocl and UNKNOWN_PROCESSOR in str(error):
                raise ModelError(
                    "target='opencl': the PoCL that is installed is older than this processor, for which it cannot "
                    f"compile ({UNKNOWN_PROCESSOR}). Install a newer one, or leave out `target`."
                ) from None
            raise InternalError(f"{self.name} refuses the kernels of {program.name}:\n{error}") from None


class OpenClKernels:
    """The kernels of one program; arguments are set and the kernel launched under one lock."""

    def __init__(self, cl: Any, queue: Any, program: GpuProgram, built: Any) -> None:
        self._cl, self._queue = cl, queue
        self._groups = program.groups
        self._kernels = {k.name: cl.Kernel(built, k.name) for k in program.kernels}
        self._lock = Lock()

    def launch(self, kernel: Kernel, arguments: Sequence[Memory | int]) -> None:
        """Run a kernel."""
        x, y = kernel.work_items
        function = self._kernels[kernel.name]
        with self._lock:
            for number, value in enumerate(arguments):
                function.set_arg(number, np.int32(value) if isinstance(value, int) else value)
            self._cl.enqueue_nd_range_kernel(self._queue, function, (self._groups * x, y), (x, y))

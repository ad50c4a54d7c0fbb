"""Devices through NVIDIA's driver. The only importer of cuda-python's bindings.

Nobody has run this on a device so far: tests hold it to the order of its calls, with a driver that only takes notes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from cortex.codegen.gpu.nvrtc import compile_cuda
from cortex.codegen.gpu.program import GpuProgram, Kernel
from cortex.errors import InternalError, ModelError
from cortex.runtime.storage import Array

REMEDY = "pip install 'cortex-recursive[cuda]'"
ALIGNMENT = 256


@cache
def find_device(number: int = 0) -> CudaDevice:
    """A GPU of this machine, with one context and one queue for the process."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise ModelError(
            f"target='cuda' runs models through cuda-python's bindings, which cannot be imported ({error}): {REMEDY}."
        ) from None
    try:
        (status,) = driver.cuInit(0)
    except RuntimeError:  # the bindings find no library of the driver
        raise ModelError(
            "target='cuda' needs an NVIDIA GPU and its driver to run models; this machine has none."
        ) from None
    if status != driver.CUresult.CUDA_SUCCESS:
        raise ModelError(f"target='cuda' needs an NVIDIA GPU to run models; the driver says {status.name}.")
    return CudaDevice(driver, number)


class CudaMemory:
    """Memory of the device: an address, and what it is a part of. It is given back with its last part."""

    def __init__(
        self, address: int, owner: CudaMemory | None = None, free: Callable[[int], None] | None = None
    ) -> None:
        self.address = address
        self._owner = owner
        self._free = free

    def __del__(self) -> None:
        if self._free is not None:
            self._free(self.address)


class CudaDevice:
    """A GPU with its primary context and a stream."""

    alignment = ALIGNMENT

    def __init__(self, driver: Any, number: int = 0) -> None:
        self._driver = driver
        count = self._call("cuDeviceGetCount")
        if number >= count:
            raise ModelError(f"target='cuda': GPU {number} was asked for, and this machine has {count}.")
        self._device = self._call("cuDeviceGet", number)
        self._context = self._call("cuDevicePrimaryCtxRetain", self._device)
        self._enter()
        self._stream = self._call("cuStreamCreate", driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
        self._built: dict[str, Any] = {}
        self._lock = Lock()

    @property
    def name(self) -> str:
        """What NVIDIA calls it."""
        name: bytes = self._call("cuDeviceGetName", 128, self._device)
        return name.split(b"\0", 1)[0].decode()

    @property
    def architecture(self) -> str:
        """As NVRTC takes it: "sm_80"."""
        return f"sm_{self._attribute('COMPUTE_CAPABILITY_MAJOR')}{self._attribute('COMPUTE_CAPABILITY_MINOR')}"

    @property
    def multiprocessors(self) -> int:
        """Their number."""
        return self._attribute("MULTIPROCESSOR_COUNT")

    @property
    def local_bytes(self) -> int:
        """The shared memory that a block may be given at its launch."""
        return self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")

    def build(self, program: GpuProgram) -> CudaKernels:
        """The kernels of a program, compiled by NVRTC for this device. Equal text is compiled once."""
        self._enter()
        with self._lock:
            if program.source not in self._built:
                code = compile_cuda(program.source, self.architecture)
                self._built[program.source] = self._call("cuModuleLoadData", code.cubin)
            module = self._built[program.source]
        functions = {k.name: self._call("cuModuleGetFunction", module, k.name.encode()) for k in program.kernels}
        most = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        for k in program.kernels:
            if k.launch_bytes:
                self._call("cuFuncSetAttribute", functions[k.name], most, k.launch_bytes)
        if program.persistent:
            self._check_resident(program, functions)
        return CudaKernels(self, program, functions)

    def allocate(self, size: int) -> CudaMemory:
        """Memory of the device."""
        self._enter()
        status, address = self._driver.cuMemAlloc(size)
        if status == self._driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise MemoryError(f"{self.name} has no {size} bytes for a request; split it up")
        self._check("cuMemAlloc", status)
        return CudaMemory(int(address), free=self._give_back)

    def part(self, memory: CudaMemory, offset: int, size: int) -> CudaMemory:
        """An address inside."""
        return CudaMemory(memory.address + offset, memory)

    def write(self, memory: CudaMemory, data: Array) -> None:
        """Copy an array to the device, in order with what is launched."""
        self._enter()
        array = np.ascontiguousarray(data)
        self._call("cuMemcpyHtoDAsync", memory.address, array.ctypes.data, array.nbytes, self._stream)
        self._call("cuStreamSynchronize", self._stream)

    def read(self, memory: CudaMemory, offset: int, into: Array) -> None:
        """Copy from the device, after everything before."""
        self._enter()
        self._call("cuMemcpyDtoHAsync", into.ctypes.data, memory.address + offset, into.nbytes, self._stream)
        self._call("cuStreamSynchronize", self._stream)

    def launch(self, function: Any, groups: int, kernel: Kernel, given: Any, cooperative: bool) -> None:
        """Run a function on a grid of `groups` blocks; a cooperative one has all of them resident, or is refused."""
        self._enter()
        shape = (groups, 1, 1, *kernel.work_items, 1, kernel.launch_bytes, self._stream, given)
        if cooperative:
            self._call("cuLaunchCooperativeKernel", function, *shape)
        else:
            self._call("cuLaunchKernel", function, *shape, 0)

    def _check_resident(self, program: GpuProgram, functions: dict[str, Any]) -> None:
        for k in program.kernels:
            items = k.work_items[0] * k.work_items[1]
            each = self._call("cuOccupancyMaxActiveBlocksPerMultiprocessor", functions[k.name], items, k.launch_bytes)
            if program.groups > each * self.multiprocessors:
                raise ModelError(
                    f"{program.name} has a kernel of {program.groups} work-groups that wait for each other, and "
                    f"{self.name} runs {each} on each of its {self.multiprocessors} multiprocessors. Compile it for "
                    "fewer work-groups, or with one kernel per level."
                )

    def _attribute(self, name: str) -> int:
        attribute = getattr(self._driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self._call("cuDeviceGetAttribute", attribute, self._device))

    def _give_back(self, address: int) -> None:
        """Free memory. What is launched and uses it has been waited for: results are read before it is dropped."""
        self._enter()
        self._call("cuMemFree", address)

    def _enter(self) -> None:
        """Contexts are per thread of the host."""
        self._call("cuCtxSetCurrent", self._context)

    def _call(self, function: str, *arguments: Any) -> Any:
        """What a function of the driver gives besides its status."""
        status, *values = getattr(self._driver, function)(*arguments)
        self._check(function, status)
        return values[0] if values else None

    def _check(self, function: str, status: Any) -> None:
        if status != self._driver.CUresult.CUDA_SUCCESS:
            raise InternalError(f"{function}: {status.name}")


class CudaKernels:
    """The kernels of one program."""

    def __init__(self, device: CudaDevice, program: GpuProgram, functions: dict[str, Any]) -> None:
        self._device = device
        self._functions = functions
        self._groups, self._persistent = program.groups, program.persistent

    def launch(self, kernel: Kernel, arguments: Sequence[CudaMemory | int]) -> None:
        """Run a kernel."""
        function = self._functions[kernel.name]
        self._device.launch(function, self._groups, kernel, packed(arguments), self._persistent)


def packed(arguments: Sequence[CudaMemory | int]) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """The arguments of a kernel as the bindings take them: values, and the C type of each."""
    values = tuple(a if isinstance(a, int) else a.address for a in arguments)
    types = tuple(ctypes.c_int32 if isinstance(a, int) else ctypes.c_void_p for a in arguments)
    return values, types

"""Stands in for NVIDIA's driver: takes notes of the calls and computes nothing."""

from __future__ import annotations

import ctypes
from enum import Enum
from types import SimpleNamespace
from typing import Any


class Result(Enum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_LAUNCH_FAILED = 719


class NotingDriver:
    """`calls` has the name and the arguments of every call; memory is an address that counts up."""

    CUresult = Result
    CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)
    CUdevice_attribute = SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR="major",
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR="minor",
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT="multiprocessors",
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN="shared",
    )
    CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="shared of a launch")

    def __init__(self, resident: int = 1, fail: str | None = None) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.resident = resident
        self.fail = fail
        self.memory: dict[int, int] = {}

    def names(self) -> list[str]:
        """The calls without those that enter the context, which every thread does before everything."""
        return [name for name, _ in self.calls if name != "cuCtxSetCurrent"]

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append((name, arguments))
            if name == self.fail:
                return (Result.CUDA_ERROR_LAUNCH_FAILED,)
            return (Result.CUDA_SUCCESS, *getattr(self, f"_{name}", lambda *_: ())(*arguments))

        if not name.startswith("cu"):
            raise AttributeError(name)
        return call

    def _cuDeviceGetCount(self) -> tuple[int]:
        return (1,)

    def _cuDeviceGet(self, number: int) -> tuple[str]:
        return (f"device {number}",)

    def _cuDeviceGetName(self, *_: Any) -> tuple[bytes]:
        return (b"Abacus\0\0\0",)

    def _cuDevicePrimaryCtxRetain(self, device: str) -> tuple[str]:
        return (f"context of {device}",)

    def _cuStreamCreate(self, flags: int) -> tuple[str]:
        return ("stream",)

    def _cuDeviceGetAttribute(self, attribute: str, device: str) -> tuple[int]:
        return ({"major": 7, "minor": 0, "multiprocessors": 80, "shared": 98304}[attribute],)

    def _cuModuleLoadData(self, code: bytes) -> tuple[str]:
        return ("module",)

    def _cuModuleGetFunction(self, module: str, name: bytes) -> tuple[str]:
        return (f"function {name.decode()}",)

    def _cuOccupancyMaxActiveBlocksPerMultiprocessor(self, *_: Any) -> tuple[int]:
        return (self.resident,)

    def _cuMemAlloc(self, size: int) -> tuple[int]:
        address = 4096 + sum(-(-s // 256) * 256 for s in self.memory.values())
        self.memory[address] = size
        return (address,)

    def _cuMemcpyDtoHAsync(self, to: int, *rest: Any) -> tuple[()]:
        ctypes.memset(to, 0, rest[1])
        return ()

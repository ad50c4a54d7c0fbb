"""The CUDA layer without a GPU: the order of its calls, the arguments of kernels, and what it says when it cannot."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from noting_driver import NotingDriver
from toy_device_program import on_device, toy_program, tree

import cortex
from cortex import zoo
from cortex.codegen.gpu.program import GpuProgram
from cortex.errors import InternalError, ModelError
from cortex.runtime import cuda
from cortex.runtime.cuda import CudaDevice, CudaMemory, packed

SOURCE = """
extern "C" __global__ void heights(float *h, const float *step, const float *own, const int *left, const int *right,
                                   const int *group_start, const int *group_len, int last, unsigned int *words)
{
    h[0] = step[0] + own[left[right[group_start[group_len[last]]]]];
    words[0] = 0;
}
"""
STEP = [1.0, 0.5, 2.0]


def program(persistent: bool, groups: int = 80) -> GpuProgram:
    source = SOURCE if persistent else SOURCE.replace(", unsigned int *words", "").replace("    words[0] = 0;\n", "")
    return replace(toy_program(persistent, groups, source), dialect="cuda")


def test_arguments_are_addresses_and_integers() -> None:
    values, types = packed([CudaMemory(4096), 7, CudaMemory(8192), -1])
    assert values == (4096, 7, 8192, -1)
    assert types == (ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)


def test_a_persistent_program_is_one_cooperative_launch() -> None:
    driver = NotingDriver()
    made = on_device(CudaDevice(driver), program(True), STEP)
    assert "cuOccupancyMaxActiveBlocksPerMultiprocessor" in driver.names()
    driver.calls.clear()
    run = made.run([tree(3)], True)
    assert driver.names() == [
        *("cuMemAlloc", "cuMemcpyHtoDAsync", "cuStreamSynchronize"),  # the words of the barrier, zero
        *("cuMemAlloc", "cuMemAlloc"),  # for the request, for states
        *("cuMemcpyHtoDAsync", "cuStreamSynchronize"),  # the request, at once
        "cuLaunchCooperativeKernel",
        *("cuMemcpyDtoHAsync", "cuStreamSynchronize"),
    ]
    assert run.launches == 1
    ((_, launch),) = [call for call in driver.calls if call[0] == "cuLaunchCooperativeKernel"]
    assert launch[:9] == ("function heights", 80, 1, 1, 4, 1, 1, 0, "stream")
    values, types = launch[9]
    assert values[7] == 4 and types[7] is ctypes.c_int32  # num_groups
    assert [t is ctypes.c_void_p for t in types] == [True] * 7 + [False, True]
    parts = values[2:7]  # own, left, right, group_start, group_len: parts of what was copied
    assert all(p % cuda.ALIGNMENT == 0 for p in parts) and len(set(parts)) == 5


@pytest.mark.parametrize("persistent", [True, False])
def test_shared_memory_that_a_launch_gives(persistent: bool) -> None:
    driver, asked = NotingDriver(), program(persistent)
    asked = replace(asked, kernels=tuple(replace(k, local_bytes=65536, launch_bytes=65536) for k in asked.kernels))
    made = on_device(CudaDevice(driver), asked, STEP)
    made.run([tree(3)], True)
    assert ("cuFuncSetAttribute", ("function heights", "shared of a launch", 65536)) in driver.calls
    launches = [arguments for name, arguments in driver.calls if name.startswith("cuLaunch")]
    assert launches and all(a[7] == 65536 for a in launches)
    for name, arguments in driver.calls:
        if name == "cuOccupancyMaxActiveBlocksPerMultiprocessor":
            assert arguments == ("function heights", 4, 65536)


def test_other_programs_are_a_launch_for_each_level() -> None:
    driver = NotingDriver()
    made = on_device(CudaDevice(driver), program(False), STEP)
    made.run([tree(3)], True)
    driver.calls.clear()
    made.run([tree(3)], True)
    launches = [arguments for name, arguments in driver.calls if name == "cuLaunchKernel"]
    assert [a[9][0][7] for a in launches] == [0, 1, 2, 3]  # the host's loop variable
    assert "cuMemAlloc" not in driver.names() and driver.names().count("cuMemcpyHtoDAsync") == 1
    assert "cuOccupancyMaxActiveBlocksPerMultiprocessor" not in driver.names()


def test_every_call_enters_the_context() -> None:
    driver = NotingDriver()
    device = CudaDevice(driver)
    driver.calls.clear()
    device.read(device.allocate(16), 0, np.zeros(4, np.float32))
    assert driver.calls[0] == ("cuCtxSetCurrent", ("context of device 0",))
    assert [name for name, _ in driver.calls].count("cuCtxSetCurrent") >= 2


def test_memory_is_given_back_with_its_last_part() -> None:
    driver = NotingDriver()
    device = CudaDevice(driver)
    memory = device.allocate(1024)
    part = device.part(memory, 256, 16)
    assert part.address == memory.address + 256
    del memory
    assert "cuMemFree" not in driver.names()
    del part
    assert "cuMemFree" in driver.names()


def test_groups_that_are_not_resident_are_refused() -> None:
    driver = NotingDriver(resident=1)
    with pytest.raises(ModelError, match=r"81 work-groups .* Abacus runs 1 on each of its 80 multiprocessors"):
        CudaDevice(driver).build(program(True, 81))
    CudaDevice(driver).build(program(False, 81))


def test_failures_of_the_driver_are_told() -> None:
    driver = NotingDriver(fail="cuLaunchCooperativeKernel")
    made = on_device(CudaDevice(driver), program(True), STEP)
    with pytest.raises(InternalError, match="cuLaunchCooperativeKernel: CUDA_ERROR_LAUNCH_FAILED"):
        made.run([tree(3)], True)


def test_memory_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = NotingDriver()
    device = CudaDevice(driver)
    refuse = lambda size: (driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY, 0)  # noqa: E731
    monkeypatch.setattr(driver, "cuMemAlloc", refuse, raising=False)
    with pytest.raises(MemoryError, match="Abacus has no 1024 bytes"):
        device.allocate(1024)


def test_a_gpu_that_is_not_there() -> None:
    with pytest.raises(ModelError, match="GPU 3 was asked for, and this machine has 1"):
        CudaDevice(NotingDriver(), 3)


def compiled_for_cuda(**more: Any) -> Any:
    entry = zoo.load("tree_rnn")
    return cortex.compile(
        entry.model, entry.weights(8, 10), examples=entry.structures(Random(0), 1, 10), target="cuda", **more
    )


def test_without_a_gpu_there_is_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing() -> Any:
        raise ModelError("target='cuda' needs an NVIDIA GPU and its driver to run models; this machine has none.")

    monkeypatch.setattr(cuda, "find_device", nothing)
    fast = compiled_for_cuda(cpu="sm_80")
    assert "__global__" in fast.source
    with pytest.raises(ModelError) as caught:
        fast(zoo.load("tree_rnn").structures(Random(0), 1, 10))
    assert str(caught.value) == (
        "tree_rnn was compiled for cuda (sm_80), which this machine cannot run. target='cuda' needs an NVIDIA GPU and "
        "its driver to run models; this machine has none. `fast.source` has the kernels."
    )


def test_an_architecture_that_is_not_known() -> None:
    with pytest.raises(ModelError, match=r"device 'sm_12': give one of sm_70, .*sm_90"):
        compiled_for_cuda(cpu="sm_12")


def test_without_the_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cuda.bindings", None)
    cuda.find_device.cache_clear()
    with pytest.raises(ModelError, match=r"cuda-python's bindings, .*pip install 'cortex-recursive\[cuda\]'"):
        cuda.find_device()

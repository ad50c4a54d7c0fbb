"""CUDA text compiled by NVRTC: no warnings, no spills, and every kernel fits a multiprocessor."""

from __future__ import annotations

import os
from random import Random

import pytest

import cortex
from cortex import zoo
from cortex.codegen.gpu import nvrtc
from cortex.codegen.gpu.program import GpuProgram
from cortex.codegen.gpu.ptxas import KernelUse, kernel_uses, warnings_of
from cortex.codegen.gpu.target import CUDA_SHARED
from cortex.errors import InternalError, ModelError

PER_LEVEL = ("tree_fc", "mv_rnn", "dag_rnn")
LONG = os.environ.get("CORTEX_FUZZ") == "long"

LOG = """cortex.cu(3): warning #177-D: variable "x" was declared but never referenced
Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"
nvrtc: warning: Architectures prior to '<compute/sm>_75' are deprecated and may be removed in a future release
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_70'
ptxas info    : Function properties for first
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 20 registers, used 1 barriers, 16 bytes cumulative stack size, 1024 bytes smem, 384 bytes cmem[0]
ptxas info    : Compiling entry function 'second' for 'sm_70'
ptxas info    : Used 255 registers, 384 bytes cmem[0]
ptxas warning : Registers are spilled to local memory in function 'first'
"""


def test_what_the_assembler_says() -> None:
    first, second = kernel_uses(LOG)
    assert first == KernelUse("first", 20, 1024, 16, 8, 12)
    assert second == KernelUse("second", 255, 0, 0, 0, 0)
    most = 96 * 1024
    assert first.is_resident(1024, most) and second.is_resident(256, most) and not second.is_resident(512, most)
    assert first.is_resident(32, most, most - 1024) and not first.is_resident(32, most, most - 1023)


def test_warnings_are_those_of_the_program() -> None:
    first, second = warnings_of(LOG)
    assert "never referenced" in first and "spilled" in second


def test_text_that_does_not_compile() -> None:
    with pytest.raises(InternalError, match=r'(?s)NVRTC refuses .* for sm_80.*identifier "nonsense" is undefined'):
        nvrtc.compile_cuda('extern "C" __global__ void k(int *a) { *a = nonsense; }', "sm_80")


def test_an_architecture_that_is_not_known() -> None:
    with pytest.raises(ModelError, match=r"'sm_20' was asked for; NVRTC 1\d\.\d+ has .*sm_90"):
        nvrtc.compile_cuda("", "sm_20")


def test_without_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "_places", lambda: iter(()))
    nvrtc._library.cache_clear()
    try:
        assert not nvrtc.is_installed()
        with pytest.raises(ModelError, match=r"NVRTC is not installed: pip install 'cortex-recursive\[cuda\]'"):
            nvrtc.compile_cuda("", "sm_80")
    finally:
        nvrtc._library.cache_clear()


@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_models_of_the_zoo(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The persistent kernel for the oldest architecture and one of the others; kernels per level of a few models.

    The text is the same for all. The long run takes every architecture.
    """
    monkeypatch.setenv("CORTEX_VERIFY", "0")  # other tests verify the same programs
    entry = zoo.load(name)
    weights, examples = entry.weights(16, 20), entry.structures(Random(0), 2, 20)

    def kernels(persistent: bool) -> GpuProgram:
        target = cortex.gpu_target("cuda", groups=4, persistent=persistent)
        return cortex.compile(entry.model, weights, examples=examples, target=target).compiled.code.program

    one = kernels(persistent=True)
    assert len(one.kernels) == 1
    oldest, *others = nvrtc.ARCHITECTURES
    chosen = others if LONG else [others[list(zoo.ENTRIES).index(name) % len(others)]]
    for architecture in (oldest, *chosen):
        check(one, architecture)
    if name in PER_LEVEL or LONG:
        check(kernels(persistent=False), oldest)


@pytest.mark.parametrize(
    ("hidden", "architecture", "given"), [(48, "sm_70", 0), (64, "sm_80", 65536), (96, "sm_90", 147456)]
)
def test_more_shared_memory_than_a_kernel_may_declare(
    hidden: int, architecture: str, given: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4*H*H weights stay for the whole request: 36 KB are declared, 64 and 144 are given at the launch."""
    monkeypatch.setenv("CORTEX_VERIFY", "0")  # other tests verify the same programs
    entry = zoo.load("tree_lstm")
    target = cortex.gpu_target("cuda", architecture, groups=1)
    examples = entry.structures(Random(0), 2, 20)
    fast = cortex.compile(entry.model, entry.weights(hidden, 20), examples=examples, target=target)
    program = fast.compiled.code.program
    (kernel,) = program.kernels
    assert (kernel.local_bytes, kernel.launch_bytes) == (16 * hidden * hidden, given)
    assert ("extern __shared__ float group_memory[];" in program.source) is (given > 0)
    check(program, architecture)


def check(program: GpuProgram, architecture: str) -> None:
    code = nvrtc.compile_cuda(program.source, architecture)
    assert code.warnings == () and code.cubin
    assert {k.name for k in program.kernels} == {k.name for k in code.kernels}
    for kernel in program.kernels:
        x, y = kernel.work_items
        used = code.kernel(kernel.name)
        assert used.is_resident(x * y, 1024 * CUDA_SHARED[architecture], kernel.launch_bytes)
        assert used.spill_loads == 0
        assert used.shared + kernel.launch_bytes >= kernel.local_bytes

"""What the host can do, asked of LLVM once per process."""

from __future__ import annotations

import threading
from functools import cache

import llvmlite
import llvmlite.binding as llvm

from cortex.codegen.target import NEON_BROADCASTS, Target

_starting = threading.Lock()


@cache
def _start() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def _start_all() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def start_llvm(target: Target | None = None) -> None:
    """Initialize LLVM's native back end, and all others where `target` needs another one.

    Any thread may call this any number of times.
    """
    with _starting:
        _start()
        if target is not None and not llvm.get_process_triple().startswith(target.architecture):
            _start_all()


def llvm_version() -> str:
    """The LLVM that makes code, and what it is reached through."""
    return f"{llvm.llvm_version_info} {llvmlite.__version__}"


@cache
def host_target() -> Target:
    """The target that describes this machine."""
    start_llvm()
    features = llvm.get_host_cpu_features()
    broadcasts = 1
    if features.get("avx512f") and features.get("avx512vl") and features.get("avx512dq"):
        lanes, registers, has_fma = 16, 32, True
    elif features.get("avx2") and features.get("fma"):
        lanes, registers, has_fma = 8, 16, True
    elif features.get("neon"):
        lanes, registers, has_fma, broadcasts = 4, 32, True, NEON_BROADCASTS
    else:
        lanes, registers, has_fma = 4, 16, False
    cpu, triple = llvm.get_host_cpu_name(), llvm.get_process_triple()
    return Target(triple, cpu, features.flatten(), lanes, registers, has_fma, broadcasts)

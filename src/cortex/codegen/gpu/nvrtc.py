"""CUDA text to machine code, by NVIDIA's run-time compiler (NVRTC); no GPU and no driver are needed.

The only place that loads NVRTC: from the package `nvidia-cuda-nvrtc-cu12`, or where the system has it.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cortex.codegen.gpu.ptxas import KernelUse, kernel_uses, warnings_of
from cortex.errors import InternalError, ModelError

ARCHITECTURES = ("sm_70", "sm_80", "sm_90")
"""What tables and tests are made for: Volta, Ampere, Hopper. NVRTC 13 has dropped the first."""

OPTIONS = ("--std=c++14", "--ptxas-options=-v", "--ptxas-options=--warn-on-spills")
"""Multiplications and additions are fused where the text says so (`fmaf`), and nowhere else: see `compile_cuda`."""

_REMEDY = "pip install 'cortex-recursive[cuda]'"


@dataclass(frozen=True)
class CudaCode:
    """Machine code of some kernels for one architecture, what each of them uses, and what the compiler warned of."""

    architecture: str
    cubin: bytes
    kernels: tuple[KernelUse, ...]
    warnings: tuple[str, ...]

    def kernel(self, name: str) -> KernelUse:
        """What the kernel called `name` uses."""
        return next(k for k in self.kernels if k.name == name)


def is_installed() -> bool:
    """Is there an NVRTC to load?"""
    return next(_places(), None) is not None


def version() -> str:
    """The version of the compiler, as "12.9"."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "nvrtcVersion")
    return f"{major.value}.{minor.value}"


def architectures() -> tuple[str, ...]:
    """The architectures that this compiler has machine code for, as "sm_70"."""
    count = ctypes.c_int()
    _check(_library().nvrtcGetNumSupportedArchs(ctypes.byref(count)), "nvrtcGetNumSupportedArchs")
    numbers = (ctypes.c_int * count.value)()
    _check(_library().nvrtcGetSupportedArchs(numbers), "nvrtcGetSupportedArchs")
    return tuple(f"sm_{n}" for n in numbers)


def compile_cuda(source: str, architecture: str) -> CudaCode:
    """Machine code of CUDA text for an architecture, "sm_80". Text that does not compile is a bug of the printer.

    With `--fmad=false`, since ILIR says itself which products are fused with sums.
    """
    known = architectures()
    if architecture not in known:
        raise ModelError(f"CUDA code for {architecture!r} was asked for; NVRTC {version()} has {', '.join(known)}.")
    library = _library()
    program = ctypes.c_void_p()
    _check(
        library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"cortex.cu", 0, None, None),
        "nvrtcCreateProgram",
    )
    try:
        options = [o.encode() for o in (f"--gpu-architecture={architecture}", "--fmad=false", *OPTIONS)]
        status = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        log = _text(program, "ProgramLog").decode(errors="replace")
        if status:
            raise InternalError(f"NVRTC refuses the CUDA text of a program for {architecture}:\n{log.strip()}")
        return CudaCode(architecture, _text(program, "CUBIN"), kernel_uses(log), warnings_of(log))
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(program: ctypes.c_void_p, what: str) -> bytes:
    library, size = _library(), ctypes.c_size_t()
    _check(library[f"nvrtcGet{what}Size"](program, ctypes.byref(size)), f"nvrtcGet{what}Size")
    buffer = ctypes.create_string_buffer(size.value)
    _check(library[f"nvrtcGet{what}"](program, buffer), f"nvrtcGet{what}")
    return buffer.raw if what == "CUBIN" else buffer.value


def _check(status: int, function: str) -> None:
    if status:
        text = _library().nvrtcGetErrorString
        text.restype = ctypes.c_char_p
        raise InternalError(f"{function}: {text(status).decode()}")


@cache
def _library() -> ctypes.CDLL:
    problems = []
    for place in _places():
        try:
            library = ctypes.CDLL(str(place))
        except OSError as error:
            problems.append(str(error))
            continue
        library.nvrtcCreateProgram.argtypes = [
            *(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p),
            *(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p),
        ]
        return library
    found = f" ({'; '.join(problems)})" if problems else ""
    raise ModelError(f"CUDA text was to be compiled, and NVRTC is not installed{found}: {_REMEDY}.")


def _places() -> Iterator[Path | str]:
    """Libraries to try: of the packages `nvidia-cuda-nvrtc*`, then of the system."""
    for package in ("nvidia.cuda_nvrtc", "nvidia.cu13"):
        try:
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:  # there is no package `nvidia`
            continue
        for folder in spec.submodule_search_locations or () if spec else ():
            yield from sorted(f for f in Path(folder, "lib").glob("libnvrtc.so.*") if ".alt." not in f.name)
    system = ctypes.util.find_library("nvrtc")
    if system is not None:
        yield system

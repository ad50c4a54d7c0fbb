"""The machine that code is generated for, as far as the compiler needs to know it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Target:
    """An instruction set: what LLVM is told (`triple`, `cpu`, `features`) and what schedules depend on.

    `lanes` is the number of f32 in a vector register, `registers` the number of vector registers. `features` is
    LLVM's comma-separated list of `+name` and `-name`.
    """

    triple: str
    cpu: str
    features: str
    lanes: int
    registers: int
    has_fma: bool

    def has(self, feature: str) -> bool:
        """Whether `feature` (LLVM's name: "avx512f") is switched on."""
        return f"+{feature}" in self.features.split(",")

    def runs_on(self, host: Target) -> bool:
        """Does code for this machine run on `host`? It does where that has all its features."""
        wanted = {feature for feature in self.features.split(",") if feature.startswith("+")}
        if self.cpu.startswith("x86-64-v"):
            wanted |= _IMPLIED
        return self.triple == host.triple and wanted <= set(host.features.split(","))

    @staticmethod
    def host() -> Target:
        """The machine this process runs on, with everything it can do."""
        from cortex.codegen.llvm.host import host_target  # LLVM is loaded only when it is asked

        return host_target()

    @staticmethod
    def x86(level: Literal["avx512", "avx2", "sse2"]) -> Target:
        """A generic x86-64 machine of the given level, whatever the host is."""
        cpu, features, lanes, registers, has_fma = _X86[level]
        return Target("x86_64-unknown-linux-gnu", cpu, features, lanes, registers, has_fma)


_IMPLIED = frozenset({"+popcnt", "+lzcnt", "+movbe", "+xsave", "+cx16", "+sahf"})
"""What generic machines with AVX2 have beside the features that are listed here, and LLVM uses."""

_AVX2 = "+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+avx,+avx2,+fma,+bmi,+bmi2,+f16c"
_AVX512 = _AVX2 + ",+avx512f,+avx512dq,+avx512bw,+avx512vl,+avx512cd"

_X86: dict[str, tuple[str, str, int, int, bool]] = {
    "avx512": ("x86-64-v4", _AVX512, 16, 32, True),
    "avx2": ("x86-64-v3", _AVX2, 8, 16, True),
    "sse2": ("x86-64", "+sse,+sse2", 4, 16, False),
}

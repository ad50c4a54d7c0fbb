"""The machine that code is generated for, as far as the compiler needs to know it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cortex.codegen.cpu_flags import surely_runs
from cortex.codegen.gpu.program import DIALECTS
from cortex.errors import ModelError


@dataclass(frozen=True)
class Target:
    """An instruction set: what LLVM is told (`triple`, `cpu`, `features`) and what schedules depend on.

    `lanes` is the number of f32 in a vector register, `registers` the number of vector registers, `broadcasts` how many
    of them a register tile needs for elements that all lanes are multiplied by. `features` is LLVM's comma-separated
    list of `+name` and `-name`.
    """

    triple: str
    cpu: str
    features: str
    lanes: int
    registers: int
    has_fma: bool
    broadcasts: int = 1

    def __str__(self) -> str:
        return f"{self.triple} ({self.cpu})"

    def has(self, feature: str) -> bool:
        """Whether `feature` (LLVM's name: "avx512f") is switched on."""
        return f"+{feature}" in self.features.split(",")

    @property
    def architecture(self) -> str:
        """The first part of the triple: "x86_64", "aarch64"."""
        return self.triple.split("-", 1)[0]

    def runs_here(self) -> bool:
        """Can this process run such code? It can if its machine has all features that are switched on."""
        if surely_runs(self.architecture, self.features):
            return True
        host = Target.host()
        wanted = {feature for feature in self.features.split(",") if feature.startswith("+")}
        return self.architecture == host.architecture and wanted <= set(host.features.split(","))

    @staticmethod
    def host() -> Target:
        """The machine this process runs on, with everything it can do."""
        from cortex.codegen.llvm.host import host_target  # LLVM is loaded only when it is asked

        return host_target()

    @staticmethod
    def x86(level: Literal["avx512", "avx2", "sse2"]) -> Target:
        """A generic x86-64 machine of the given level, whatever the host is."""
        return CPUS["x86-64-linux-gnu"][_LEVELS[level]]

    @staticmethod
    def named(name: str, cpu: str | None = None) -> Target:
        """The target that is called `name` ("aarch64-linux-gnu") with the given processor.

        "native" is the processor of this machine, and the default where the architecture is; else the default is the
        first that `CPUS` has.
        """
        known = CPUS.get(name)
        if known is None:
            raise ModelError(f"target={name!r}: there is no such target; there are {', '.join((*CPUS, *DIALECTS))}.")
        first = next(iter(known.values()))
        host = Target.host()
        is_here = host.architecture == first.architecture
        if cpu is None:
            return host if is_here else first
        if cpu == NATIVE and is_here:
            return host
        if cpu == NATIVE:
            raise ModelError(
                f"target={name!r}, cpu='native': this machine is {host.architecture}; name the processor: "
                f"{', '.join(known)}."
            )
        if cpu not in known:
            raise ModelError(f"target={name!r}, cpu={cpu!r}: give one of {', '.join((*known, NATIVE))}.")
        return known[cpu]


NATIVE = "native"

NEON_BROADCASTS = 3
"""Multiply-adds by element take the element from a register, where x86 takes it from memory; LLVM loads a few ahead."""

_AVX2 = "+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+avx,+avx2,+fma,+bmi,+bmi2,+f16c"
_AVX512 = _AVX2 + ",+avx512f,+avx512dq,+avx512bw,+avx512vl,+avx512cd"
_X86, _ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
_LEVELS = {"avx512": "x86-64-v4", "avx2": "x86-64-v3", "sse2": "x86-64"}

CPUS: dict[str, dict[str, Target]] = {
    "x86-64-linux-gnu": {
        "x86-64-v3": Target(_X86, "x86-64-v3", _AVX2, 8, 16, True),
        "x86-64-v4": Target(_X86, "x86-64-v4", _AVX512, 16, 32, True),
        "x86-64": Target(_X86, "x86-64", "+sse,+sse2", 4, 16, False),
    },
    # NEON has 32 registers of 128 bits on all of them; the names tell LLVM what to expect of latencies.
    "aarch64-linux-gnu": {
        cpu: Target(_ARM, cpu, "+neon", 4, 32, True, NEON_BROADCASTS)
        for cpu in ("neoverse-n1", "neoverse-v2", "apple-m1")
    },
}
"""The processors that a target may be asked for with, by name."""

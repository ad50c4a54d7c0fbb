"""Has this machine the features that code was made for? Told by Linux's own list of flags, without LLVM.

`surely_runs` says yes only where every feature is known to be there. No means that LLVM has to be asked.
"""

from __future__ import annotations

import platform
from functools import cache

NAMES = {
    "64bit": "lm", "bmi": "bmi1", "crc32": "sse4_2", "lzcnt": "abm", "pclmul": "pclmulqdq", "prfchw": "3dnowprefetch",
    "rdrnd": "rdrand", "sahf": "lahf_lm", "sha": "sha_ni", "sse3": "pni", "sse4.1": "sse4_1", "sse4.2": "sse4_2",
    "avx512bf16": "avx512_bf16", "avx512bitalg": "avx512_bitalg", "avx512fp16": "avx512_fp16",
    "avx512vbmi2": "avx512_vbmi2", "avx512vnni": "avx512_vnni", "avx512vp2intersect": "avx512_vp2intersect",
    "avx512vpopcntdq": "avx512_vpopcntdq", "avxvnni": "avx_vnni", "amx-bf16": "amx_bf16", "amx-int8": "amx_int8",
    "amx-tile": "amx_tile", "cx16": "cx16", "cx8": "cx8",
}  # fmt: skip
"""What Linux calls the features of LLVM that it has another name for."""
OF_SYSTEMS = frozenset(
    {
        "shstk",
        "invpcid",
        "wbnoinvd",
        "mwaitx",
        "ptwrite",
        "pconfig",
        "uintr",
        "hreset",
        "enqcmd",
        "serialize",
        "tsxldtrk",
    }
    | {"pku", "clzero", "rdpru", "sgx", "kl", "widekl", "waitpkg", "cldemote", "lwp", "xsave", "xsavec", "xsaveopt"}
    | {"xsaves", "fsgsbase", "evex512", "rdpid"}
)
"""Features for operating systems and for writing to memory in special ways, which no code of Cortex has a use for."""


@cache
def flags() -> frozenset[str]:
    """The flags of the first processor; none where the system does not tell them in Linux's way."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("flags"):
                    return frozenset(line.partition(":")[2].split())
    except OSError:
        pass
    return frozenset()


def surely_runs(architecture: str, features: str) -> bool:
    """Is every feature that is switched on in LLVM's list known to be there?"""
    if architecture != "x86_64" or platform.machine() != architecture:
        return False
    wanted = {f[1:] for f in features.split(",") if f.startswith("+")} - OF_SYSTEMS
    return all(NAMES.get(f, f) in flags() for f in wanted)

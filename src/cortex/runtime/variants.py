"""The programs of one model that a file has: for several machines and numbers of threads."""

from __future__ import annotations

from collections.abc import Sequence

from cortex.codegen.gpu.device_code import DeviceCode
from cortex.codegen.target import CPUS, NATIVE, Target
from cortex.errors import ModelError
from cortex.ra import ir as ra
from cortex.runtime.part import BuildLike, Built
from cortex.runtime.threads import checked_threads


def variants(
    m: ra.Model,
    used: Built,
    build_like: BuildLike | None,
    cpus: Sequence[str] | str | None,
    threads: Sequence[int] | int | None,
) -> tuple[Built, ...]:
    """The programs to save where one is `used`: that one, if nothing else is asked for."""
    if cpus is None and threads is None:
        return (used,)
    if build_like is None or isinstance(used.compiled.code, DeviceCode):
        raise ModelError(
            f"save(cpus={cpus!r}, threads={threads!r}): '{m.name}' is compiled for a device, which compiles it again; "
            "leave them out."
        )
    names = (cpus,) if isinstance(cpus, str) else cpus
    counts = (threads,) if isinstance(threads, int) else threads
    targets = [used.compiled.code.target] if names is None else [target_of_cpu(name) for name in names]
    numbers = [used.threads] if counts is None else [checked_threads(n) for n in counts]
    if not targets or not numbers:
        raise ModelError(f"save(cpus={cpus!r}, threads={threads!r}): give at least one of each.")
    pairs = dict.fromkeys((target, n) for target in targets for n in numbers)
    known = {(used.compiled.code.target, used.threads): used.compiled}
    made = {pair: known.get(pair) or build_like(m, pair[1], pair[0], used.compiled) for pair in pairs}
    return tuple(Built(compiled, n) for (_, n), compiled in made.items())


def target_of_cpu(name: str) -> Target:
    """The machine with a processor of this name."""
    if name == NATIVE:
        return Target.host()
    for known in CPUS.values():
        if name in known:
            return known[name]
    names = ", ".join([NATIVE, *(cpu for known in CPUS.values() for cpu in known)])
    raise ModelError(f"cpus=[{name!r}]: there is no such processor; there are {names}.")

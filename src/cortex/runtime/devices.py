"""The devices of this machine that kernels can run on, by the names of targets: "opencl", "cuda"."""

from __future__ import annotations

from cortex.codegen.gpu.program import DIALECTS
from cortex.codegen.gpu.target import CUDA_DEVICES, CUDA_SHARED, GpuTarget
from cortex.errors import ModelError
from cortex.runtime.device import Device

ITEMS = (32, 8)
"""Of a work-group of a GPU, where somebody else says how many work-groups there are."""


def gpu_target(
    name: str, device: str | None = None, *, persistent: bool | None = None, groups: int | None = None
) -> GpuTarget:
    """A target for `cortex.compile`: "opencl" or "cuda", with kernels as they are wanted.

    `device` is part of the name of an OpenCL device, or an architecture of CUDA ("sm_80"); by default what is here,
    and for CUDA, where no GPU is, "sm_70". With `persistent`, a request is one kernel that runs to its end with the
    weights in local memory; without, it is one kernel per level. The default is persistent where all work-groups are
    sure to be resident: on processors (PoCL) and for CUDA. `groups` is the number of work-groups; by default as many
    as are predicted to be fastest, on a processor one for each core but one.
    """
    if groups is not None and groups < 1:
        raise ModelError(f"gpu_target(groups={groups}): a kernel has at least one work-group.")
    match name:
        case "opencl":
            return _opencl_target(device, persistent, groups)
        case "cuda":
            return _cuda_target(device, persistent, groups)
        case _:
            raise ModelError(f"gpu_target({name!r}): there are {', '.join(DIALECTS)}.")


def device_of(target: GpuTarget) -> Device:
    """The device that a target is for; a ModelError that says what is missing where it is not here."""
    if target.dialect == "opencl":
        from cortex.runtime.opencl import find_device

        return find_device(target.device)
    from cortex.runtime.cuda import find_device as find_cuda

    found = find_cuda()
    if found.architecture != target.device:
        raise ModelError(f"The GPU here is {found.name} ({found.architecture}).")
    return found


def _opencl_target(device: str | None, persistent: bool | None, groups: int | None) -> GpuTarget:
    from cortex.runtime.opencl import find_device

    found = find_device(device)
    wanted = found.is_processor if persistent is None else persistent
    units = found.compute_units
    if wanted and groups is not None and groups > units and found.is_processor:
        raise ModelError(
            f"gpu_target(groups={groups}): {found.name} runs {units} work-groups at once, and those of a persistent "
            "kernel wait for each other; give no more, or persistent=False."
        )
    items = (8, 4) if found.is_processor else None if groups is None else ITEMS
    # A group that waits for others spins. Where another program has the core of one of them, all wait for it.
    default = max(1, units - 1) if found.is_processor else units
    return GpuTarget("opencl", found.name, groups or default, found.local_bytes, wanted, items)


def _cuda_target(device: str | None, persistent: bool | None, groups: int | None) -> GpuTarget:
    from cortex.runtime.cuda import find_device

    wanted = persistent is None or persistent
    items = None if groups is None else ITEMS
    if device is not None and device not in CUDA_DEVICES:
        raise ModelError(f"target='cuda', device {device!r}: give one of {', '.join(CUDA_DEVICES)}.")
    try:
        found = find_device()
    except ModelError:
        found = None
    if found is not None and device in (None, found.architecture):
        return GpuTarget("cuda", found.architecture, groups or found.multiprocessors, found.local_bytes, wanted, items)
    architecture = device or next(iter(CUDA_DEVICES))
    shared = 1024 * CUDA_SHARED[architecture]
    return GpuTarget("cuda", architecture, groups or CUDA_DEVICES[architecture], shared, wanted, items)

"""The device that kernels are generated for, as far as the compiler needs to know it."""

from __future__ import annotations

from dataclasses import dataclass

from cortex.codegen.gpu.program import DialectName
from cortex.schedule.gpu_default import Grid

CUDA_DEVICES = {"sm_70": 80, "sm_75": 68, "sm_80": 108, "sm_86": 84, "sm_89": 142, "sm_90": 132}
"""Multiprocessors of the largest GPU of each architecture: what kernels are made for where there is no GPU to ask."""

CUDA_SHARED = {"sm_70": 96, "sm_75": 64, "sm_80": 163, "sm_86": 99, "sm_89": 99, "sm_90": 227}
"""KB of shared memory that a block may be given at its launch, by architecture, as NVIDIA documents it."""


@dataclass(frozen=True)
class GpuTarget:
    """A device: how its kernels are written, and how they are run.

    `groups` are the work-groups that a kernel is launched with. A `persistent` program is one kernel, whose work-groups
    wait for each other, so all of them must be resident at once; others are one kernel per level. `local_bytes` is the
    local memory of a work-group, `work_items` are its items along two axes; where they are None, the compiler settles
    both, with at most `groups` work-groups. `device` is the name of an OpenCL device or an architecture of CUDA, as
    "sm_80".
    """

    dialect: DialectName
    device: str
    groups: int
    local_bytes: int
    persistent: bool
    work_items: tuple[int, int] | None = None

    @property
    def grid(self) -> Grid:
        """What schedules must know of it, once that is settled."""
        assert self.work_items is not None
        return Grid(self.groups, self.work_items, self.resident_bytes)

    @property
    def resident_bytes(self) -> int:
        """Local memory for weights: only a kernel that runs to the end of a request keeps them."""
        return self.local_bytes if self.persistent else 0

    def __str__(self) -> str:
        return f"{self.dialect} ({self.device})"

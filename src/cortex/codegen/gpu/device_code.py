"""Kernels of a model, and the device that they were made for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from cortex.codegen.gpu.program import GpuProgram
from cortex.codegen.gpu.target import GpuTarget


@dataclass(frozen=True)
class DeviceCode:
    """The text of kernels, which the device's own compiler translates when the model is loaded."""

    program: GpuProgram
    target: GpuTarget

    @cached_property
    def text(self) -> str:
        """The kernels in OpenCL C or CUDA C."""
        return self.program.source

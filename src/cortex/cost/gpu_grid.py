"""How many work-groups of which shape a program is given on a GPU: what is predicted to be fastest."""

from __future__ import annotations

from collections.abc import Sequence

from cortex.cost.gpu import GpuPredictor
from cortex.cost.gpu_machine import GpuMachine
from cortex.ilir.ir import Func
from cortex.ir.step import Step, apply
from cortex.lower.linear_form import LinearForm
from cortex.schedule.gpu_default import Grid, gpu_schedule

ITEMS = 256
"""Of a work-group: enough to hide latencies, and registers for all of them are to be had."""

WIDTHS = (32, 16, 8, 4)
"""Items along the columns. With fewer columns to a work-group, more of them share the columns of a model."""


def choose_grid(
    f: Func, requests: Sequence[LinearForm], machine: GpuMachine, groups: int, local_bytes: int, persistent: bool
) -> Grid:
    """The grid that is predicted to be fastest for some requests.

    Of at most `groups` work-groups: all of them, or the next power of two, which divides the columns of most models.
    """
    found: list[tuple[float, Grid]] = []
    for count in dict.fromkeys((groups, 1 << (groups.bit_length() - 1))):
        scheduled: dict[tuple[Step[Func], ...], Func] = {}
        for width in WIDTHS:
            grid = Grid(count, (width, ITEMS // width), local_bytes)
            steps = gpu_schedule(f, grid)
            if steps not in scheduled:
                scheduled[steps] = apply(f, steps)
            predict = GpuPredictor(scheduled[steps], grid, machine, persistent)
            found.append((sum(predict(form).us for form in requests), grid))
    return min(found, key=lambda each: each[0])[1]

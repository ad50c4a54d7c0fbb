"""A GPU as its cost model sees it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GpuMachine:
    """Multiprocessors, their rates and latencies, and what it takes to start and to wait.

    Latencies are in cycles of `clock` (GHz); a work-item has `in_flight` loads under way at once. `l1_lanes` loads and
    `lanes` operations are done per cycle and multiprocessor. Bandwidths are in GB/s, times in microseconds: `call` from
    the host to the first kernel and back, `launch` each kernel, `barrier` all work-groups waiting for each other.
    """

    name: str
    multiprocessors: int
    clock: float
    lanes: int
    l1_lanes: int
    local_bytes: int
    l2_bytes: int
    l2_bandwidth: float
    bandwidth: float
    fma_latency: int
    local_latency: int
    l1_latency: int
    l2_latency: int
    in_flight: int
    call: float
    launch: float
    barrier: float

    @staticmethod
    def v100_like() -> GpuMachine:
        """A description near NVIDIA's V100: nobody has measured it for this project.

        Rates and latencies as Jia et al. 2018 (arXiv:1804.06826) report them; launches and barriers of the order that
        Zhang et al. 2020 (arXiv:2004.05371) report; `in_flight` is judged.
        """
        return GpuMachine(
            name="V100-like",
            multiprocessors=80,
            clock=1.38,
            lanes=64,
            l1_lanes=32,
            local_bytes=96 * 1024,
            l2_bytes=6 << 20,
            l2_bandwidth=2155.0,
            bandwidth=750.0,
            fma_latency=4,
            local_latency=19,
            l1_latency=28,
            l2_latency=193,
            in_flight=8,
            call=10.0,
            launch=2.5,
            barrier=1.5,
        )

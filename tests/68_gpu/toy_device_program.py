"""A program of kernels written by hand, for tests of device layers: a height is one more than the children's greatest.

persistent   one kernel, whose groups wait for each other after every level
per level    one kernel for each level
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cortex.codegen.gpu.program import Argument, GpuProgram, Host, HostFor, HostIf, Kernel, Launch
from cortex.frontend.model import model
from cortex.frontend.trace import Trace
from cortex.frontend.weights import Weights
from cortex.ilir.ir import Buffer, IndexFunction, Scope
from cortex.ir.scalar import Binary, Index, Int, Var
from cortex.runtime.device_program import DeviceProgram
from cortex.runtime.linearize import linearizer


@dataclass(eq=False)
class Tree:
    """A node."""

    left: Tree | None = None
    right: Tree | None = None
    own: float = 0.0


NODES, GROUPS = Var("num_nodes"), Var("num_groups")
WIDTH = 3

LEVEL = """
void level(__global float* h, __global const float* step, __global const float* own, __global const int* left,
           __global const int* right, int start, int len) {
  int groups = get_num_groups(0), group = get_group_id(0);
  for (int n = start + len * group / groups; n < start + len * (group + 1) / groups; ++n)
    for (int j = get_local_id(0); j < 3; j += get_local_size(0)) {
      float best = 0.0f;
      if (left[n] >= 0) best = fmax(best, h[left[n] * 4 + j] + step[j]);
      if (right[n] >= 0) best = fmax(best, h[right[n] * 4 + j] + step[j]);
      h[n * 4 + j] = best + own[n];
    }
}
"""
PARAMETERS = """__global float* h, __global const float* step, __global const float* own, __global const int* left,
    __global const int* right, __global const int* group_start, __global const int* group_len"""

PERSISTENT = (
    LEVEL
    + f"""
void grid_barrier(volatile __global uint* words) {{
  barrier(CLK_GLOBAL_MEM_FENCE);
  if (get_local_id(0) == 0) {{
    uint before = atomic_add(&words[1], 0);
    if (atomic_inc(&words[0]) == get_num_groups(0) - 1) {{
      atomic_xchg(&words[0], 0);
      atomic_inc(&words[1]);
    }} else {{
      while (atomic_add(&words[1], 0) == before) {{ }}
    }}
  }}
  barrier(CLK_GLOBAL_MEM_FENCE);
}}

__kernel void heights({PARAMETERS}, int num_groups, volatile __global uint* words) {{
  for (int g = 0; g < num_groups; ++g) {{
    level(h, step, own, left, right, group_start[g], group_len[g]);
    grid_barrier(words);
  }}
}}
"""
)

PER_LEVEL = (
    LEVEL
    + f"""
__kernel void heights({PARAMETERS}, int g) {{
  level(h, step, own, left, right, group_start[g], group_len[g]);
}}
"""
)


@model
def heights(node: Any, w: Any) -> Any:
    """What the kernels compute, for the linearizer; the arithmetic is theirs."""
    own = node.own * w.step
    return own if node.left is None else heights(node.left) + heights(node.right) + own


def toy_program(persistent: bool, groups: int = 1, source: str | None = None) -> GpuProgram:
    arrays = [
        *(Argument("buffer", name) for name in ("state_out", "step", "field_own")),
        *(Argument("index", name) for name in ("child_left", "child_right", "group_start", "group_len")),
    ]
    last = [Argument("size", "num_groups"), Argument("barrier", "")] if persistent else [Argument("loop", "g")]
    kernel = Kernel("heights", (*arrays, *last), 0, (4, 1))
    nonempty = HostIf(Binary("gt", Index("group_len", (Var("g"),)), Int(0)), (Launch("heights"),))
    host: Host = Launch("heights") if persistent else HostFor("g", Int(0), GROUPS, (nonempty,))
    return GpuProgram(
        "heights",
        "opencl",
        source or (PERSISTENT if persistent else PER_LEVEL),
        (kernel,),
        (host,),
        groups,
        persistent,
        ("num_nodes", "num_groups"),
        tuple(
            IndexFunction(name, extent)
            for name, extent in (
                *(("child_left", NODES), ("child_right", NODES)),
                *(("group_start", GROUPS), ("group_len", GROUPS)),
            )
        ),
        (
            Buffer("state_out", "f32", (NODES, Int(WIDTH)), Scope.STATE, align=4),
            Buffer("step", "f32", (Int(WIDTH),), Scope.PARAM),
            Buffer("field_own", "f32", (NODES,), Scope.FIELD),
        ),
    )


def on_device(device: Any, program: GpuProgram, step: list[float]) -> DeviceProgram:
    weights = np.array(step, np.float32)
    trace = Trace(heights, Weights({"step": weights}))
    trace.explore()
    trace.see([tree(1)])
    sources = {
        "state_out": ("state", "out", (WIDTH,), 4),
        "step": ("weight", weights),
        "field_own": ("field", "own"),
    }
    return DeviceProgram(device, program, linearizer(trace.model(), trace.accessors), sources)


def tree(height: int, own: float = 0.0) -> Tree:
    """A tree with one long spine, whose nodes have `own`."""
    node = Tree(own=own)
    for _ in range(height):
        node = Tree(left=node, right=Tree(own=own), own=own)
    return node


def expected(height: int, step: list[float], own: float = 0.0) -> Any:
    return height * np.array(step, np.float32) + (height + 1) * np.float32(own)

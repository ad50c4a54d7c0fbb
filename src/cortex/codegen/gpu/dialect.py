"""What OpenCL C and CUDA C call the same things."""

from __future__ import annotations

from dataclasses import dataclass, field

from cortex.codegen.gpu.program import DialectName


@dataclass(frozen=True)
class Dialect:
    """The words of a language that the printer uses.

    `memory` is what stands before the type of a pointer to device memory, and `never_aliased` after the star of one to
    memory that nobody writes. `functions` maps ILIR's functions of one precision to the language's names. A kernel may
    declare `most_declared` bytes of local memory, if there is a limit; where it uses more, its launch gives it all.
    """

    name: DialectName
    first_lines: tuple[str, ...]
    kernel: str
    device_function: str
    memory: str
    never_aliased: str
    local: str
    item_barrier: str
    wide_integer: str
    float_of_bits: str
    barrier_argument: str
    functions: dict[str, str] = field(hash=False)
    grid_barrier: tuple[str, ...] = ()
    most_declared: int | None = None

    def pointer(self, dtype: str, name: str, is_written: bool) -> str:
        """The declaration of an argument that points to device memory."""
        if is_written:
            return f"{self.memory}{dtype} *{name}"
        return f"{self.memory}const {dtype} *{self.never_aliased} {name}"


OPENCL = Dialect(
    name="opencl",
    first_lines=(
        "#pragma OPENCL FP_CONTRACT OFF",
        "#define GROUP ((int)get_group_id(0))",
        "#define ITEM_X ((int)get_local_id(0))",
        "#define ITEM_Y ((int)get_local_id(1))",
    ),
    kernel="__kernel __attribute__((reqd_work_group_size({x}, {y}, 1))) void",
    device_function="static inline",
    memory="__global ",
    never_aliased="restrict",
    local="__local",
    item_barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    wide_integer="long",
    float_of_bits="as_float",
    barrier_argument="volatile __global uint *arrived",
    functions={"fma": "fma", "abs": "fabs", "sqrt": "sqrt", "round": "rint", "log": "log", "copysign": "copysign"},
    # The fences of OpenCL C 1.2 are among a work-group's items; what orders memory among work-groups are the atomics,
    # which are sequentially consistent where the language has that notion.
    grid_barrier=(
        "static void grid_barrier(volatile __global uint *arrived)",
        "{",
        "    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
        "    if (ITEM_X == 0 && ITEM_Y == 0) {",
        "        const uint epoch = atomic_add(&arrived[1], 0u);",
        "        mem_fence(CLK_GLOBAL_MEM_FENCE);",
        "        if (atomic_inc(&arrived[0]) == GROUPS - 1) {",
        "            atomic_xchg(&arrived[0], 0u);",
        "            mem_fence(CLK_GLOBAL_MEM_FENCE);",
        "            atomic_inc(&arrived[1]);",
        "        } else {",
        "            while (atomic_add(&arrived[1], 0u) == epoch) {",
        "            }",
        "        }",
        "        mem_fence(CLK_GLOBAL_MEM_FENCE);",
        "    }",
        "    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
        "}",
    ),
)

CUDA = Dialect(
    name="cuda",
    first_lines=(
        "#define GROUP ((int)blockIdx.x)",
        "#define ITEM_X ((int)threadIdx.x)",
        "#define ITEM_Y ((int)threadIdx.y)",
    ),
    kernel='extern "C" __global__ __launch_bounds__({items}, 1) void',
    device_function="static __device__ __forceinline__",
    memory="",
    never_aliased="__restrict__",
    local="__shared__",
    item_barrier="__syncthreads();",
    wide_integer="long long",
    float_of_bits="__uint_as_float",
    barrier_argument="unsigned int *arrived",
    functions={
        "fma": "fmaf", "abs": "fabsf", "sqrt": "sqrtf", "round": "rintf", "log": "logf", "copysign": "copysignf",
    },
    grid_barrier=(
        "static __device__ void grid_barrier(unsigned int *arrived)",
        "{",
        "    __syncthreads();",
        "    if (ITEM_X == 0 && ITEM_Y == 0) {",
        "        volatile unsigned int *const now = &arrived[1];",
        "        const unsigned int epoch = *now;",
        "        __threadfence();",
        "        if (atomicAdd(&arrived[0], 1u) == GROUPS - 1) {",
        "            atomicExch(&arrived[0], 0u);",
        "            __threadfence();",
        "            atomicAdd(&arrived[1], 1u);",
        "        } else {",
        "            while (*now == epoch) {",
        "            }",
        "        }",
        "        __threadfence();",
        "    }",
        "    __syncthreads();",
        "}",
    ),
    most_declared=48 * 1024,
)  # fmt: skip

DIALECTS: dict[str, Dialect] = {"opencl": OPENCL, "cuda": CUDA}

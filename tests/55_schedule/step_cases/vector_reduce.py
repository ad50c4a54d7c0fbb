"""VectorReduce: partial sums, combined in a fixed order."""

from __future__ import annotations

from step_cases.cases import Cases

from cortex.schedule.vector_reduce import VectorReduce

LEGAL: Cases = {
    "vector_reduce": ((), VectorReduce("p_k", 4)),
}

REFUSED: Cases = {
    "vector_reduce_short": ((), VectorReduce("p_k", 8)),
    "vector_reduce_no_sum": ((), VectorReduce("b_j", 8)),
}

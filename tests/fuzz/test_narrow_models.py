"""Random models with narrow weights: compiled code computes what the interpreter of ILIR does, at every node.

The two round their inputs alike but for those that lie between two narrow numbers to the last bit of an f32: a number
that goes the other way is off by one place of its type, which is what is allowed for.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from breadth import LONG, pairs  # noqa: E402
from random_cases import batches  # noqa: E402
from random_models import compilable, random_model  # noqa: E402
from random_structures import Node  # noqa: E402

import cortex  # noqa: E402
from cortex.codegen.target import Target  # noqa: E402
from cortex.ilir import interp as ilir_interp  # noqa: E402

MODELS = 6 if LONG else 1
SIZES = {5: 1, 16: 2, 33: 1}
ALLOWED = {"bf16": 1e-2, "fp16": 1e-4, "int16": 2e-3, "int8": 2e-3}
TARGETS = {"host": None, "without_bf16": Target.x86("avx512"), "avx2": Target.x86("avx2"), "sse2": Target.x86("sse2")}


def can_run(target: Target | None) -> bool:
    host = Target.host()
    return target is None or all(host.has(f.removeprefix("+")) for f in target.features.split(","))


def reachable(batch: list[Node]) -> set[Node]:
    found: set[Node] = set()
    ahead = list(batch)
    while ahead:
        node = ahead.pop()
        if node not in found:
            found.add(node)
            ahead += [n for n in (*node.children, node.left, node.right, node.prev) if n is not None]
    return found


@pytest.mark.parametrize(
    ("dtype", "target"), pairs(ALLOWED, [name for name, t in TARGETS.items() if can_run(t)], each=2)
)
def test_compiled_code_agrees_with_the_interpreter(dtype: str, target: str) -> None:
    compared = 0
    for seed in count(300 + 20 * (4 * list(ALLOWED).index(dtype) + list(TARGETS).index(target))):
        if compared == MODELS:
            return
        m = random_model(seed, SIZES)
        batch = batches(m, 1)[0][:2]
        if len(reachable(batch)) > 16:  # the interpreter is slow
            continue
        weights: Any = None if m.closure else m.arrays(0.5)
        fast = cortex.compile(
            compilable(m), weights, examples=batch, weights_dtype=dtype, target=TARGETS[target], table_bytes=0
        )
        form = fast.linearize(batch)
        buffers = dict(fast.weights) | {f"field_{name}": value for name, value in form.fields.items()}
        states = ilir_interp.run(fast.compiled.func, form.sizes, form.arrays, buffers).buffers
        out = fast(batch)
        for s in fast.traced.states:
            want = states[f"state_{s.name}"][form.arrays["order"]]
            np.testing.assert_allclose(
                out.nodes[s.name], want, rtol=ALLOWED[dtype], atol=ALLOWED[dtype], err_msg=m.family
            )
        compared += 1

"""Random models: the package and the Python path, to the bit."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from breadth import LONG
from c_program import Package, forest_of

import cortex

sys.path.append(str(Path(__file__).parent.parent / "fuzz"))
from random_models import compilable, random_model
from random_structures import random_batch


@pytest.mark.parametrize("seed", range(6 if LONG else 3))
def test_same_bits(seed: int, exported: Callable[..., tuple[Package, Any]]) -> None:
    m = random_model(seed)
    batches = [random_batch(1000 * seed + i, m.family, m.vector) for i in range(4)]
    every = [root for batch in batches for root in batch]
    threads = 1 + seed % 2
    fast = cortex.compile(compilable(m), None if m.closure else m.arrays(1.0), examples=every, threads=threads)
    package, program = exported(fast, f"random_{seed}")
    answers, printed = package.run(program, [forest_of(fast, batch) for batch in batches], threads)
    for batch, answer in zip(batches, answers, strict=True):
        want = fast(batch)
        assert answer.status == 0, printed
        for name, rows in answer.nodes.items():
            assert rows.tobytes() == want.nodes[name].tobytes()
            assert answer.roots[name].tobytes() == want[name].tobytes()

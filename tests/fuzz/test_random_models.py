"""Random models on random structures: PyTorch = ra.interp = ilir.interp = compiled, at every node.

`python -m pytest tests/fuzz` tries a minute's worth; `-s --models 500 --structures 20` is the long run, with
progress; `--seed 17` tries one model and prints a smaller one if it fails.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from breadth import LONG  # noqa: E402
from hypothesis import Phase, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from random_cases import Totals, check_seed  # noqa: E402

torch.set_num_threads(1)
HYPOTHESIS_SEEDS = 1_000_000
"""Models of the property below have seeds from here on, so that they are others than those of the plain run."""


def test_random_models_agree(options: dict[str, Any]) -> None:
    models, structures, first, chosen, most = options.values()
    seeds = range(first, first + models) if chosen is None else [chosen]
    totals = Totals()
    failures: list[str] = []
    start = time.monotonic()
    for number, seed in enumerate(seeds, 1):
        try:
            check_seed(seed, structures, most, totals, smaller=chosen is not None)
        except Exception as error:
            failures.append(f"seed {seed}: {type(error).__name__}: {error}\n" + "\n".join(error.__notes__))
            print(failures[-1], flush=True)
        if number % 25 == 0:
            seconds = time.monotonic() - start
            print(f"{number} models, {seconds:.0f} s, {len(failures)} failed: {totals.text()}", flush=True)
    print(totals.text())
    assert not failures, f"{len(failures)} of {len(seeds)} models failed\n\n" + "\n\n".join(failures[:5])
    assert totals.cases + structures * len(totals.left_out) == structures * len(seeds)
    assert len(totals.left_out) <= 0.05 * len(seeds) + 1, f"too many ill-conditioned models: {totals.left_out}"


@settings(max_examples=5 if LONG else 3, database=None, phases=(Phase.generate,))
@given(st.integers(HYPOTHESIS_SEEDS, 2 * HYPOTHESIS_SEEDS))
def test_any_seed_agrees(seed: int) -> None:
    check_seed(seed, 2, 2e4, Totals())

"""Gradients of random models on random structures: the backward model, interpreted, against differences.

`-s --models 500 --structures 2` is the long run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gradients import worst_against_differences  # noqa: E402
from random_cases import batches  # noqa: E402
from random_models import compilable, random_model, source  # noqa: E402

from cortex.frontend.trace import Trace  # noqa: E402
from cortex.frontend.weights import Weights  # noqa: E402
from cortex.gradient.refuse import NotTrainable  # noqa: E402
from cortex.runtime.linearize import linearize  # noqa: E402

CLOSE = 1e-4
FEW = 12
"""Models of a short run."""


def worst(seed: int, structures: int) -> float:
    """How far the gradients of a random model are from differences."""
    made = random_model(seed)
    given = batches(made, structures)
    trace = Trace(compilable(made), Weights(None if made.closure else made.arrays(0.5)))
    trace.explore()
    trace.see([root for batch in given for root in batch])
    m = trace.model()
    params = {name: x.astype(np.float64) for name, x in trace.weights.arrays(p.name for p in m.params).items()}
    forms = [linearize(m, trace.roots(batch), accessors=trace.accessors) for batch in given]
    return max(worst_against_differences(m, params, form) for form in forms)


def test_gradients_of_random_models(options: dict[str, Any]) -> None:
    models, structures, first, chosen, _ = options.values()
    seeds = range(first, first + (models if models >= 500 else FEW)) if chosen is None else [chosen]
    failures, refused = [], 0
    for seed in seeds:
        try:
            found = worst(seed, min(structures, 2))
            if not found < CLOSE:
                failures.append(f"seed {seed}: {found}\n{source(random_model(seed))}")
        except NotTrainable:
            refused += 1
        except Exception as error:
            failures.append(f"seed {seed}: {type(error).__name__}: {error}\n{source(random_model(seed))}")
    print(f"{len(seeds)} models, {refused} refused, {len(failures)} failed")
    assert not failures, "\n\n".join(failures[:5])
    assert refused <= 0.1 * len(seeds) + 1

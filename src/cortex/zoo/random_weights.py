"""Drawing weights: uniform matrices and biases, normal embeddings, from one seeded generator."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]


class Draw:
    """A source of float32 arrays for a model of one hidden size; the same seed gives the same weights."""

    def __init__(self, hidden: int, seed: int) -> None:
        """Start from `seed`; `hidden` sets the scale."""
        self.rng = np.random.default_rng(seed)
        self.unit = 1.0 / np.sqrt(hidden)

    def uniform(self, *shape: int, gain: float = 1.0) -> Array:
        """Uniform in +-gain/sqrt(hidden). A gain of sqrt(3) keeps the variance of a vector multiplied by it."""
        bound = gain * self.unit
        return self.rng.uniform(-bound, bound, size=shape).astype(np.float32)

    def normal(self, *shape: int, scale: float) -> Array:
        """Normal with standard deviation `scale`."""
        return (self.rng.standard_normal(shape) * scale).astype(np.float32)

    def embedding(self, vocab: int, hidden: int) -> Array:
        """A table of word vectors."""
        return self.normal(vocab, hidden, scale=0.5)

"""What the zoo says about a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Weights = dict[str, npt.NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Entry:
    """A model of the zoo.

    `weights(hidden, vocab, seed=0)` draws float32 weights, scaled so that activations neither vanish nor saturate.
    `structures(rng, count, vocab)` makes fresh structures of the shape the model is meant for, words below `vocab`.
    `reference(weights)` is the same model in PyTorch: a callable from a root node to an object with the states as
    attributes, computed node by node in the weights' own precision. `hidden` are the published small and large sizes,
    `vocab` a size of the embedding table that fits in memory at both; `states` the model's states, the one a user
    wants first.
    """

    name: str
    model: Any
    weights: Callable[..., Weights]
    reference: Callable[[Weights], Callable[[Any], Any]]
    structures: Callable[..., list[Any]]
    hidden: tuple[int, int]
    states: tuple[str, ...] = ("h",)
    vocab: int = 20_000

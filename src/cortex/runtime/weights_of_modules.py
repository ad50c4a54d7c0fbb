"""New weights for the programs of a compiled module; and that its results have no gradients."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from cortex.frontend.torch.digest import digest
from cortex.frontend.weights import Source
from cortex.runtime.executable import Executable

NO_GRADIENTS = (
    "the results of a compiled module have no gradients: backward() would train what is computed from them, and leave "
    "the module as it is. To train the module by the compiled one, call fast.train() first. For inference, call it "
    "under torch.no_grad(), or say so once with fast.eval()."
)
"""What to say to who might train the module by them."""


def update_all(runs: list[Executable], weights: Source, optional: tuple[str, ...], share: bool = False) -> None:
    """Give new weights to all programs or to none; those that `share` arrays have the same ones."""
    before = [run.given_weights for run in runs]
    new = weights
    try:
        for run in runs:
            run.update(new, optional=optional)
            new = run.given_weights if share else weights
    except BaseException:
        for run, old in zip(runs, before, strict=True):
            run.update(old)
        raise


def untied(held: Mapping[str, Any], weights: Mapping[str, Any]) -> tuple[str, str] | None:
    """Two names of one tensor of a module as it was compiled whose values are different now."""
    first: dict[int, str] = {}
    for name, tensor in held.items():
        other = first.setdefault(id(tensor), name)
        is_given = other != name and {name, other} <= weights.keys()
        if is_given and digest(weights[name]) != digest(weights[other]):
            return other, name
    return None


def name_outside(module: str, outside: tuple[str, ...]) -> None:
    """Log the weights that `update` takes from the module alone, when the module is compiled."""
    if outside:
        logging.getLogger("cortex").info(
            "%s computes with tensors that are in no state_dict: %s. update(module) reads them, update(state_dict) "
            "leaves them as they are.", module, ", ".join(outside),
        )  # fmt: skip

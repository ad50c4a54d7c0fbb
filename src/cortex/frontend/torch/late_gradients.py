"""Results of a call for inference that turn out to be wanted for training: gradients once backward() asks for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from cortex.errors import StructureError
from cortex.frontend.torch.autograd import Arrays, with_gradients
from cortex.frontend.torch.forms import flatten

CLOSE = 1e-3


def with_late_gradients(
    call: Callable[[], Any], again: Callable[[], Any], weights: Mapping[str, torch.Tensor], given: tuple[Any, Any]
) -> Any:
    """What `call` returns with gradients for weights and what it is `given`: those of `again()`, in training."""
    with torch.no_grad():
        result = call()
    tensors_given: list[torch.Tensor] = []
    _collect(given, tensors_given)
    inputs = list({id(x): x for x in [*weights.values(), *tensors_given] if x.requires_grad}.values())
    form, tensors = flatten(result, _type_name)
    places = [i for i, x in enumerate(tensors) if x.dtype == torch.float32]

    def pull_back(given: Arrays) -> Arrays:
        with torch.enable_grad():
            made = flatten(again(), _type_name)[1]
            found = [made[i] for i in places]
            for before, now in zip([tensors[i] for i in places], found, strict=True):
                if before.shape != now.shape or not torch.allclose(before, now, CLOSE, CLOSE, equal_nan=True):
                    raise StructureError(
                        "the structures, or what else the module computes from, were changed between a call and its "
                        "backward(). Call fast.train() before training starts: then calls keep what backward() needs."
                    )
            wanted = [(x, torch.from_numpy(g)) for x, g in zip(found, given, strict=True) if g is not None]
            outputs = [(x, g) for x, g in wanted if x.requires_grad]
            if not outputs:
                return [None for _ in inputs]
            return list(
                torch.autograd.grad([x for x, _ in outputs], inputs, [g for _, g in outputs], allow_unused=True)
            )

    arrays = [tensors[i].numpy() for i in places]
    for i, x in zip(places, with_gradients(arrays, pull_back, inputs), strict=True):
        tensors[i] = x
    return form.rebuild(tensors)


def _type_name(x: Any) -> str | None:
    return str(x.dtype).removeprefix("torch.") if isinstance(x, torch.Tensor) else None


def _collect(x: Any, into: list[torch.Tensor]) -> None:
    """The tensors among the arguments of a call, or of each call of a list."""
    if isinstance(x, torch.Tensor):
        into.append(x)
    elif isinstance(x, dict):
        _collect(list(x.values()), into)
    elif type(x) in (tuple, list):
        for each in x:
            _collect(each, into)

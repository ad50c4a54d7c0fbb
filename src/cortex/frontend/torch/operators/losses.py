"""Distances that models compute on the way: the error of a reconstruction, of a prediction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from cortex.frontend.builder import Value
from cortex.frontend.pointwise import arithmetic, unary
from cortex.frontend.tensor import value_of
from cortex.frontend.torch.operators.reductions import mean, reduced
from cortex.frontend.torch.refusals import Unsupported
from cortex.frontend.torch.tensor import TorchTensor, call


def _loss(of_difference: Callable[[Value], Value]) -> Callable[..., Value]:
    def run(
        input: Any,
        target: Any,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        weight: Any = None,
    ) -> Value:
        if size_average is not None or reduce is not None or weight is not None:
            raise Unsupported("size_average, reduce and weight are not known. Give reduction='mean', 'sum' or 'none'.")
        found = of_difference(arithmetic("sub", value_of(input), value_of(target)))
        axes = tuple(range(len(found.shape)))
        match reduction:
            case "mean":
                return mean(TorchTensor(found))
            case "sum":
                return reduced("add", found, axes, False)
        return found

    return run


def _nll(input: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100) -> Value:
    """Minus what `input` has at the class that `target` says: of a row, or of each of several rows."""
    if weight is not None or ignore_index >= 0 or len(input.shape) > 2 or target.is_floating_point():
        raise Unsupported("scores of (N, C) and classes of (N,) are accepted, without weights and ignore_index.")
    at = call(torch.gather, input, -1, call(torch.unsqueeze, target, -1))
    lost = unary("neg", call(torch.squeeze, at, -1)._cortex_value())
    match reduction:
        case 1:
            return mean(TorchTensor(lost))
        case 2:
            return reduced("add", lost, tuple(range(len(lost.shape))), False)
    return lost


def _cross_entropy(input: Any, target: Any, *options: Any, label_smoothing: float = 0.0, **named: Any) -> Value:
    if label_smoothing or options[3:] not in ((), (0.0,)):
        raise Unsupported("label_smoothing is not known. Leave it out, or write it with F.log_softmax.")
    return _nll(call(torch.log_softmax, input, -1), target, *options[:3], **named)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "F.mse_loss": _loss(lambda x: arithmetic("mul", x, x)),
    "F.l1_loss": _loss(lambda x: unary("abs", x)),
    "_nn.nll_loss_nd": _nll,
    "_nn.cross_entropy_loss": _cross_entropy,
}

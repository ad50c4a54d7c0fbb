"""Distances that models compute on the way: the error of a reconstruction, of a prediction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cortex.frontend import pointwise
from cortex.frontend.builder import Value
from cortex.frontend.elementary import scaled
from cortex.frontend.pointwise import arithmetic, fill, unary
from cortex.frontend.tensor import value_of
from cortex.frontend.torch.content import Content, as_value, reshape
from cortex.frontend.torch.operators.indexing import gather, one_hot
from cortex.frontend.torch.operators.reductions import log_softmax, mean, reduced
from cortex.frontend.torch.refusals import Unsupported
from cortex.frontend.torch.tensor import TorchTensor


def _squared(input: TorchTensor, target: TorchTensor, reduction: int = 1) -> Value:
    apart = arithmetic("sub", value_of(input), value_of(target))
    return _total(arithmetic("mul", apart, apart), reduction)


def _total(lost: Value, reduction: int) -> Value:
    """All of it, the mean, or the sum, as torch numbers them."""
    match reduction:
        case 1:
            return mean(TorchTensor(lost))
        case 2:
            return reduced("add", lost, tuple(range(len(lost.shape))), False)
    return lost


def _nll(input: TorchTensor, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100) -> Value:
    """Minus what `input` has at the class that `target` says: of a row, or of each of several rows."""
    if weight is not None or ignore_index >= 0 or len(input.shape) > 2 or target.is_floating_point():
        raise Unsupported("scores of (N, C) and classes of (N,) are accepted, without weights and ignore_index.")
    at = gather(input, -1, TorchTensor(_column(target._cortex_content())))
    return _total(unary("neg", as_value(reshape(at, at.shape[:-1]))), reduction)


def _column(x: Content) -> Content:
    return reshape(x, (*x.shape, 1))


def _cross_entropy(
    input: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100, smoothing: float = 0.0
) -> Value:
    if target.is_floating_point() or smoothing:
        return _of_shares(value_of(input), _shares(input, target, smoothing), weight, reduction)
    return _nll(TorchTensor(log_softmax(input, -1)), target, weight, reduction, ignore_index)


def _shares(input: TorchTensor, target: TorchTensor, smoothing: float) -> Value:
    """How much of each class is meant, a part `smoothing` of which all classes share."""
    classes = input.shape[-1]
    meant = value_of(target) if target.is_floating_point() else one_hot(target, classes)
    return arithmetic("add", scaled(pointwise.as_float(meant), 1 - smoothing), fill(smoothing / classes))


def _of_shares(scores: Value, shares: Value, weight: Any, reduction: int) -> Value:
    if weight is not None or len(scores.shape) > 2:
        raise Unsupported("scores of (N, C) are accepted, without weights.")
    each = arithmetic("mul", shares, log_softmax(TorchTensor(scores), -1))
    return _total(unary("neg", reduced("add", each, (len(scores.shape) - 1,), False)), reduction)


RULES: dict[str, Callable[..., Any]] = {
    "mse_loss": _squared, "nll_loss_nd": _nll, "cross_entropy_loss": _cross_entropy,
}  # fmt: skip

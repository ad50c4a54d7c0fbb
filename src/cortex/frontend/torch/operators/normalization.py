"""Normalizations in evaluation, attention, and similarities of vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from cortex.frontend import movement, pointwise
from cortex.frontend.builder import Value, builder
from cortex.frontend.pointwise import arithmetic, comparison, fill, unary
from cortex.frontend.tensor import value_of
from cortex.frontend.torch.operators.products import matmul
from cortex.frontend.torch.operators.reductions import mean, reduced, softmax, vector_norm
from cortex.frontend.torch.refusals import Unsupported
from cortex.frontend.torch.tensor import TorchTensor
from cortex.ra.ir import Param

TRAINING = "it computes statistics of the batch in training, and every node is computed alone. Call module.eval()."


def _scaled_and_shifted(x: Value, weight: Any, bias: Any, shape: tuple[int, ...] | None = None) -> Value:
    for fn, given in (("mul", weight), ("add", bias)):
        if given is not None:
            value = value_of(given)
            x = arithmetic(fn, x, value if shape is None else movement.reshape(value, shape))  # type: ignore[arg-type]
    return x


def _standardized(x: Value, axes: tuple[int, ...], eps: float) -> Value:
    """Shifted and scaled to mean 0 and variance 1 along axes."""
    centred = arithmetic("sub", x, mean(TorchTensor(x), axes, True))
    square = TorchTensor(arithmetic("mul", centred, centred))
    return arithmetic("div", centred, unary("sqrt", arithmetic("add", mean(square, axes, True), fill(eps))))


def _layer_norm(
    input: TorchTensor, normalized_shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Value:  # fmt: skip
    x = value_of(input)
    axes = tuple(range(len(x.shape) - len(normalized_shape), len(x.shape)))
    return _scaled_and_shifted(_standardized(x, axes, eps), weight, bias)


def _rms_norm(input: Any, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None) -> Value:
    x = value_of(input)
    axes = tuple(range(len(x.shape) - len(normalized_shape), len(x.shape)))
    square = mean(TorchTensor(arithmetic("mul", x, x)), axes, True)
    least = torch.finfo(torch.float32).eps if eps is None else eps
    return _scaled_and_shifted(
        arithmetic("div", x, unary("sqrt", arithmetic("add", square, fill(least)))), weight, None
    )


def _batch_norm(
    input: TorchTensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,
    eps: float, cudnn_enabled: bool = True,
) -> Value:  # fmt: skip
    """By the running statistics, along axis 1."""
    if training or running_mean is None:
        raise Unsupported(TRAINING)
    x = value_of(input)
    shape = (x.shape[1], *(1 for _ in x.shape[2:]))
    centred = arithmetic("sub", x, movement.reshape(value_of(running_mean), shape))
    deviation = unary("sqrt", arithmetic("add", movement.reshape(value_of(running_var), shape), fill(eps)))
    return _scaled_and_shifted(arithmetic("div", centred, deviation), weight, bias, shape)


def _refuse_training(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Value:  # fmt: skip
    """F.batch_norm, which would ask for larger batches first."""
    if training or running_mean is None:
        raise Unsupported(TRAINING)
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def _group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn_enabled: bool = True
) -> Value:
    x = value_of(input)
    rest = math.prod(x.shape[1:]) // num_groups
    grouped = movement.reshape(x, (x.shape[0], num_groups, rest))
    result = movement.reshape(_standardized(grouped, (2,), eps), x.shape)
    return _scaled_and_shifted(result, weight, bias, (x.shape[1], *(1 for _ in x.shape[2:])))


def _instance_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool, momentum: float,
    eps: float, cudnn_enabled: bool = True,
) -> Value:  # fmt: skip
    if not use_input_stats:
        return _batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
    return _group_norm(input, value_of(input).shape[1], weight, bias, eps)


def _attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Value:  # fmt: skip
    """softmax(query key^T * scale + mask) value."""
    if dropout_p > 0:
        raise Unsupported("dropout_p > 0 draws random numbers. Call module.eval() and pass 0.0 then.")
    if enable_gqa:
        raise Unsupported("enable_gqa=True: repeat the heads of key and value with repeat_interleave instead.")
    q, k = value_of(query), value_of(key)
    turned = movement.transpose(k, (*range(len(k.shape) - 2), len(k.shape) - 1, len(k.shape) - 2))
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = arithmetic("mul", matmul(TorchTensor(q), TorchTensor(turned)), fill(factor))
    if is_causal:
        scores = _masked(scores, _lower_triangle(*scores.shape[-2:]))
    if attn_mask is not None:
        mask = value_of(attn_mask)
        scores = _masked(scores, mask) if mask.dtype == "bool" else arithmetic("add", scores, mask)
    return matmul(TorchTensor(softmax(TorchTensor(scores), -1)), value)


def _masked(scores: Value, mask: Value) -> Value:
    return pointwise.where(mask, scores, fill(-math.inf))


def _lower_triangle(rows: int, columns: int) -> Value:
    b = builder()
    name = b.knowledge.weights.equal_constant(np.tri(rows, columns, dtype=np.float32))
    return comparison("ne", b.emit(Param(name), (rows, columns)), fill(0.0))


def _weight_norm(v: TorchTensor, g: TorchTensor, dim: int = 0) -> Value:
    """`v` with norms `g` along all dimensions but `dim`, which is -1 for the norm of all elements.

    Torch's decomposition takes the norm of a vector's elements together where each is meant.
    """
    x = value_of(v)
    axes = tuple(axis for axis in range(len(x.shape)) if axis != dim)
    norm = vector_norm(v, 2, axes, True) if axes else unary("abs", x)
    return arithmetic("mul", x, arithmetic("div", value_of(g), norm))


def _cosine_similarity(x1: TorchTensor, x2: TorchTensor, dim: int = 1, eps: float = 1e-8) -> Value:
    x, y = value_of(x1), value_of(x2)
    shape = pointwise.broadcast_shapes("cosine_similarity", x, y)
    x, y = pointwise.broadcast_to(x, shape), pointwise.broadcast_to(y, shape)
    axes = (dim % len(shape),)
    lengths = [arithmetic("max", vector_norm(TorchTensor(v), 2, axes), fill(eps)) for v in (x, y)]
    return arithmetic("div", reduced("add", arithmetic("mul", x, y), axes, False), arithmetic("mul", *lengths))


def _distances(x1: TorchTensor, x2: TorchTensor, p: float = 2.0, compute_mode: int | None = None) -> Value:
    """`cdist`: of every row of one with every row of the other."""
    x, y = value_of(x1), value_of(x2)
    rows = movement.reshape(x, (*x.shape[:-1], 1, x.shape[-1]))
    columns = movement.reshape(y, (*y.shape[:-2], 1, *y.shape[-2:]))
    return vector_norm(TorchTensor(arithmetic("sub", rows, columns)), p, -1)


RULES: dict[str, Callable[..., Any]] = {
    "layer_norm": _layer_norm, "rms_norm": _rms_norm, "batch_norm": _batch_norm, "group_norm": _group_norm,
    "instance_norm": _instance_norm, "scaled_dot_product_attention": _attention,
    "cosine_similarity": _cosine_similarity, "cdist": _distances,
}  # fmt: skip

FUNCTIONS: dict[str, Callable[..., Any]] = {"F.batch_norm": _refuse_training, "torch._weight_norm": _weight_norm}

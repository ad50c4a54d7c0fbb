"""Every operator, as users write it. A case is a function of tensors, and the shapes of these."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

Case = tuple[Callable[..., Any], dict[str, Any]]
Shape = tuple[int, ...]

X: Shape = (3, 4)
V: Shape = (4,)


def case(function: Callable[..., Any], **inputs: Any) -> Case:
    """Inputs are shapes of random tensors, or functions that draw one."""
    return function, inputs


def positive(*shape: int) -> Callable[[torch.Generator], torch.Tensor]:
    return lambda rng: torch.rand(shape, generator=rng) + 0.1


def whole(*shape: int, below: int = 3) -> Callable[[torch.Generator], torch.Tensor]:
    return lambda rng: torch.randint(0, below, shape, generator=rng)


def unary(names: str, of: Any = X) -> dict[str, Case]:
    """As functions of torch, as methods, and in place."""
    found = {}
    for name in names.split():
        found[f"torch.{name}"] = case(lambda x, name=name: getattr(torch, name)(x), x=of)
        found[f"Tensor.{name}"] = case(lambda x, name=name: getattr(x, name)(), x=of)
        if hasattr(torch.Tensor, f"{name}_"):
            found[f"Tensor.{name}_"] = case(lambda x, name=name: (getattr(x, f"{name}_")(), x), x=of)
    return found


def binary(names: str) -> dict[str, Case]:
    return {
        f"torch.{name}": case(lambda x, y, name=name: getattr(torch, name)(x, y), x=X, y=(3, 1))
        for name in names.split()
    }


POINTWISE = {
    **unary("exp tanh sigmoid neg abs sign square expm1 erf sinh cosh relu exp2 sgn negative absolute"),
    **unary("log sqrt rsqrt reciprocal log1p log2 log10", positive(3, 4)),
    **binary("add sub mul div maximum minimum lt le gt ge eq ne less greater subtract multiply divide true_divide "
             "greater_equal less_equal not_equal logaddexp fmax fmin"),
    "positive": case(lambda x: (+x, torch.positive(x)), x=X),
    "clone": case(lambda x: (x.clone(), torch.clone(x)), x=X),
    "operators": case(lambda x, y: (x + y, x - y, x * y, x / (y * y + 1), -x, abs(x), x @ y.t()), x=X, y=X),
    "numbers": case(lambda x: (x + 1, 2 - x, 3 * x, x / 4, 1 / (x * x + 1), 1.5 + x, x - 0.5), x=X),
    "comparisons": case(lambda x, y: (x < y, x <= 0, x > y, x >= 0.1, x == x, x != y, x > 0), x=X, y=V),
    "logic": case(lambda x, y: ((x > 0) & (y > 0), (x > 0) | (y > 0), ~(x > 0), (x > 0).logical_xor(y > 0)), x=X, y=X),
    "logical": case(lambda x, y: (torch.logical_and(x, y > 0), torch.logical_or(x > 0, y), torch.logical_not(x > 0)), x=X, y=X),
    "bitwise": case(lambda x, y: (torch.bitwise_and(x > 0, y > 0), torch.bitwise_or(x > 0, y > 0), torch.bitwise_not(x > 0)), x=X, y=X),
    "bool_arithmetic": case(lambda x: ((x > 0) * x, (x > 0).float() + 1, (x > 0).sum(), (x > 0) + (x > 1)), x=X),
    "alpha": case(lambda x, y: (torch.add(x, y, alpha=2), torch.sub(x, y, alpha=0.5), torch.rsub(x, y)), x=X, y=X),
    "powers": case(lambda x: (x**2, x**3, x.pow(2), torch.pow(x, 4), x**0, 2**x, x ** 2.0), x=X),
    "roots": case(lambda x: (x**0.5, x**-0.5, x**1.7, x**-1, x.pow(0.3), torch.pow(2.5, x)), x=positive(3, 4)),
    "clamp": case(lambda x: (x.clamp(-0.5, 0.5), torch.clamp(x, min=0), x.clamp(max=0.2), x.clip(0, 1)), x=X),
    "clamp_tensors": case(lambda x, y: (torch.clamp(x, min=y), x.clamp_min(0.1), x.clamp_max(0.1)), x=X, y=V),
    "where": case(lambda x, y: (torch.where(x > 0, x, y), torch.where(x > 0, x, 0.0), x.where(y > 0, y)), x=X, y=X),
    "masked_fill": case(lambda x: (x.masked_fill(x > 0, 0.5), torch.masked_fill(x, x < 0, -1.0)), x=X),
    "lerp": case(lambda x, y: (torch.lerp(x, y, 0.3), x.lerp(y, torch.sigmoid(x))), x=X, y=X),
    "addcmul": case(lambda x, y: (torch.addcmul(x, y, y, value=0.5), x.addcmul(y, x)), x=X, y=X),
    "addcdiv": case(lambda x, y: torch.addcdiv(x, x, y, value=2.0), x=X, y=positive(3, 4)),
    "logit": case(lambda x: (torch.logit(torch.sigmoid(x)), torch.logit(torch.sigmoid(x), eps=0.3)), x=X),
    "scalars": case(lambda x: (x.sum() * 2 + x[0, 0], x.mean() / x.max()), x=X),
    "fill": case(lambda x: (x.clone().fill_(2.0), x.clone().zero_(), torch.fill(x, 3.0)), x=X),
    "copy": case(lambda x, y: (x.copy_(y), x), x=X, y=V),
}  # fmt: skip

ACTIVATIONS = {
    **{f"F.{name}": case(lambda x, name=name: getattr(F, name)(x * 3), x=X) for name in ["relu", "relu6", "hardtanh", "leaky_relu", "elu", "celu", "selu", "silu", "mish", "hardsigmoid", "hardswish", "gelu", "softplus", "softsign", "tanhshrink", "hardshrink", "softshrink", "logsigmoid", "sigmoid", "tanh", "rrelu", "glu"]},
    **{f"F.{name}_inplace": case(lambda x, name=name: (getattr(F, name)(x, inplace=True), x), x=X) for name in ["relu", "relu6", "hardtanh", "leaky_relu", "elu", "celu", "selu", "silu", "mish", "hardsigmoid", "hardswish", "rrelu"]},
    "F.relu_": case(lambda x: (F.relu_(x), F.leaky_relu_(x, 0.3), F.elu_(x), x), x=X),
    "torch.relu_": case(lambda x: (torch.relu_(x), x), x=X),
    "hardtanh_bounds": case(lambda x: F.hardtanh(x, -0.2, 0.3), x=X),
    "leaky_relu_slope": case(lambda x: F.leaky_relu(x, negative_slope=0.3), x=X),
    "elu_alpha": case(lambda x: (F.elu(x, alpha=0.3), F.celu(x, 0.7)), x=X),
    "gelu_tanh": case(lambda x: F.gelu(x * 3, approximate="tanh"), x=X),
    "softplus_beta": case(lambda x: (F.softplus(x * 20, beta=2, threshold=5), F.softplus(x * 30)), x=X),
    "shrinks": case(lambda x: (F.hardshrink(x, 0.2), F.softshrink(x, lambd=0.1), F.threshold(x, 0.1, 20.0)), x=X),
    "prelu": case(lambda x, w: (F.prelu(x, w), F.prelu(x, w[:1]), torch.prelu(x, w)), x=X, w=V),
    "glu_dim": case(lambda x: F.glu(x, dim=0), x=(4, 3)),
    "dropout_eval": case(lambda x: (F.dropout(x, 0.5, training=False), F.dropout(x, 0.0), torch.dropout(x, 0.5, False)), x=X),
    "softmax": case(lambda x: (F.softmax(x, dim=0), x.softmax(-1), torch.softmax(x, 1), F.softmin(x, dim=1)), x=X),
    "log_softmax": case(lambda x: (F.log_softmax(x, dim=0), x.log_softmax(-1), torch.log_softmax(x, dim=1)), x=X),
    "softmax_masked": case(lambda x: F.softmax(x.masked_fill(x > 0.5, float("-inf")), -1), x=X),
}  # fmt: skip

PRODUCTS = {
    "linear": case(lambda x, w, b: (F.linear(x, w, b), F.linear(x[0], w), F.linear(x[:1], w, b)), x=X, w=(5, 4), b=(5,)),
    "linear_3d": case(lambda x, w: F.linear(x, w), x=(2, 3, 4), w=(5, 4)),
    "linear_vector_weight": case(lambda x, w: F.linear(x, w), x=(4,), w=(4,)),
    "bilinear": case(lambda x, y, w, b: (F.bilinear(x, y, w, b), F.bilinear(x[0], y[0], w)), x=(2, 3), y=(2, 4), w=(5, 3, 4), b=(5,)),
    "bilinear_1": case(lambda x, y, w: F.bilinear(x, y, w), x=(1, 3), y=(1, 4), w=(5, 3, 4)),
    "matmul_vectors": case(lambda x, y, v: (v @ v, x @ v, v @ y, torch.matmul(x, y), v.dot(v), x.mv(v)), x=X, y=(4, 2), v=V),
    "matmul_batches": case(lambda a, b, v: (a @ b, a @ b[0], a[0] @ b, a @ v, v @ b, torch.bmm(a, b)), a=(2, 3, 4), b=(2, 4, 5), v=V),
    "matmul_broadcast": case(lambda a, b: (torch.matmul(a, b), b.transpose(-1, -2) @ a.transpose(-1, -2)), a=(2, 1, 3, 4), b=(5, 4, 2)),
    "row_times_matrix": case(lambda x, y: (x.mm(y), torch.mm(x, y), x.__matmul__(y)), x=(1, 4), y=(4, 3)),
    "addmm": case(lambda b, x, y: (torch.addmm(b, x, y), torch.addmm(b, x, y, beta=0.5, alpha=2), b.addmm(x, y, beta=0)), b=(2,), x=X, y=(4, 2)),
    "addmv": case(lambda b, x, v: (torch.addmv(b, x, v), b.addmv(x, v, alpha=2)), b=(3,), x=X, v=V),
    "baddbmm": case(lambda c, a, b: torch.baddbmm(c, a, b, beta=2), c=(2, 3, 5), a=(2, 3, 4), b=(2, 4, 5)),
    "outer": case(lambda x, y: (torch.outer(x, y), x.ger(y), torch.inner(x, x), torch.vdot(x, x)), x=V, y=(3,)),
    "inner_matrices": case(lambda x, y: torch.inner(x, y), x=X, y=(2, 4)),
    "einsum": case(lambda x, y: (torch.einsum("ij,kj->ik", x, y), torch.einsum("ij->j", x), torch.einsum("ij,ij->", x, x)), x=X, y=(2, 4)),
    "einsum_ellipsis": case(lambda a, b: (torch.einsum("...ij,...jk->...ik", a, b), torch.einsum("bij,bjk", [a, b])), a=(2, 3, 4), b=(2, 4, 5)),
    "einsum_three": case(lambda x, w, y: torch.einsum("a,iab,b->i", x, w, y), x=(3,), w=(2, 3, 4), y=V),
    "tensordot": case(lambda a, b: (torch.tensordot(a, b, dims=1), torch.tensordot(a, a, dims=([0, 2], [0, 2]))), a=(2, 3, 4), b=(4, 5)),
    "rmatmul": case(lambda x, y: (x.__rmatmul__(y)), x=X, y=(2, 3)),
}  # fmt: skip

MOVEMENT = {
    "view": case(lambda x: (x.view(4, 3), x.view(-1), x.view(2, -1), x.view((3, 2, 2)), x.view_as(x.view(2, 6))), x=X),
    "reshape": case(lambda x: (x.reshape(4, 3), torch.reshape(x, (-1,)), x.t().reshape(12), x.reshape_as(x.view(6, 2))), x=X),
    "flatten": case(lambda x: (x.flatten(), torch.flatten(x, 1), x.flatten(0, 1), x.ravel(), x[0, 0, 0].flatten()), x=(2, 3, 4)),
    "unflatten": case(lambda x: (x.unflatten(1, (2, 2)), x.unflatten(-1, (-1, 1)), torch.unflatten(x, 0, (3, 1))), x=X),
    "unsqueeze": case(lambda x: (x.unsqueeze(0), x.unsqueeze(-1), torch.unsqueeze(x, 1), x[None], x[:, None]), x=X),
    "squeeze": case(lambda x: (x.squeeze(), x.squeeze(0), x.squeeze(-1), x.squeeze(1), x.squeeze((0, 2))), x=(1, 3, 1)),
    "transpose": case(lambda x: (x.t(), x.T, x.transpose(0, 1), x.transpose(-1, 0), x.swapaxes(0, 1), x.swapdims(0, 1)), x=X),
    "permute": case(lambda x: (x.permute(2, 0, 1), torch.permute(x, (1, 0, -1)), x.mT, x.permute(dims=(0, 2, 1))), x=(2, 3, 4)),
    "movedim": case(lambda x: (x.movedim(0, -1), torch.movedim(x, (0, 1), (1, 2)), x.moveaxis(1, 0), x.adjoint()), x=(2, 3, 4)),
    "complex_free": case(lambda x: (x.H,), x=X),
    "expand": case(lambda x: (x.expand(5, 3, 4), x[:1].expand(6, -1), x[0].expand_as(x), torch.broadcast_to(x, (2, 3, 4))), x=X),
    "broadcast_tensors": case(lambda x, y: torch.broadcast_tensors(x, y), x=X, y=V),
    "repeat": case(lambda x: (x.repeat(2, 1), x.repeat(2, 3, 1), x[0].repeat(3), x.tile(2), torch.tile(x, (2, 1, 1))), x=X),
    "repeat_interleave": case(lambda x: (x.repeat_interleave(2, dim=0), x.repeat_interleave(3), torch.repeat_interleave(x, 2, -1)), x=X),
    "cat": case(lambda x, y: (torch.cat([x, y]), torch.cat((x, y), dim=1), torch.cat([x, y], -1), torch.concat([x, x]), torch.concatenate([x, y])), x=X, y=X),
    "cat_empty": case(lambda x: torch.cat([torch.zeros(0), x]), x=X),
    "stack": case(lambda x, y: (torch.stack([x, y]), torch.stack((x, y), dim=1), torch.stack([x, y], -1)), x=X, y=X),
    "stacks": case(lambda x, y: (torch.hstack([x, y]), torch.vstack([x, y]), torch.hstack([x[0], y[0]]), torch.vstack([x[0], y[0]]), torch.column_stack([x[0], y[0]])), x=X, y=X),
    "split": case(lambda x: (x.split(2, dim=1), torch.split(x, [1, 2]), x.split(2), torch.split(x, 3, -1), x.split_with_sizes([1, 3], 1)), x=X),
    "chunk": case(lambda x: (x.chunk(2, dim=1), torch.chunk(x, 2), x.chunk(3, -1), x.chunk(5)), x=X),
    "unbind": case(lambda x: (x.unbind(), torch.unbind(x, 1), x.unbind(dim=-1), list(x), [r for r in x]), x=X),
    "select": case(lambda x: (x.select(0, 1), x.select(-1, -1), x.narrow(1, 1, 2), torch.narrow(x, 0, -2, 1)), x=X),
    "flip": case(lambda x: (x.flip(0), torch.flip(x, [0, 1]), x.flip(dims=(1,)), x.roll(1, 0), torch.roll(x, (1, -1), (0, 1)), x.roll(2)), x=X),
    "pad": case(lambda x: (F.pad(x, (1, 2)), F.pad(x, (0, 1, 2, 0), value=0.5), F.pad(x, (0, 0))), x=X),
}  # fmt: skip

INDEXING = {
    "index": case(lambda x: (x[0], x[-1], x[1, 2], x[:, 1], x[1:], x[:, ::2], x[..., 0], x[None, 0], x[:, None, 1:3]), x=X),
    "index_more": case(lambda x: (x[..., None], x[0, ..., 1], x[:0], x[5:], x[-2:, -1], x[()], x[0:2, 0]), x=(3, 4, 2)),
    "index_lists": case(lambda x: (x[[0, 2]], x[:, [1, 1, 0]], x[torch.tensor([2, 0])], x[[0, 1], [1, 2]], x[torch.tensor(1)]), x=X),
    "index_lists_apart": case(lambda x: (x[[0, 1], :, [1, 0]], x[:, [0, 1], [1, 0]], x[0, :, [1, 0]]), x=(2, 3, 2)),
    "lookup": case(lambda x, i: (x[i], x[:, i], x[i, 1], x[i, i]), x=(3, 3), i=whole()),
    "lookup_1": case(lambda x, i: (x[i], x.index_select(0, i), torch.index_select(x, 1, i), x[i][0], x[i.view(1, 1)]), x=(3, 3), i=whole(1)),
    "lookup_several": case(lambda x, i, j: (x[torch.stack([i, j])], x[torch.cat([i.view(1), j.view(1)])], x[i, j]), x=(3, 3), i=whole(), j=whole()),
    "gather": case(lambda x, i: (x.gather(1, torch.tensor([[0, 1], [2, 2], [1, 0]])), x[:1].gather(1, i)), x=(3, 3), i=whole(1, 1)),
    "one_hot": case(lambda i: (F.one_hot(i, 5), F.one_hot(i, num_classes=3).float() * 2), i=whole(1)),
    "scatter": case(lambda x, i: (torch.zeros(3).scatter_(0, i, 1.0), x.scatter(0, i.view(1, 1).expand(1, 3), 2.0), torch.zeros(1, 3).scatter(1, i.view(1, 1), x[:1, :1])), x=(3, 3), i=whole(1)),
    "embedding": case(lambda w, i: (F.embedding(i, w), F.embedding(i, w, padding_idx=0), torch.embedding(w, i), F.embedding(torch.tensor([[0, 2]]), w)), w=X, i=whole(1)),
    "setitem": case(lambda x, y: (_set(x, y), x), x=X, y=V),
    "setitem_lookup": case(lambda x, i: (_set_at(x, i), x), x=(3, 4), i=whole()),
    "setitem_mask": case(lambda x: (_set_where(x), x), x=X),
}  # fmt: skip


def _set(x: Any, y: Any) -> Any:
    x[0] = y
    x[1, 2] = 5.0
    x[2, 1:3] = y[:2]
    x[:, 0] = 0
    x[..., -1:] = x[..., :1] + 1
    x[1, ::3] = x[0, ::3]
    x[::2, ::2] = 0.25
    return x


def _set_at(x: Any, i: Any) -> Any:
    x[i] = 1.5
    x[[0, 2]] = x[[2, 0]].clone()
    x[:, i] = torch.tensor([1.0, 2.0, 3.0])
    return x


def _set_where(x: Any) -> Any:
    x[x > 0.5] = 0.5
    x[x[:, 0] < 0] = -1.0
    return x


REDUCTIONS = {
    "sum": case(lambda x: (x.sum(), x.sum(0), x.sum(dim=-1, keepdim=True), torch.sum(x, (0, 2)), x.sum(axis=1), x.sum((0, 1), True)), x=(2, 3, 4)),
    "mean": case(lambda x: (x.mean(), x.mean(0), torch.mean(x, -1, keepdim=True), x.mean([0, 1])), x=(2, 3, 4)),
    "max": case(lambda x, y: (x.max(), x.max(0), torch.max(x, dim=1, keepdim=True), torch.max(x, y), x.max(-1).values, x.max(1)[0], x.max(y)), x=X, y=X),
    "min": case(lambda x, y: (x.min(), x.min(0), torch.min(x, dim=1, keepdim=True), torch.min(x, other=y), x.min(-1).indices), x=X, y=X),
    "amax": case(lambda x: (x.amax(), x.amax(1), torch.amin(x, (0, 1), keepdim=True), x.amin(-1)), x=X),
    "argmax": case(lambda x: (x.argmax(), x.argmax(0), torch.argmax(x, dim=-1, keepdim=True), x.argmin(), x.argmin(1)), x=X),
    "any": case(lambda x: ((x > 1).any(), (x > 0).all(dim=1), torch.any(x > 1, 0, keepdim=True), (x > -9).all()), x=X),
    "prod": case(lambda x: (x.prod(), x.prod(0), torch.prod(x, 1, keepdim=True)), x=X),
    "logsumexp": case(lambda x: (x.logsumexp(0), torch.logsumexp(x, dim=(0, 1)), torch.logsumexp(x, -1, keepdim=True)), x=X),
    "norm": case(lambda x: (x.norm(), x.norm(dim=1), torch.norm(x, p=1, dim=0), x.norm(2, -1, True), x.norm(p=math.inf), x.norm(3, 1)), x=X),
    "linalg_norm": case(lambda x: (torch.linalg.norm(x), torch.linalg.norm(x, dim=1), torch.linalg.vector_norm(x, ord=1, dim=0), torch.linalg.vector_norm(x, 0), torch.linalg.vector_norm(x, -math.inf)), x=X),
    "var": case(lambda x: (x.var(), x.var(0), torch.var(x, 1, unbiased=False), x.var(dim=1, correction=0, keepdim=True), x.var(False)), x=X),
    "std": case(lambda x: (x.std(), x.std(0, keepdim=True), torch.std(x, -1, False), torch.std_mean(x, 1), torch.var_mean(x, 0, keepdim=True)), x=X),
    "normalize": case(lambda x: (F.normalize(x), F.normalize(x, p=1, dim=0), F.normalize(x, dim=-1, eps=0.5)), x=X),
    "cosine": case(lambda x, y: (F.cosine_similarity(x, y), torch.cosine_similarity(x, y, dim=0), F.cosine_similarity(x[0], y, dim=-1)), x=X, y=X),
    "distance": case(lambda x, y: (F.pairwise_distance(x, y), F.pairwise_distance(x, y, p=1, keepdim=True)), x=X, y=X),
}  # fmt: skip

NORMALIZATION = {
    "layer_norm": case(lambda x, w, b: (F.layer_norm(x, (4,), w, b), F.layer_norm(x, [3, 4]), F.layer_norm(x, (4,), eps=0.1)), x=X, w=V, b=V),
    "rms_norm": case(lambda x, w: (F.rms_norm(x, (4,), w), F.rms_norm(x, (4,), eps=0.1)), x=X, w=V),
    "batch_norm": case(lambda x, m, v, w: (F.batch_norm(x, m, v), F.batch_norm(x, m, v, w, m, False, 0.1, 0.01)), x=X, m=V, v=positive(4), w=V),
    "group_norm": case(lambda x, w: (F.group_norm(x, 2), F.group_norm(x, 4, w, w)), x=(3, 4, 2), w=V),
    "instance_norm": case(lambda x, w, v: (F.instance_norm(x), F.instance_norm(x, w, v, use_input_stats=False)), x=(2, 4, 3), w=V, v=positive(4)),
    "attention": case(lambda q, k, v: (F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, is_causal=True), F.scaled_dot_product_attention(q, k, v, scale=0.3)), q=(2, 3, 4), k=(2, 3, 4), v=(2, 3, 5)),
    "attention_mask": case(lambda q, k, v, m: (F.scaled_dot_product_attention(q, k, v, attn_mask=m), F.scaled_dot_product_attention(q, k, v, torch.tensor([[True, False], [True, True], [False, True]]))), q=(2, 3, 4), k=(2, 2, 4), v=(2, 2, 5), m=(3, 2)),
}  # fmt: skip

CASES: dict[str, Case] = {
    **POINTWISE, **ACTIVATIONS, **PRODUCTS, **MOVEMENT, **INDEXING, **REDUCTIONS, **NORMALIZATION,
}  # fmt: skip

"""Functions, methods and layers of torch as they appear in public model code; each is one case.

Inputs are named by what they are: `x`, `y` are (3, 4), `v` is (4,), `s` is a scalar, `g` a grid (2, 3, 6), `p` an image
(1, 2, 5, 6), `i` an integer below 3, `k` three integers below 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

SHAPES = {"x": (3, 4), "y": (3, 4), "v": (4,), "s": (), "g": (2, 3, 6), "p": (1, 2, 5, 6)}
WHOLE = {"i": ((), 3), "k": ((3,), 4)}

ELEMENTWISE = (
    "abs exp log sqrt rsqrt tanh sigmoid neg sign square reciprocal expm1 log1p log2 log10 erf erfc sinh cosh exp2 "
    "relu logit isnan isinf isfinite nan_to_num logical_not asinh acosh atanh frac trunc floor ceil round sin cos tan "
    "atan deg2rad rad2deg signbit isposinf isneginf sinc positive"
)
ACTIVATIONS = (
    "relu relu6 elu celu selu gelu silu mish softplus softsign hardshrink softshrink hardsigmoid hardswish hardtanh "
    "leaky_relu logsigmoid tanhshrink rrelu"
)
TWO = (
    "add sub mul div maximum minimum fmax fmin lt le gt ge eq ne logaddexp logaddexp2 logical_and logical_or "
    "logical_xor pow atan2 hypot remainder fmod floor_divide isclose xlogy heaviside copysign ldexp dist "
    "true_divide rsub"
)


def _set_mask(x: Any) -> Any:
    made = x * 1
    made[made > 0] = 0
    return made


def _out(name: str) -> Callable[..., Any]:
    def run(x: Any, y: Any) -> Any:
        result = torch.empty(3, 4)
        getattr(torch, name)(x, y, out=result)
        return result * 2

    return run


def _of_one(owner: Any, name: str) -> Callable[..., Any]:
    return lambda x: getattr(owner, name)(x)


def _changed(name: str) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        made = x * 1
        getattr(made, name)()
        return made

    return run


def _changed_by(name: str) -> Callable[..., Any]:
    def run(x: Any, y: Any) -> Any:
        made = x * 1
        row = made[1]
        getattr(made, name)(y)
        return made, row

    return run


IN_PLACE = "exp_ tanh_ sigmoid_ relu_ neg_ abs_ sqrt_ square_ zero_ erf_ log1p_ expm1_ reciprocal_"
IN_PLACE_BY = "add_ sub_ mul_ div_ copy_ logaddexp_ fmax_ pow_ lt_ eq_ clamp_min_ logical_and_"

CASES: dict[str, Callable[..., Any]] = {
    **{f"torch.{name}": _of_one(torch, name) for name in ELEMENTWISE.split()},
    **{f"F.{name}": _of_one(F, name) for name in ACTIVATIONS.split()},
    **{
        f"torch.{name}(x, y)": lambda x, y, name=name: getattr(torch, name)(x, y)
        for name in TWO.split()
        if name != "cross"
    },
    **{f"x.{name}()": _changed(name) for name in IN_PLACE.split() if hasattr(torch.Tensor, name)},
    **{f"x.{name}(y)": _changed_by(name) for name in IN_PLACE_BY.split() if hasattr(torch.Tensor, name)},
    **{f"torch.{name}(out=)": _out(name) for name in ("add", "mul", "maximum", "sub")},
    # sums and extremes
    **{
        f"torch.{name}(dim)": lambda x, name=name: getattr(torch, name)(x, dim=-1)
        for name in [
            "sum",
            "mean",
            "prod",
            "amax",
            "amin",
            "argmax",
            "argmin",
            "softmax",
            "log_softmax",
            "logsumexp",
            "norm",
            "all",
            "any",
            "var",
            "std",
            "nansum",
            "nanmean",
            "count_nonzero",
            "cumsum",
            "cumprod",
            "median",
            "sort",
            "aminmax",
            "logcumsumexp",
            "cummax",
        ]
    },
    **{
        f"torch.{name}(keepdim)": lambda x, name=name: getattr(torch, name)(x, dim=0, keepdim=True)
        for name in [
            "sum",
            "mean",
            "prod",
            "amax",
            "argmax",
            "argmin",
            "logsumexp",
            "norm",
            "all",
            "var",
            "max",
            "min",
            "nanmean",
        ]
    },
    **{
        f"x.{name}()": lambda x, name=name: getattr(x, name)()
        for name in [
            "sum",
            "mean",
            "prod",
            "max",
            "min",
            "argmax",
            "argmin",
            "norm",
            "std",
            "var",
            "any",
            "all",
            "aminmax",
            "count_nonzero",
        ]
    },
    "x.topk(2)": lambda x: x.topk(2).values,
    "F.softmin": lambda x: F.softmin(x, dim=1),
    "torch.linalg.norm(x, dim=1)": lambda x: torch.linalg.norm(x, dim=1),
    "torch.linalg.vector_norm(x, 3)": lambda x: torch.linalg.vector_norm(x, 3, dim=1),
    "torch.linalg.matrix_norm": lambda x: torch.linalg.matrix_norm(x),
    "torch.linalg.multi_dot": lambda x, y: torch.linalg.multi_dot([x, y.t(), x]),
    "torch.std_mean": lambda x: torch.std_mean(x, 1),
    "torch.trace": lambda x: torch.trace(x),
    "torch.cdist": lambda x, y: torch.cdist(x, y),
    "torch.cov": lambda x: torch.cov(x),
    "F.normalize": lambda x: F.normalize(x, dim=-1),
    "F.cosine_similarity": lambda x, y: F.cosine_similarity(x, y, dim=-1),
    "F.pairwise_distance": lambda x, y: F.pairwise_distance(x, y),
    "torch.renorm": lambda x: torch.renorm(x, 2, 0, 1.0),
    # products
    "F.linear": lambda x, y: F.linear(x, y),
    "torch.matmul": lambda x, y: x @ y.T,
    "torch.mv": lambda x, v: x.mv(v),
    "torch.dot": lambda v: v.dot(v),
    "torch.bmm": lambda g: torch.bmm(g, g.mT),
    "torch.outer": lambda v: torch.outer(v, v),
    "torch.addmm": lambda x, y: torch.addmm(torch.ones(3), x, y.T, beta=0.5, alpha=2.0),
    "torch.baddbmm": lambda g: torch.baddbmm(torch.ones(3), g, g.mT),
    "torch.einsum": lambda x, y: torch.einsum("ij,kj->ik", x, y),
    "torch.einsum(ii)": lambda x: torch.einsum("ii->i", x[:, :3]),
    "torch.einsum(...)": lambda g: torch.einsum("...ij,...kj->...ik", g, g),
    "torch.tensordot": lambda x, g: torch.tensordot(x, g, dims=([0], [1])),
    "torch.kron": lambda x, v: torch.kron(x, v),
    "torch.addbmm": lambda g: torch.addbmm(torch.ones(3, 3), g, g.mT),
    "torch.addr": lambda v: torch.addr(torch.ones(4, 4), v, v),
    "torch.vdot": lambda v: torch.vdot(v, v),
    "torch.linalg.vecdot": lambda x, y: torch.linalg.vecdot(x, y),
    "x.matrix_power": lambda x: x[:, :3].matrix_power(2),
    "F.bilinear": lambda x, y: F.bilinear(x, y, torch.ones(2, 4, 4) / 3),
    "torch.addcmul": lambda x, y: torch.addcmul(x, x, y, value=0.5),
    "torch.addcdiv": lambda x, y: torch.addcdiv(x, x, y, value=0.5),
    "torch.lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "F.sdpa": lambda g: F.scaled_dot_product_attention(g, g, g),
    "torch.inner": lambda x, y: torch.inner(x, y),
    "F.sdpa(causal)": lambda g: F.scaled_dot_product_attention(g, g, g, is_causal=True),
    # movement
    "torch.cat(-1)": lambda x, y: torch.cat([x, y], -1),
    "torch.stack(-1)": lambda x, y: torch.stack([x, y], -1),
    "torch.hstack": lambda x, y: torch.hstack([x, y]),
    "torch.dstack": lambda x, y: torch.dstack([x, y]),
    "torch.row_stack": lambda x, v: torch.vstack([x, v]),
    "torch.block_diag": lambda x, y: torch.block_diag(x, y),
    "torch.diag": lambda v: torch.diag(v),
    "torch.diagonal": lambda x: x.diagonal(),
    "torch.diag_embed": lambda x: torch.diag_embed(x),
    "torch.tril": lambda x: torch.tril(x),
    "torch.triu": lambda x: torch.triu(x, 1),
    "x.unfold": lambda x: x.unfold(1, 2, 1),
    "torch.flip": lambda x: torch.flip(x, [1]),
    "torch.fliplr": lambda x: torch.fliplr(x),
    "torch.rot90": lambda x: torch.rot90(x),
    "torch.roll": lambda x: torch.roll(x, 1, -1),
    "x.T": lambda x: x.T,
    "x.mT": lambda g: g.mT,
    "x.swapaxes": lambda g: g.swapaxes(0, -1),
    "torch.atleast_2d": lambda v: torch.atleast_2d(v),
    "torch.atleast_3d": lambda v: torch.atleast_3d(v),
    "torch.squeeze(dims)": lambda p: p.squeeze((0,)),
    "x.expand": lambda v: v.expand(3, -1),
    "x.repeat": lambda v: v.repeat(2, 3),
    "x.tile": lambda x: x.tile(2),
    "torch.repeat_interleave": lambda x: x.repeat_interleave(2, -1),
    "x.split": lambda x: x.split([1, 3], -1),
    "torch.tensor_split": lambda x: torch.tensor_split(x, 3, dim=1),
    "torch.hsplit": lambda x: torch.hsplit(x, 2),
    "x.chunk": lambda x: x.chunk(2, -1),
    "x.unbind": lambda x: x.unbind(-1),
    "x.narrow": lambda x: x.narrow(-1, 1, 2),
    "x.unflatten": lambda x: x.unflatten(-1, (2, 2)),
    "x.flatten": lambda g: g.flatten(-2),
    "torch.ravel": lambda g: torch.ravel(g),
    "x.view_as": lambda x, y: x.view_as(y.t()),
    "x.movedim": lambda g: g.movedim(-1, 0),
    "torch.meshgrid": lambda v: torch.meshgrid(v, v, indexing="ij"),
    "torch.cartesian_prod": lambda v: torch.cartesian_prod(v, v),
    "torch.combinations": lambda v: torch.combinations(v),
    "torch.broadcast_tensors": lambda x, v: torch.broadcast_tensors(x, v),
    "F.pad": lambda x: F.pad(x, (1, 2), value=0.5),
    "F.pad(reflect)": lambda g: F.pad(g, (1, 2), mode="reflect"),
    "F.pad(replicate)": lambda g: F.pad(g, (1, 2), mode="replicate"),
    "F.pad(circular)": lambda g: F.pad(g, (1, 2), mode="circular"),
    "F.pad(negative)": lambda x: F.pad(x, (-1, 2)),
    "F.pixel_shuffle": lambda g: F.pixel_shuffle(g.reshape(1, 4, 3, 3), 2),
    "F.unfold": lambda p: F.unfold(p, 2),
    "x.as_strided": lambda x: x.as_strided((2, 2), (4, 1)),
    "F.channel_shuffle": lambda p: F.channel_shuffle(p, 2),
    "torch.vander": lambda v: torch.vander(v),
    "x.vsplit": lambda g: g.vsplit((1, 2)),
    "x.swapdims_": lambda x: (x * 1).swapdims_(0, 1),
    "x.unsqueeze_": lambda x: (x * 1).unsqueeze_(-1),
    "x.squeeze_": lambda p: (p * 1).squeeze_(0),
    "x.t_": lambda x: (x * 1).t_(),
    # indices
    "x[i]": lambda x, i: x[i],
    "x[:, -1]": lambda x: x[:, -1],
    "x[[0, 2]]": lambda x: x[[0, 2]],
    "x[..., None]": lambda x: x[..., None],
    "x.gather": lambda x, k: x.gather(1, k[:, None]),
    "x.index_select": lambda x, k: x.index_select(1, k),
    "torch.take": lambda x, k: torch.take(x, k),
    "torch.take_along_dim": lambda x, k: torch.take_along_dim(x, k[:, None], 1),
    "F.one_hot": lambda k: F.one_hot(k, 4).float(),
    "x.scatter": lambda x, k: x.scatter(1, k[:, None], 2.0),
    "x.scatter_add": lambda x, y, k: x.scatter_add(1, k[:, None], y),
    "x.index_add": lambda x, y, k: x.index_add(1, k, y[:, :3]),
    "x.index_copy": lambda x, y: x.index_copy(0, torch.tensor([2, 0]), y[:2]),
    "x.index_fill": lambda x, k: x.index_fill(1, k, 3.0),
    "x.index_put": lambda x, i, v: x.index_put((i,), v),
    "x.index_put(accumulate)": lambda x, i, v: x.index_put((i[None],), v, accumulate=True),
    "x.scatter_reduce": lambda x, y, k: x.scatter_reduce(1, k[:, None], y, "sum"),
    "x[x.argmax()]": lambda v: v[v.argmax()],
    "x[x.argmax(1)]": lambda x, y: y[torch.arange(3), x.argmax(1)],
    "E(x.argmax)": lambda x, v: F.embedding(v.argmax(), x.repeat(2, 1)),
    "x.gather(argmax)": lambda x, y: y.gather(1, x.argmax(1, keepdim=True)),
    "F.one_hot(argmax)": lambda x: F.one_hot(x.argmax(1), 4),
    "x.select_scatter": lambda x, v: x.select_scatter(v, 0, 1),
    "x.slice_scatter": lambda x, y: x.slice_scatter(y[:1], 0, 1, 2),
    "x.diagonal_scatter": lambda x, v: x.diagonal_scatter(v[:3]),
    "x.masked_fill": lambda x: x.masked_fill(x > 0, -1.0),
    "x.masked_fill_": lambda x: (x * 1).masked_fill_(x > 0, float("-inf")),
    "x[mask] = 0": lambda x: _set_mask(x),
    "torch.where(c, x, 0)": lambda x: torch.where(x > 0, x, 0.0),
    "torch.where(c)": lambda x: torch.where(x > 0),
    "x.nonzero": lambda x: x.nonzero(),
    "torch.masked_select": lambda x: x.masked_select(x > 0),
    "torch.isin": lambda k: torch.isin(k, torch.tensor([1, 3])),
    "torch.bucketize": lambda x: torch.bucketize(x, torch.tensor([0.0, 1.0])),
    "torch.searchsorted": lambda v: torch.searchsorted(torch.tensor([-1.0, 0.0, 1.0]), v),
    "F.embedding_bag": lambda x, k: F.embedding_bag(torch.tensor([[0, 1]]), x),
    "F.embedding": lambda x, i: F.embedding(i, x),
    "torch.masked_scatter": lambda x, y: x.masked_scatter(x > 0, y),
    # element types
    "x > 0 & y > 0": lambda x, y: (x > 0) & (y > 0),
    "(x > 0).sum()": lambda x: (x > 0).sum(),
    "(x > 0).float().mean()": lambda x: (x > 0).float().mean(1),
    "(x > 0).long()": lambda x: (x > 0).long() * 2,
    "(x > 0).sum(1)": lambda x: (x > 0).sum(1),
    "argmax + 1": lambda x: x.argmax(1) + 1,
    "argmax == k": lambda x, k: x.argmax(1) == k,
    "torch.stack(bool)": lambda x, y: torch.stack([x > 0, y > 0]),
    "(x > 0).all(-1)": lambda x: (x > 0).all(-1),
    "x.long()": lambda x: x.long(),
    "x.int()": lambda x: x.int(),
    "x.bool()": lambda x: x.bool(),
    "~(x > 0)": lambda x: ~(x > 0),
    "cat(bool)": lambda x, y: torch.cat([x > 0, y > 0]),
    "k.sum()": lambda k: k.sum(),
    "k.max()": lambda k: k.max(),
    "k // 2": lambda k: k // 2,
    "k % 2": lambda k: k % 2,
    "k.float().mean()": lambda k: k.float().mean(),
    "bitwise": lambda k: k & 1,
    "x.double()": lambda x: x.double(),
    "x.half()": lambda x: x.half(),
    # factories
    "torch.arange(n) * x": lambda v: torch.arange(4) * v,
    "torch.linspace": lambda v: torch.linspace(0, 1, 4) * v,
    "torch.zeros_like": lambda x: torch.zeros_like(x) + x,
    "x.new_full": lambda x: x.new_full((3, 1), 2.0) + x,
    "torch.full_like": lambda x: torch.full_like(x, 2.0),
    "torch.ones(bool)": lambda x: torch.ones(3, 4, dtype=torch.bool) & (x > 0),
    "torch.empty_like.copy_": lambda x: torch.empty_like(x).copy_(x),
    "torch.eye": lambda x: torch.eye(3) @ x,
    "torch.tril(ones)": lambda x: x[:, :3].masked_fill(torch.tril(torch.ones(3, 3)) == 0, 0.0),
    # normalization, losses
    "F.layer_norm": lambda x: F.layer_norm(x, (4,)),
    "F.rms_norm": lambda x: F.rms_norm(x, (4,)),
    "F.group_norm": lambda g: F.group_norm(g, 3),
    "F.local_response_norm": lambda g: F.local_response_norm(g, 2),
    "F.instance_norm": lambda g: F.instance_norm(g),
    "F.mse_loss": lambda x, y: F.mse_loss(x, y),
    "F.l1_loss": lambda x, y: F.l1_loss(x, y, reduction="none"),
    "F.smooth_l1_loss": lambda x, y: F.smooth_l1_loss(x, y),
    "F.huber_loss": lambda x, y: F.huber_loss(x, y),
    "F.bce_with_logits": lambda x, y: F.binary_cross_entropy_with_logits(x, torch.sigmoid(y)),
    "F.bce": lambda x, y: F.binary_cross_entropy(torch.sigmoid(x), torch.sigmoid(y)),
    "F.kl_div": lambda x, y: F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction="sum"),
    "F.cross_entropy": lambda x, k: F.cross_entropy(x, k),
    "F.nll_loss": lambda x, k: F.nll_loss(F.log_softmax(x, 1), k),
    "F.hinge_embedding": lambda x: F.hinge_embedding_loss(x, torch.ones(3, 4)),
    "F.margin_ranking": lambda x, y: F.margin_ranking_loss(x, y, torch.ones(3, 4)),
    "F.cosine_embedding": lambda x, y: F.cosine_embedding_loss(x, y, torch.ones(3)),
    "F.triplet": lambda x, y: F.triplet_margin_loss(x, y, x + y),
    "F.poisson_nll": lambda x, y: F.poisson_nll_loss(x, y),
    "F.gaussian_nll": lambda x, y: F.gaussian_nll_loss(x, y, torch.exp(y)),
    "F.soft_margin": lambda x, y: F.soft_margin_loss(x, torch.sign(y)),
    "F.cross_entropy(smoothing)": lambda x, k: F.cross_entropy(x, k, label_smoothing=0.1),
    "F.cross_entropy(soft)": lambda x, y: F.cross_entropy(x, F.softmax(y, 1)),
    # more activations
    "F.glu": lambda x: F.glu(x),
    "F.prelu": lambda x, v: F.prelu(x, v),
    "F.threshold": lambda x: F.threshold(x, 0.1, 20.0),
    "F.gelu(tanh)": lambda x: F.gelu(x, approximate="tanh"),
    "F.softplus(beta)": lambda x: F.softplus(x, 2.0, 10.0),
    "F.relu(inplace)": lambda x: F.relu(x * 1, inplace=True),
    "x.clamp": lambda x: x.clamp(-1, 1),
    "x.clamp(tensors)": lambda x, y: x.clamp(min=y),
    "x.clamp_(max)": lambda x: (x * 1).clamp_(max=0.5),
    "x ** 3": lambda x: x**3,
    "x ** -0.5": lambda x: x**-0.5,
    "2 ** x": lambda x: 2**x,
    "1 / x": lambda x: 1 / x,
    "1 - x": lambda x: 1 - x,
    "torch.hardtanh_": lambda x: F.hardtanh_(x * 1, -0.5, 0.5),
    "F.gumbel_softmax": lambda x: F.gumbel_softmax(x),
    "torch.special.expit": lambda x: torch.special.expit(x),
    "torch.special.xlog1py": lambda x, y: torch.special.xlog1py(x, y),
    "torch.special.entr": lambda x: torch.special.entr(x),
    "torch.special.logsumexp": lambda x: torch.special.logsumexp(x, 1),
    "torch.float_power": lambda x: torch.float_power(x, 2),
    "torch.lgamma": lambda x: torch.lgamma(x),
    "torch.log_normal": lambda x: torch.special.ndtr(x),
    "torch.div(floor)": lambda x: torch.div(x, 2, rounding_mode="floor"),
    "x.softmax": lambda x: x.softmax(-1),
    "torch.mean(list)": lambda g: g.mean([0, -1]),
    "torch.erfinv": lambda x: torch.erfinv(x),
    "x.diff": lambda x: x.diff(),
    "torch.trapezoid": lambda x: torch.trapezoid(x),
    "torch.bincount": lambda k: torch.bincount(k),
    "torch.histc": lambda x: torch.histc(x),
    "torch.quantile": lambda x: torch.quantile(x, 0.5),
    "x.dist": lambda x, y: x.dist(y),
    "torch.nn.functional.pdist": lambda x: F.pdist(x),
}

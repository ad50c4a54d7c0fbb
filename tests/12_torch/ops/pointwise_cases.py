"""Elementwise operators and activations, as users write them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from case import V, X, binary, case, positive, unary

POINTWISE = {
    **unary("exp tanh sigmoid neg abs sign square expm1 erf sinh cosh relu exp2 sgn negative absolute"),
    **unary("log sqrt rsqrt reciprocal log1p log2 log10", positive(3, 4)),
    **binary(
        "add sub mul div maximum minimum lt le gt ge eq ne less greater subtract multiply divide true_divide "
        "greater_equal less_equal not_equal logaddexp fmax fmin"
    ),
    "finite": case(lambda x: (torch.isnan(x), x.isinf(), torch.isfinite(x), torch.nan_to_num(x / (x > 0))), x=X),
    "positive": case(lambda x: (+x, torch.positive(x)), x=X),
    "clone": case(lambda x: (x.clone(), torch.clone(x)), x=X),
    "operators": case(lambda x, y: (x + y, x - y, x * y, x / (y * y + 1), -x, abs(x), x @ y.t()), x=X, y=X),
    "numbers": case(lambda x: (x + 1, 2 - x, 3 * x, x / 4, 1 / (x * x + 1), 1.5 + x, x - 0.5), x=X),
    "comparisons": case(lambda x, y: (x < y, x <= 0, x > y, x >= 0.1, x == x, x != y, x > 0), x=X, y=V),
    "logic": case(
        lambda x, y: (
            (x > 0) & (y > 0),
            (x > 0) | (y > 0),
            ~(x > 0),
            (x > 0) ^ (y > 0),
            True & (x > 0),
            False | (x > 0),
            True ^ (x > 0),
            (x > 0).logical_xor(y > 0),
        ),
        x=X,
        y=X,
    ),
    "logical": case(
        lambda x, y: (torch.logical_and(x, y > 0), torch.logical_or(x > 0, y), torch.logical_not(x > 0)), x=X, y=X
    ),
    "bitwise": case(
        lambda x, y: (
            torch.bitwise_and(x > 0, y > 0),
            torch.bitwise_or(x > 0, y > 0),
            torch.bitwise_not(x > 0),
            torch.bitwise_xor(x > 0, y > 0),
        ),
        x=X,
        y=X,
    ),
    "bool_arithmetic": case(lambda x: ((x > 0) * x, (x > 0).float() + 1, (x > 0).sum(), (x > 0) + (x > 1)), x=X),
    "alpha": case(lambda x, y: (torch.add(x, y, alpha=2), torch.sub(x, y, alpha=0.5), torch.rsub(x, y)), x=X, y=X),
    "powers": case(lambda x: (x**2, x**3, x.pow(2), torch.pow(x, 4), x**0, 2**x, x**2.0), x=X),
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
}

IN_PLACE = [
    "relu",
    "relu6",
    "hardtanh",
    "leaky_relu",
    "elu",
    "celu",
    "selu",
    "silu",
    "mish",
    "hardsigmoid",
    "hardswish",
    "rrelu",
]
OTHERS = [
    "gelu",
    "softplus",
    "softsign",
    "tanhshrink",
    "hardshrink",
    "softshrink",
    "logsigmoid",
    "sigmoid",
    "tanh",
    "glu",
]
ACTIVATIONS = {
    **{f"F.{name}": case(lambda x, name=name: getattr(F, name)(x * 3), x=X) for name in (*IN_PLACE, *OTHERS)},
    **{
        f"F.{name}_inplace": case(lambda x, name=name: (getattr(F, name)(x, inplace=True), x), x=X) for name in IN_PLACE
    },
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
    "dropout_eval": case(
        lambda x: (
            F.dropout(x, 0.5, training=False),
            F.dropout(x, 0.0),
            torch.dropout(x, 0.5, False),
            F.alpha_dropout(x, 0.5, False),
            F.feature_alpha_dropout(x, 0.5, False),
            torch.alpha_dropout(x, 0.5, False),
            torch.feature_alpha_dropout(x, 0.5, False),
            torch.feature_dropout(x, 0.5, False),
            F.dropout1d(x, 0.5, False),
            F.dropout2d(x[None, None], 0.5, False),
            F.dropout3d(x[None, None, None], 0.5, False),
        ),
        x=X,
    ),
    "softmax": case(lambda x: (F.softmax(x, dim=0), x.softmax(-1), torch.softmax(x, 1), F.softmin(x, dim=1)), x=X),
    "log_softmax": case(lambda x: (F.log_softmax(x, dim=0), x.log_softmax(-1), torch.log_softmax(x, dim=1)), x=X),
    "softmax_masked": case(lambda x: F.softmax(x.masked_fill(x > 0.5, float("-inf")), -1), x=X),
}

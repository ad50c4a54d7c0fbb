"""Reductions and normalization, as users write them."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from case import V, X, case, positive, whole

REDUCTIONS = {
    "sum": case(
        lambda x: (
            x.sum(),
            x.sum(0),
            x.sum(dim=-1, keepdim=True),
            torch.sum(x, (0, 2)),
            x.sum(axis=1),
            x.sum((0, 1), True),
        ),
        x=(2, 3, 4),
    ),
    "mean": case(lambda x: (x.mean(), x.mean(0), torch.mean(x, -1, keepdim=True), x.mean([0, 1])), x=(2, 3, 4)),
    "max": case(
        lambda x, y: (
            x.max(),
            x.max(0),
            torch.max(x, dim=1, keepdim=True),
            torch.max(x, y),
            x.max(-1).values,
            x.max(1)[0],
            x.max(y),
        ),
        x=X,
        y=X,
    ),
    "min": case(
        lambda x, y: (x.min(), x.min(0), torch.min(x, dim=1, keepdim=True), torch.min(x, other=y), x.min(-1).indices),
        x=X,
        y=X,
    ),
    "amax": case(lambda x: (x.amax(), x.amax(1), torch.amin(x, (0, 1), keepdim=True), x.amin(-1)), x=X),
    "argmax": case(
        lambda x: (x.argmax(), x.argmax(0), torch.argmax(x, dim=-1, keepdim=True), x.argmin(), x.argmin(1)), x=X
    ),
    "any": case(lambda x: ((x > 1).any(), (x > 0).all(dim=1), torch.any(x > 1, 0, keepdim=True), (x > -9).all()), x=X),
    "prod": case(lambda x: (x.prod(), x.prod(0), torch.prod(x, 1, keepdim=True)), x=X),
    "logsumexp": case(
        lambda x: (x.logsumexp(0), torch.logsumexp(x, dim=(0, 1)), torch.logsumexp(x, -1, keepdim=True)), x=X
    ),
    "norm": case(
        lambda x: (
            x.norm(),
            x.norm(dim=1),
            torch.norm(x, p=1, dim=0),
            x.norm(2, -1, True),
            x.norm(p=math.inf),
            x.norm(3, 1),
        ),
        x=X,
    ),
    "linalg_norm": case(
        lambda x: (
            torch.linalg.norm(x),
            torch.linalg.norm(x, dim=1),
            torch.linalg.vector_norm(x, ord=1, dim=0),
            torch.linalg.vector_norm(x, 0),
            torch.linalg.vector_norm(x, -math.inf),
        ),
        x=X,
    ),
    "var": case(
        lambda x: (
            x.var(),
            x.var(0),
            torch.var(x, 1, unbiased=False),
            x.var(dim=1, correction=0, keepdim=True),
            x.var(False),
        ),
        x=X,
    ),
    "std": case(
        lambda x: (
            x.std(),
            x.std(0, keepdim=True),
            torch.std(x, -1, False),
            torch.std_mean(x, 1),
            torch.var_mean(x, 0, keepdim=True),
        ),
        x=X,
    ),
    "losses": case(
        lambda x, y: (
            F.mse_loss(x, y),
            F.mse_loss(x, y, reduction="sum"),
            F.l1_loss(x, y),
            F.l1_loss(x, y, reduction="none"),
        ),
        x=X,
        y=X,
    ),
    "classes": case(
        lambda x, i: (
            F.cross_entropy(x[0], i),
            F.cross_entropy(x[:2], torch.stack([i, i]), reduction="none"),
            F.cross_entropy(x, torch.tensor([2, 0, 3])),
            F.nll_loss(F.log_softmax(x, 1), torch.tensor([2, 0, 3]), reduction="sum"),
            F.nll_loss(x[:1], i.unsqueeze(0)),
        ),
        x=X,
        i=whole(),
    ),
    "normalize": case(lambda x: (F.normalize(x), F.normalize(x, p=1, dim=0), F.normalize(x, dim=-1, eps=0.5)), x=X),
    "cosine": case(
        lambda x, y: (
            F.cosine_similarity(x, y),
            torch.cosine_similarity(x, y, dim=0),
            F.cosine_similarity(x[0], y, dim=-1),
        ),
        x=X,
        y=X,
    ),
    "distance": case(lambda x, y: (F.pairwise_distance(x, y), F.pairwise_distance(x, y, p=1, keepdim=True)), x=X, y=X),
}

NORMALIZATION = {
    "layer_norm": case(
        lambda x, w, b: (F.layer_norm(x, (4,), w, b), F.layer_norm(x, [3, 4]), F.layer_norm(x, (4,), eps=0.1)),
        x=X,
        w=V,
        b=V,
    ),
    "rms_norm": case(lambda x, w: (F.rms_norm(x, (4,), w), F.rms_norm(x, (4,), eps=0.1)), x=X, w=V),
    "batch_norm": case(
        lambda x, m, v, w: (
            F.batch_norm(x, m, v),
            torch.batch_norm(x, w, m, m, v, False, 0.1, 1e-5, False),
            F.batch_norm(x, m, v, w, m, False, 0.1, 0.01),
        ),
        x=X,
        m=V,
        v=positive(4),
        w=V,
    ),
    "group_norm": case(lambda x, w: (F.group_norm(x, 2), F.group_norm(x, 4, w, w)), x=(3, 4, 2), w=V),
    "instance_norm": case(
        lambda x, w, v: (F.instance_norm(x), F.instance_norm(x, w, v, use_input_stats=False)),
        x=(2, 4, 3),
        w=V,
        v=positive(4),
    ),
    "weight_norm": case(lambda v, g: (torch._weight_norm(v, g, 0), torch._weight_norm(v.t(), g.t(), 1)), v=X, g=(3, 1)),
    "attention": case(
        lambda q, k, v: (
            F.scaled_dot_product_attention(q, k, v),
            F.scaled_dot_product_attention(q, k, v, is_causal=True),
            F.scaled_dot_product_attention(q, k, v, scale=0.3),
        ),
        q=(2, 3, 4),
        k=(2, 3, 4),
        v=(2, 3, 5),
    ),
    "attention_mask": case(
        lambda q, k, v, m: (
            F.scaled_dot_product_attention(q, k, v, attn_mask=m),
            F.scaled_dot_product_attention(q, k, v, torch.tensor([[True, False], [True, True], [False, True]])),
        ),
        q=(2, 3, 4),
        k=(2, 2, 4),
        v=(2, 2, 5),
        m=(3, 2),
    ),
}

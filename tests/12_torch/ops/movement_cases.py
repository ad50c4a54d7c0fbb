"""Products, movement and indexing, as users write them."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from case import V, X, case, whole

PRODUCTS = {
    "linear": case(
        lambda x, w, b: (F.linear(x, w, b), F.linear(x[0], w), F.linear(x[:1], w, b)), x=X, w=(5, 4), b=(5,)
    ),
    "linear_3d": case(lambda x, w: F.linear(x, w), x=(2, 3, 4), w=(5, 4)),
    "linear_vector_weight": case(lambda x, w: F.linear(x, w), x=(4,), w=(4,)),
    "bilinear": case(
        lambda x, y, w, b: (F.bilinear(x, y, w, b), F.bilinear(x[0], y[0], w)), x=(2, 3), y=(2, 4), w=(5, 3, 4), b=(5,)
    ),
    "bilinear_1": case(lambda x, y, w: F.bilinear(x, y, w), x=(1, 3), y=(1, 4), w=(5, 3, 4)),
    "matmul_vectors": case(
        lambda x, y, v: (v @ v, x @ v, v @ y, torch.matmul(x, y), v.dot(v), x.mv(v)), x=X, y=(4, 2), v=V
    ),
    "matmul_batches": case(
        lambda a, b, v: (a @ b, a @ b[0], a[0] @ b, a @ v, v @ b, torch.bmm(a, b)), a=(2, 3, 4), b=(2, 4, 5), v=V
    ),
    "matmul_broadcast": case(
        lambda a, b: (torch.matmul(a, b), b.transpose(-1, -2) @ a.transpose(-1, -2)), a=(2, 1, 3, 4), b=(5, 4, 2)
    ),
    "row_times_matrix": case(lambda x, y: (x.mm(y), torch.mm(x, y), x.__matmul__(y)), x=(1, 4), y=(4, 3)),
    "addmm": case(
        lambda b, x, y: (torch.addmm(b, x, y), torch.addmm(b, x, y, beta=0.5, alpha=2), b.addmm(x, y, beta=0)),
        b=(2,),
        x=X,
        y=(4, 2),
    ),
    "addmv": case(lambda b, x, v: (torch.addmv(b, x, v), b.addmv(x, v, alpha=2)), b=(3,), x=X, v=V),
    "baddbmm": case(lambda c, a, b: torch.baddbmm(c, a, b, beta=2), c=(2, 3, 5), a=(2, 3, 4), b=(2, 4, 5)),
    "outer": case(lambda x, y: (torch.outer(x, y), x.ger(y), torch.inner(x, x), torch.vdot(x, x)), x=V, y=(3,)),
    "inner_matrices": case(lambda x, y: torch.inner(x, y), x=X, y=(2, 4)),
    "einsum": case(
        lambda x, y: (torch.einsum("ij,kj->ik", x, y), torch.einsum("ij->j", x), torch.einsum("ij,ij->", x, x)),
        x=X,
        y=(2, 4),
    ),
    "einsum_ellipsis": case(
        lambda a, b: (torch.einsum("...ij,...jk->...ik", a, b), torch.einsum("bij,bjk", [a, b])),
        a=(2, 3, 4),
        b=(2, 4, 5),
    ),
    "einsum_three": case(lambda x, w, y: torch.einsum("a,iab,b->i", x, w, y), x=(3,), w=(2, 3, 4), y=V),
    "tensordot": case(
        lambda a, b: (torch.tensordot(a, b, dims=1), torch.tensordot(a, a, dims=([0, 2], [0, 2]))),
        a=(2, 3, 4),
        b=(4, 5),
    ),
    "rmatmul": case(lambda x, y: x.__rmatmul__(y), x=X, y=(2, 3)),
}

MOVEMENT = {
    "view": case(lambda x: (x.view(4, 3), x.view(-1), x.view(2, -1), x.view((3, 2, 2)), x.view_as(x.view(2, 6))), x=X),
    "reshape": case(
        lambda x: (x.reshape(4, 3), torch.reshape(x, (-1,)), x.t().reshape(12), x.reshape_as(x.view(6, 2))), x=X
    ),
    "flatten": case(
        lambda x: (x.flatten(), torch.flatten(x, 1), x.flatten(0, 1), x.ravel(), x[0, 0, 0].flatten()), x=(2, 3, 4)
    ),
    "unflatten": case(lambda x: (x.unflatten(1, (2, 2)), x.unflatten(-1, (-1, 1)), torch.unflatten(x, 0, (3, 1))), x=X),
    "unsqueeze": case(lambda x: (x.unsqueeze(0), x.unsqueeze(-1), torch.unsqueeze(x, 1), x[None], x[:, None]), x=X),
    "squeeze": case(lambda x: (x.squeeze(), x.squeeze(0), x.squeeze(-1), x.squeeze(1), x.squeeze((0, 2))), x=(1, 3, 1)),
    "transpose": case(
        lambda x: (x.t(), x.T, x.transpose(0, 1), x.transpose(-1, 0), x.swapaxes(0, 1), x.swapdims(0, 1)), x=X
    ),
    "permute": case(
        lambda x: (x.permute(2, 0, 1), torch.permute(x, (1, 0, -1)), x.mT, x.permute(dims=(0, 2, 1))), x=(2, 3, 4)
    ),
    "movedim": case(
        lambda x: (x.movedim(0, -1), torch.movedim(x, (0, 1), (1, 2)), x.moveaxis(1, 0), x.adjoint()), x=(2, 3, 4)
    ),
    "complex_free": case(lambda x: (x.H,), x=X),
    "expand": case(
        lambda x: (x.expand(5, 3, 4), x[:1].expand(6, -1), x[0].expand_as(x), torch.broadcast_to(x, (2, 3, 4))), x=X
    ),
    "broadcast_tensors": case(lambda x, y: torch.broadcast_tensors(x, y), x=X, y=V),
    "repeat": case(
        lambda x: (x.repeat(2, 1), x.repeat(2, 3, 1), x[0].repeat(3), x.tile(2), torch.tile(x, (2, 1, 1))), x=X
    ),
    "repeat_interleave": case(
        lambda x: (x.repeat_interleave(2, dim=0), x.repeat_interleave(3), torch.repeat_interleave(x, 2, -1)), x=X
    ),
    "cat": case(
        lambda x, y: (
            torch.cat([x, y]),
            torch.cat((x, y), dim=1),
            torch.cat([x, y], -1),
            torch.concat([x, x]),
            torch.concatenate([x, y]),
        ),
        x=X,
        y=X,
    ),
    "cat_empty": case(lambda x: torch.cat([torch.zeros(0), x]), x=X),
    "stack": case(lambda x, y: (torch.stack([x, y]), torch.stack((x, y), dim=1), torch.stack([x, y], -1)), x=X, y=X),
    "stacks": case(
        lambda x, y: (
            torch.hstack([x, y]),
            torch.vstack([x, y]),
            torch.hstack([x[0], y[0]]),
            torch.vstack([x[0], y[0]]),
            torch.column_stack([x[0], y[0]]),
        ),
        x=X,
        y=X,
    ),
    "split": case(
        lambda x: (
            x.split(2, dim=1),
            torch.split(x, [1, 2]),
            x.split(2),
            torch.split(x, 3, -1),
            x.split_with_sizes([1, 3], 1),
        ),
        x=X,
    ),
    "chunk": case(lambda x: (x.chunk(2, dim=1), torch.chunk(x, 2), x.chunk(3, -1), x.chunk(5)), x=X),
    "unbind": case(lambda x: (x.unbind(), torch.unbind(x, 1), x.unbind(dim=-1), list(x), [*map(torch.tanh, x)]), x=X),
    "select": case(lambda x: (x.select(0, 1), x.select(-1, -1), x.narrow(1, 1, 2), torch.narrow(x, 0, -2, 1)), x=X),
    "flip": case(
        lambda x: (
            x.flip(0),
            torch.flip(x, [0, 1]),
            x.flip(dims=(1,)),
            x.roll(1, 0),
            torch.roll(x, (1, -1), (0, 1)),
            x.roll(2),
        ),
        x=X,
    ),
    "reversed": case(lambda x: (reversed(x), reversed(x.sum()), x.__reversed__()), x=X),
    "pad": case(lambda x: (F.pad(x, (1, 2)), F.pad(x, (0, 1, 2, 0), value=0.5), F.pad(x, (0, 0))), x=X),
}

INDEXING = {
    "index": case(
        lambda x: (x[0], x[-1], x[1, 2], x[:, 1], x[1:], x[:, ::2], x[..., 0], x[None, 0], x[:, None, 1:3]), x=X
    ),
    "index_more": case(lambda x: (x[..., None], x[0, ..., 1], x[:0], x[5:], x[-2:, -1], x[()], x[0:2, 0]), x=(3, 4, 2)),
    "index_lists": case(
        lambda x: (x[[0, 2]], x[:, [1, 1, 0]], x[torch.tensor([2, 0])], x[[0, 1], [1, 2]], x[torch.tensor(1)]), x=X
    ),
    "index_lists_apart": case(lambda x: (x[[0, 1], :, [1, 0]], x[:, [0, 1], [1, 0]], x[0, :, [1, 0]]), x=(2, 3, 2)),
    "lookup": case(lambda x, i: (x[i], x[:, i], x[i, 1], x[i, i]), x=(3, 3), i=whole()),
    "lookup_1": case(
        lambda x, i: (x[i], x.index_select(0, i), torch.index_select(x, 1, i), x[i][0], x[i.view(1, 1)]),
        x=(3, 3),
        i=whole(1),
    ),
    "lookup_several": case(
        lambda x, i, j: (x[torch.stack([i, j])], x[torch.cat([i.view(1), j.view(1)])], x[i, j]),
        x=(3, 3),
        i=whole(),
        j=whole(),
    ),
    "gather": case(
        lambda x, i: (x.gather(1, torch.tensor([[0, 1], [2, 2], [1, 0]])), x[:1].gather(1, i)), x=(3, 3), i=whole(1, 1)
    ),
    "one_hot": case(lambda i: (F.one_hot(i, 5), F.one_hot(i, num_classes=3).float() * 2), i=whole(1)),
    "scatter": case(
        lambda x, i: (
            torch.zeros(3).scatter_(0, i, 1.0),
            x.scatter(0, i.view(1, 1).expand(1, 3), 2.0),
            torch.zeros(1, 3).scatter(1, i.view(1, 1), x[:1, :1]),
        ),
        x=(3, 3),
        i=whole(1),
    ),
    "embedding": case(
        lambda w, i: (
            F.embedding(i, w),
            F.embedding(i, w, padding_idx=0),
            torch.embedding(w, i),
            F.embedding(torch.tensor([[0, 2]]), w),
        ),
        w=X,
        i=whole(1),
    ),
    "setitem": case(lambda x, y: (_set(x, y), x), x=X, y=V),
    "setitem_lookup": case(lambda x, i: (_set_at(x, i), x), x=(3, 4), i=whole()),
    "setitem_mask": case(lambda x: (_set_where(x), x), x=X),
}


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

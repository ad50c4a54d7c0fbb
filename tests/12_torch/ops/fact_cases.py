"""Facts about tensors, moves that change nothing, and factories, as users write them."""

from __future__ import annotations

from typing import Any

import torch
from case import X, case, whole


def _known(i: Any) -> Any:
    """Elements that are known although others of the same tensor are not."""
    k = torch.stack([torch.tensor(2), i])[0]
    return k.item(), int(k), float(k), [10, 20, 30][k], bool(k), k.tolist(), k.view(1).tolist()


FACTS = {
    "known": case(_known, i=whole()),
    "shape": case(lambda x: (x.shape, x.size(), x.size(0), x.size(-1), x.dim(), x.ndim, x.numel(), len(x)), x=X),
    "types": case(lambda x: (x.dtype, x.device, x.is_cuda, x.requires_grad, x.type(), x.is_floating_point()), x=X),
    "layout": case(
        lambda x: (x.stride(), x.t().stride(), x.is_contiguous(), x.t().is_contiguous(), x.layout, x.nelement()), x=X
    ),
    "more_facts": case(
        lambda x: (
            torch.is_tensor(x),
            torch.numel(x),
            torch.is_floating_point(x),
            isinstance(x, torch.Tensor),
            x.is_leaf,
            x.grad,
            x.grad_fn,
            x.is_sparse,
            x.element_size(),
            x.get_device(),
            x.is_complex(),
            torch.is_complex(x),
            x.ndimension(),
            x.itemsize,
            x.nbytes,
            x.storage_offset(),
            x[1].storage_offset(),
            x.is_meta,
            x.is_cpu,
            x.is_quantized,
            x.is_signed(),
            torch.is_conj(x),
            torch.is_neg(x),
            x.is_inference(),
            x.is_mkldnn,
            x.is_nested,
            x.is_conj(),
            x.is_neg(),
            x.is_xla,
            x.is_mps,
            x.is_xpu,
            x.is_sparse_csr,
            x.retains_grad,
            x.is_vulkan,
            x.is_ipu,
            x.is_maia,
            x.is_mtia,
            x._base,
        ),
        x=X,
    ),
    "same": case(
        lambda x: (
            x.to("cpu"),
            x.to(torch.float32),
            x.to(x),
            x.to(device="cpu", dtype=torch.float),
            x.float(),
            x.cpu(),
            x.contiguous(),
            x.t().contiguous(),
            x.detach(),
            x.data,
            x.type_as(x),
            x.requires_grad_(False),
            x.type(torch.FloatTensor),
            x.to("cpu", copy=True),
            torch.detach(x),
            x.detach_(),
        ),
        x=X,
    ),
    "casts": case(
        lambda x: (
            (x > 0).float(),
            (x > 0).to(x),
            (x > 0).long(),
            (x > 0).int() * x,
            (x > 0).to(torch.int64).sum(),
            x.bool(),
            (x > 0).type(torch.float32),
            x.to(torch.bool),
        ),
        x=X,
    ),
    "whole_casts": case(
        lambda i: (i.float() * 2, i + 1, i * 2.5, i.long(), i.int(), i.to(torch.float32), -i, i == 1), i=whole()
    ),
    "new": case(
        lambda x: (
            x.new_zeros(2, 3),
            x.new(2, 3).zero_(),
            x.new_zeros((2,)),
            x.new_ones(3),
            x.new_full((2,), 0.5),
            x.new_empty(2).zero_(),
            x.new_tensor([1.0, 2.0]),
            x.new_zeros(1, dtype=torch.float32),
        ),
        x=X,
    ),
    "like": case(
        lambda x: (
            torch.zeros_like(x),
            torch.ones_like(x) * x,
            torch.full_like(x, 2.0),
            torch.empty_like(x).fill_(1.0),
            torch.zeros_like(x, dtype=torch.long),
            torch.ones_like(x > 0),
        ),
        x=X,
    ),
    "factories": case(
        lambda x: (
            torch.zeros(2, 3),
            torch.ones(4) + x,
            torch.full((2, 2), 0.5),
            torch.eye(3),
            torch.tensor([1.0, 2.0]),
            torch.arange(4) * x,
            torch.tensor(3.0) * x,
            torch.linspace(0, 1, 4) + x,
            torch.zeros(x.size(0), device=x.device),
            torch.tensor([[1.0], [2.0], [3.0]]) + x,
            torch.arange(3),
            torch.ones(2, dtype=torch.long),
            torch.empty(1).zero_(),
            torch.zeros(3, 4, dtype=x.dtype) + x,
            torch.ones(4, requires_grad=True).detach(),
            torch.scalar_tensor(2.0),
        ),
        x=X,
    ),
    "tensor_of_scalars": case(
        lambda x: (
            torch.tensor([x[0, 0], 2.0, x[1, 1]]),
            torch.as_tensor(x),
            torch.full((2,), x[0, 0]),
        ),
        x=X,
    ),
    "known_integers": case(
        lambda i: ([int(n) for n in torch.tensor([2, 3])], torch.tensor([4]).item(), torch.tensor([1, 2]).tolist(), i),
        i=whole(),
    ),
}

"""A forward and a backward pass on arrays as one function of torch, between tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

from cortex.errors import StructureError
from cortex.frontend.torch.torch_entry import tensor_of
from cortex.frontend.weights import to_float32

Arrays: TypeAlias = "list[Any]"
PullBack: TypeAlias = "Callable[[Arrays], Arrays]"
"""From adjoints of results, None where there are none, to gradients of inputs: arrays, or (indices, rows, shape)."""


class _Passes(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, results: Arrays, pull_back: PullBack, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.save_for_backward(*inputs)  # torch refuses a backward pass after they were changed
        ctx.set_materialize_grads(False)
        ctx.pull_back = pull_back
        return tuple(map(tensor_of, results))

    @staticmethod
    def backward(ctx: Any, *adjoints: torch.Tensor | None) -> tuple[Any, ...]:
        if torch.is_grad_enabled():  # by create_graph=True alone
            raise StructureError(
                "a compiled module has no second derivatives, which create_graph=True asks for. Call the module itself."
            )
        inputs = ctx.saved_tensors
        given = [None if g is None else g.detach().contiguous().numpy() for g in adjoints]
        if all(g is None for g in given):
            return (None, None, *(None for _ in inputs))
        return (None, None, *map(_gradient, ctx.pull_back(given)))


def _gradient(x: Any) -> torch.Tensor | None:
    if x is None or isinstance(x, torch.Tensor):
        return x
    if isinstance(x, tuple):
        indices, rows, shape = x
        at = tensor_of(indices)[None].long()
        return torch.sparse_coo_tensor(at, tensor_of(rows), shape, is_coalesced=True, check_invariants=False)
    return tensor_of(x)


def with_gradients(results: Arrays, pull_back: PullBack, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The results as tensors whose gradients `pull_back` takes to the inputs."""
    if not inputs or not torch.is_grad_enabled():
        return list(map(tensor_of, results))
    return list(_Passes.apply(results, pull_back, *inputs))  # type: ignore[no-untyped-call]


def concatenated(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Rows of several tensors, one after the other."""
    return torch.cat(list(parts))


def split(rows: torch.Tensor, counts: Sequence[int]) -> list[torch.Tensor]:
    """The rows of each of several structures."""
    return list(torch.split(rows, list(counts)))


def sparse_weights(modules: Any) -> frozenset[int]:
    """The ids of the weights of embeddings whose gradients are to be sparse."""
    kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    parts = (part for module in modules for part in module.modules())
    return frozenset(id(part.weight) for part in parts if isinstance(part, kinds) and part.sparse)


def wants_gradient(x: Any) -> bool:
    """Is it a tensor that gradients are computed of now?"""
    return isinstance(x, torch.Tensor) and x.requires_grad and torch.is_grad_enabled()


def in_memory(weight: torch.Tensor, name: str) -> Any:
    """The elements of a weight: where they are, if they are floats in a row there."""
    is_plain = weight.dtype == torch.float32 and weight.is_contiguous() and weight.layout == torch.strided
    return weight.detach().numpy() if is_plain else to_float32(weight, name)[0]


def without_gradient(x: Any) -> torch.Tensor:
    """A number or an array that a node has, as a tensor."""
    return torch.as_tensor(x)


def as_tensor(x: Any) -> torch.Tensor:
    """An array as torch has it; a tensor as it is."""
    return x if isinstance(x, torch.Tensor) else tensor_of(x)

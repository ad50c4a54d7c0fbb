"""Making tensors: from shapes and numbers, and from fields of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from cortex.frontend.pointwise import fill
from cortex.frontend.torch.content import Content, broadcast, integers, join, reshape
from cortex.frontend.torch.operators.metadata import cast
from cortex.frontend.torch.refusals import CPU, Unsupported
from cortex.frontend.torch.tensor import TorchTensor, meta_tensor


def flat(sizes: Sequence[Any]) -> tuple[int, ...]:
    """Both `f(2, 3)` and `f((2, 3))`."""
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else tuple(sizes)


def filled(value: float, shape: tuple[int, ...], like: torch.dtype = torch.float32, **placement: Any) -> Any:
    """A constant tensor; a real one unless it is of floats, for only those are computed with."""
    dtype = checked_placement(placement) or like
    if not dtype.is_floating_point:
        return torch.full(shape, value, dtype=dtype)
    return TorchTensor(fill(value, shape), meta_tensor(shape, dtype))


def checked_placement(placement: dict[str, Any]) -> torch.dtype | None:
    """The element type asked for; other places than the CPU and unknown arguments are refused."""
    known = {"dtype", "device", "requires_grad", "layout", "pin_memory", "memory_format", "names", "out"}
    if unknown := set(placement) - known:
        raise Unsupported(f"its argument '{unknown.pop()}' is not known.")
    if placement.get("out") is not None:
        raise Unsupported("the result is written into another tensor (out=). Bind it to a name instead.")
    device = placement.get("device")
    if device is not None and torch.device(device).type not in ("cpu", "meta"):
        raise Unsupported(f"a tensor is made on {torch.device(device)}: {CPU}")
    if placement.get("layout") not in (None, torch.strided):
        raise Unsupported(f"layout={placement['layout']}: dense tensors only.")
    dtype = placement.get("dtype")
    if dtype in (torch.float64, torch.float16, torch.bfloat16):
        raise Unsupported(f"a tensor of {dtype} is made: {CPU}")
    return dtype


def _new(value: float) -> Callable[..., Any]:
    return lambda input, size, **placement: filled(value, tuple(size), input._cortex_meta.dtype, **placement)


def _new_full(input: TorchTensor, size: Any, fill_value: float, **placement: Any) -> Any:
    return filled(fill_value, tuple(size), input._cortex_meta.dtype, **placement)


def _new_of_any(input: TorchTensor, *given: Any, **placement: Any) -> Any:
    """`x.new(2, 3)` is of that shape and not initialized, `x.new([2, 3])` holds these numbers."""
    if len(given) == 1 and isinstance(given[0], list | tuple) and not isinstance(given[0], torch.Size):
        return _new_tensor(input, given[0], **placement)
    return filled(0.0, flat(given), input._cortex_meta.dtype, **placement)


def _like(value: float) -> Callable[..., Any]:
    return lambda input, **placement: filled(value, input._cortex_shape, input._cortex_meta.dtype, **placement)


def _full_like(input: TorchTensor, fill_value: float, **placement: Any) -> Any:
    return filled(fill_value, input._cortex_shape, input._cortex_meta.dtype, **placement)


def _full(size: Any, fill_value: Any, **placement: Any) -> Content | TorchTensor:
    """With a computed value."""
    if not isinstance(fill_value, TorchTensor):
        raise Unsupported("a size depends on a value. Sizes are constants.")
    checked_placement(placement)
    return broadcast(reshape(fill_value._cortex_content(), ()), tuple(size))


def tensor(data: Any, dtype: torch.dtype | None = None, **placement: Any) -> Any:
    """`torch.tensor` of nested lists with fields of nodes or symbolic scalars in them."""
    checked_placement({**placement, "dtype": dtype})
    made = TorchTensor(_nested(data))
    return made if dtype is None else cast(made, dtype)


def _nested(data: Any) -> Content:
    match data:
        case TorchTensor():
            return data._cortex_content()
        case list() | tuple():
            parts = [_nested(each) for each in data]
            if not parts:
                return fill(0.0, (0,))
            return join([reshape(p, (1, *p.shape)) for p in parts], 0)
        case bool() | float():
            return fill(float(data))
        case int():
            return integers([data], ())
    raise Unsupported(f"a tensor is made of a {type(data).__name__}; numbers, fields of nodes and lists are accepted.")


def _new_tensor(input: TorchTensor, data: Any, dtype: torch.dtype | None = None, **placement: Any) -> Any:
    if not _has_symbols(data):
        return torch.tensor(data, dtype=dtype or input._cortex_meta.dtype)
    return tensor(data, dtype, **placement)


def _has_symbols(data: Any) -> bool:
    return any(map(_has_symbols, data)) if isinstance(data, list | tuple) else isinstance(data, TorchTensor)


RULES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("new_zeros", "new_empty"), _new(0.0)), "new_ones": _new(1.0), "new_full": _new_full,
    **dict.fromkeys(("zeros_like", "empty_like"), _like(0.0)), "ones_like": _like(1.0), "full_like": _full_like,
}  # fmt: skip

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Tensor.new": _new_of_any, "Tensor.new_tensor": _new_tensor, "torch.full": _full,
    **dict.fromkeys(("torch.tensor", "torch.as_tensor"), tensor),
}  # fmt: skip

"""What is known of a tensor without its elements: shape, element type, device; and moves that change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from cortex.frontend import pointwise
from cortex.frontend.torch.content import Content, Integers
from cortex.frontend.torch.fields import WHOLE_TYPES, ask_element_types
from cortex.frontend.torch.refusals import CPU, DECIDES, PYTHON, ROUNDING, Unsupported
from cortex.frontend.torch.tensor import TorchTensor, meta_tensor
from cortex.frontend.torch.views import View

OF_META = (
    "shape", "ndim", "size", "dim", "numel", "dtype", "itemsize", "element_size", "stride",
    "is_contiguous", "is_floating_point", "is_complex", "layout", "is_sparse", "is_quantized", "is_signed",
    "storage_offset", "is_mkldnn", "is_nested", "is_conj", "is_neg", "is_inference", "nbytes",
)  # fmt: skip
"""What the tensor without elements says too."""
OF_TYPE = ("dtype", "itemsize", "element_size", "is_floating_point", "is_complex", "is_signed", "nbytes")
"""Of these, what depends on the element type."""

CONSTANT = {
    "is_cuda": False, "is_meta": False, "is_cpu": True, "is_xla": False, "is_mps": False, "is_xpu": False,
    "requires_grad": False, "grad": None, "grad_fn": None, "is_leaf": True, "is_sparse_csr": False,
    "retains_grad": False, "is_vulkan": False, "is_ipu": False, "is_maia": False, "is_mtia": False,
    "device": torch.device("cpu"), "_base": None,
}  # fmt: skip


def _of_meta(name: str) -> Callable[..., Any]:
    found = getattr(torch.Tensor, name)

    def read(input: TorchTensor, *args: Any, **kwargs: Any) -> Any:
        if name in OF_TYPE:
            ask_element_types()
        return (found if callable(found) else found.__get__)(input._cortex_meta, *args, **kwargs)

    return read


def _always(value: Any) -> Callable[..., Any]:
    return lambda input: value


def _same(input: TorchTensor, *_: Any, **__: Any) -> Any:
    return input


def _alias(input: TorchTensor) -> TorchTensor:
    """Another tensor with the same elements, whose shape can change without the other's: `x.data.unsqueeze_(0)`."""
    view = View(input, lambda base: base, lambda _, part: part)
    return TorchTensor(view, input._cortex_meta.detach())


def cast(input: TorchTensor, dtype: torch.dtype) -> Content | TorchTensor:
    """`input` with another element type."""
    meta, held = input._cortex_meta, input._cortex_content()
    if dtype == meta.dtype:
        return input
    if dtype is torch.bool:
        return pointwise.comparison("ne", input._cortex_value(), pointwise.fill(0.0))
    if dtype is torch.float32:
        return pointwise.as_float(input._cortex_value())
    if dtype in WHOLE_TYPES and not meta.dtype.is_floating_point:
        whole = held if isinstance(held, Integers) else pointwise.as_float(held)
        return TorchTensor(whole, meta_tensor(whole.shape, dtype))
    raise Unsupported(f"a tensor of {meta.dtype} becomes {dtype}: {ROUNDING if dtype in WHOLE_TYPES else CPU}")


def _to(input: TorchTensor, *args: Any, **named: Any) -> Any:
    """To an element type, the one of another tensor, or the CPU; two truth values are non_blocking and copy."""
    dtype: torch.dtype | None = None
    for each in (*args, *(named.get(name) for name in ("device", "dtype"))):
        match each:
            case TorchTensor():
                dtype = each._cortex_meta.dtype
            case torch.dtype():
                dtype = each
            case torch.device() | str() if torch.device(each).type not in ("cpu", "meta"):
                raise Unsupported(f"a tensor is moved to {torch.device(each)}: {CPU}")
    result = input if dtype is None else cast(input, dtype)
    flags = [each for each in args if isinstance(each, bool)]
    copied = named.get("copy", False) or flags[1:] == [True]
    return result._cortex_content() if copied and isinstance(result, TorchTensor) else result


def _to_copy(input: TorchTensor, dtype: torch.dtype | None = None, **placement: Any) -> Any:
    return _to(input, **placement, dtype=dtype, copy=True)


def _type(input: TorchTensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    names = {"torch.FloatTensor": torch.float32, "torch.LongTensor": torch.int64, "torch.BoolTensor": torch.bool}
    if dtype is None:
        ask_element_types()
        return next((name for name, kind in names.items() if kind is input._cortex_meta.dtype), None)
    name = f"torch.{dtype.__name__}" if isinstance(dtype, type) else str(dtype)
    kind = dtype if isinstance(dtype, torch.dtype) else names.get(name)
    if kind is None:
        raise Unsupported(f"{dtype}: {CPU}")
    return cast(input, kind)


def _requires_grad(input: TorchTensor, requires_grad: bool = True) -> TorchTensor:
    """Nothing: what is compiled computes forward only, whatever would need gradients in training."""
    return input


def _length(input: TorchTensor) -> int:
    shape = input._cortex_shape
    if not shape:
        raise Unsupported("it is a scalar.")
    return int(shape[0])


def _number(kind: Callable[[Any], Any]) -> Callable[..., Any]:
    """A Python number, of a tensor whose only element is one already."""

    def known(input: TorchTensor) -> Any:
        held = input._cortex_content()
        if isinstance(held, Integers) and held.known and held.elements.size == 1:
            return kind(held.elements.flat[0])
        raise Unsupported(PYTHON if kind is not bool else DECIDES)

    return known


def _to_list(input: TorchTensor) -> Any:
    held = input._cortex_content()
    if isinstance(held, Integers) and held.known:
        return held.elements.tolist()
    raise Unsupported(PYTHON)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{f"Tensor.{name}": _of_meta(name) for name in OF_META if hasattr(torch.Tensor, name)},
    **{f"torch.{name}": _of_meta(name) for name in ("numel", "is_floating_point", "is_complex", "is_conj", "is_neg")},
    **{f"Tensor.{name}": _always(value) for name, value in CONSTANT.items()},
    "Tensor.get_device": lambda input: -1,
    "Tensor.data": _alias, "Tensor.detach_": _same, "Tensor.to": _to, "Tensor.type": _type,
    "Tensor.requires_grad_": _requires_grad,
    "Tensor.__len__": _length,
    "Tensor.item": _number(lambda n: n), "Tensor.__int__": _number(int), "Tensor.__float__": _number(float),
    "Tensor.__index__": _number(int), "Tensor.__bool__": _number(bool), "Tensor.tolist": _to_list,
}  # fmt: skip

RULES: dict[str, Callable[..., Any]] = {
    "detach": _alias, "to": _to, "_to_copy": _to_copy,
}  # fmt: skip

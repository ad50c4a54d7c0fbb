"""Changing a tensor in place: what an operator gives becomes the tensor's new elements."""

from __future__ import annotations

from typing import Any

from cortex.frontend import pointwise
from cortex.frontend.builder import Value
from cortex.frontend.torch.content import Content, Integers
from cortex.frontend.torch.refusals import Unsupported
from cortex.frontend.torch.tensor import TorchTensor
from cortex.frontend.torch.views import View


def assign(target: TorchTensor, result: Any, viewed: bool = False) -> TorchTensor:
    """`target`, with `result` as its elements; a view of it, as `unsqueeze_` gives, becomes its new form.

    `viewed` says whether there were views of it before.
    """
    if isinstance(result, View):
        target._cortex_may_change()
        if viewed:
            raise Unsupported(
                "it changes the shape of a tensor of which there are views. Write it without the underscore."
            )
        shared = TorchTensor(target._cortex_held, target._cortex_meta, target._cortex_frozen)
        target._cortex_held = View(shared, result.read, result.write)
        target._cortex_viewed = False
    elif result is not target:
        content = result._cortex_content() if isinstance(result, TorchTensor) else result
        target._cortex_assign(like(content, target))
    return target


def like(content: Content, target: TorchTensor) -> Content:
    """`content` with the element type of `target`."""
    if isinstance(content, Integers) or content.dtype == "i64":
        held = target._cortex_content()
        return content if isinstance(held, Integers) else like(TorchTensor(content)._cortex_value(), target)
    held = target._cortex_content()
    if isinstance(held, Integers):
        raise Unsupported("computed values are written into a tensor of integers. Make it with dtype=torch.float32.")
    if held.dtype == content.dtype:
        return content
    if held.dtype == "bool":
        return pointwise.comparison("ne", content, pointwise.fill(0.0))
    assert isinstance(content, Value)
    return pointwise.as_float(content)

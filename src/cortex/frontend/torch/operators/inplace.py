"""Changing a tensor in place: what an operator gives becomes the tensor's new elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from cortex.frontend import pointwise
from cortex.frontend.builder import Value
from cortex.frontend.torch.content import Content, Integers
from cortex.frontend.torch.refusals import Unsupported
from cortex.frontend.torch.tensor import TorchTensor
from cortex.frontend.torch.views import View


def in_place(run: Callable[..., Any]) -> Callable[..., TorchTensor]:
    """The variant of an operator that changes its first argument and returns it."""

    @wraps(run)
    def change(input: TorchTensor, *args: Any, **kwargs: Any) -> TorchTensor:
        viewed = input._cortex_viewed
        result = run(input, *args, **kwargs)
        if isinstance(result, TorchTensor):
            result = result._cortex_content()
        if isinstance(result, View):
            input._cortex_may_change()
            if viewed:
                raise Unsupported(
                    "it changes the shape of a tensor of which there are views. Write it without the underscore."
                )
            shared = TorchTensor(input._cortex_held, input._cortex_meta, input._cortex_frozen)
            input._cortex_held = View(shared, result.read, result.write)
            input._cortex_viewed = False
            return input
        input._cortex_assign(like(result, input))
        return input

    return change


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

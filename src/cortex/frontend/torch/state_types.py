"""Element types of what calls return and store.

States are float32. A tensor of integers or truth values becomes one, and is read back as what it was: by callers while
they are traced, and by whoever gets the result of the compiled module.
"""

from __future__ import annotations

from typing import Any

import torch

from cortex.frontend.builder import Value
from cortex.frontend.pointwise import comparison, fill
from cortex.frontend.spans import fail
from cortex.frontend.torch.content import Integers
from cortex.frontend.torch.exact import checked
from cortex.frontend.torch.forms import EXACT, FLOAT
from cortex.frontend.torch.tensor import TorchTensor, meta_tensor


def of_type(state: Value, kind: str | None) -> TorchTensor:
    """A state as the tensor of the element type that was stored in it."""
    if kind is None:
        return TorchTensor(state)
    if kind == "bool":
        return TorchTensor(comparison("ne", state, fill(0.0)))
    return TorchTensor(state, meta_tensor(state.shape, getattr(torch, kind)))


def element_type(x: TorchTensor) -> str:
    """The name of the element type; of floats it is float32."""
    with torch._C.DisableTorchFunction():
        dtype = x._cortex_meta.dtype
    return FLOAT if dtype.is_floating_point else str(dtype).removeprefix("torch.")


def exact(x: Any) -> Any:
    """`x`, unless it has an integer that a state cannot hold; of fields that is checked for each node."""
    held = x._cortex_content()
    for element in held.elements.flat if isinstance(held, Integers) else ():
        if isinstance(element, int) and abs(element) > EXACT:
            raise fail(
                f"a tensor with the integer {element} is returned, stored or passed on. That is done in single "
                f"precision, which holds integers up to {EXACT}. Hand on a number instead of a tensor, or a tensor of "
                "floats: x.float()."
            )
    return checked(x)

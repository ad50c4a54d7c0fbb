"""Digests of tensors whose elements are part of a program. Without torch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from cortex.errors import ModelError


def digest(x: Any) -> str:
    """Equal for equal elements of the same shape and kind, whatever holds them."""
    try:
        if hasattr(x, "detach"):
            x = x.detach().cpu()
            x = (x.float() if str(x.dtype) == "torch.bfloat16" else x).numpy(force=True)
        array = np.asarray(x)
    except (TypeError, ValueError, RuntimeError, NotImplementedError):  # sparse, quantized, without elements
        return f"{type(x).__name__} {id(x)}"
    if array.dtype.hasobject:
        return f"objects {id(x)}"
    if array.dtype.kind in "iu":
        array = array.astype(np.int64)
    content = f"{array.dtype.str} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes()
    return hashlib.sha256(content).hexdigest()


def refuse_changed(found: Mapping[str, str], compiled_in: Mapping[str, str], remedy: str) -> None:
    """Refuse new weights with other elements than a program was compiled for; names that they lack stay."""
    for name, text in compiled_in.items():
        if found.get(name, text) != text:
            raise ModelError(
                f"the elements of '{name}' are part of the compiled program, as those of all tensors are that are no "
                f"parameters and no buffers of floats, and the new ones are different. {remedy}"
            )

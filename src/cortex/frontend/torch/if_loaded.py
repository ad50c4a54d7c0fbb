"""Classes of torch, for code that is also run where torch is not loaded: then nothing is of any of them."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any


def torch_if_loaded() -> Any:
    """The module torch; None where nobody has imported it."""
    return sys.modules.get("torch")


def is_torch_tensor(x: Any) -> bool:
    """Is this a tensor of torch?"""
    torch = torch_if_loaded()
    return torch is not None and isinstance(x, torch.Tensor)


def is_torch_module(x: Any) -> bool:
    """Is this a module of torch?"""
    torch = torch_if_loaded()
    return torch is not None and isinstance(x, torch.nn.Module)


def torchs_own() -> frozenset[str]:
    """Attributes in which modules keep parameters, buffers, hooks and the like."""
    return frozenset() if torch_if_loaded() is None else _of_modules()


@lru_cache(maxsize=1)
def _of_modules() -> frozenset[str]:
    return frozenset(vars(torch_if_loaded().nn.Module()))

"""Questions about classes in a module that is not rebuilt, as it is called by its full name."""

from __future__ import annotations

from typing import Any

import torch


def is_tensor(x: Any) -> bool:
    return isinstance(x, torch.Tensor)


def positive(x: Any) -> Any:
    return torch.where(x > 0, x, 0) if isinstance(x, torch.Tensor) else x


def passed_on(x: Any) -> bool:
    return any(map(isinstance, [x], [torch.Tensor]))

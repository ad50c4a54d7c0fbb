"""Judging a compiled module by the module itself, on structures unlike the example, checked at compile time and not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

import cortex


def judge(make: Callable[[], nn.Module], structures: Sequence[Callable[[], Any]], **options: Any) -> None:
    """Compile for the first structure; all must give what the module gives. Each is made anew for each call."""
    torch.manual_seed(3)
    module = make().eval()
    with torch.no_grad():
        for check in (False, True):
            fast = cortex.compile(module, examples=[structures[0]()], check=check, **options)
            for structure in structures:
                torch.testing.assert_close(fast(structure()), module(structure()), equal_nan=True)

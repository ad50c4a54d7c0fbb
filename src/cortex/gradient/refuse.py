"""What cannot be differentiated yet."""

from __future__ import annotations

from typing import NoReturn

from cortex.errors import ModelError
from cortex.ir.source import Span


class NotTrainable(ModelError):
    """The model computes something whose gradient Cortex cannot compute."""


def refuse(what: str, span: Span | None = None) -> NoReturn:
    """Say that gradients through `what` cannot be computed."""
    raise NotTrainable(
        f"gradients cannot flow through {what} yet. Train the model uncompiled, and call update(weights) with what it "
        "has learned; or freeze the parameters that it depends on.",
        span,
    )

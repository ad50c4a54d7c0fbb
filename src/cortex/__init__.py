"""Cortex compiles recursive deep-learning models into fused native code for low-latency inference."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cortex.errors import CortexError, InternalError, ModelError, ScheduleError, StructureError

if TYPE_CHECKING:
    from cortex.compiler import compile
    from cortex.exporter import export
    from cortex.frontend.fields import field
    from cortex.frontend.functions import (
        abs,
        concat,
        dot,
        einsum,
        elu,
        embedding,
        exp,
        full,
        layer_norm,
        leaky_relu,
        log,
        max,
        maximum,
        mean,
        min,
        minimum,
        ones,
        outer,
        relu,
        reshape,
        sigmoid,
        softmax,
        split,
        sqrt,
        stack,
        sum,
        tanh,
        transpose,
        where,
        zeros,
    )
    from cortex.frontend.model import model
    from cortex.frontend.state import state
    from cortex.loader import load
    from cortex.primitives.conv2d import conv2d
    from cortex.primitives.matmul import matmul
    from cortex.runtime.devices import gpu_target
    from cortex.runtime.forest import Forest

__version__ = "0.1.0"

_FUNCTIONS = (
    "abs", "concat", "dot", "einsum", "elu", "embedding", "exp", "full", "layer_norm", "leaky_relu", "log", "max",
    "maximum", "mean", "min", "minimum", "ones", "outer", "relu", "reshape", "sigmoid", "softmax", "split",
    "sqrt", "stack", "sum", "tanh", "transpose", "where", "zeros",
)  # fmt: skip

_HOME = dict.fromkeys(_FUNCTIONS, "cortex.frontend.functions") | {
    "Forest": "cortex.runtime.forest",
    "compile": "cortex.compiler",
    "conv2d": "cortex.primitives.conv2d",
    "export": "cortex.exporter",
    "field": "cortex.frontend.fields",
    "gpu_target": "cortex.runtime.devices",
    "load": "cortex.loader",
    "matmul": "cortex.primitives.matmul",
    "model": "cortex.frontend.model",
    "state": "cortex.frontend.state",
}

__all__ = [
    "CortexError", "Forest", "InternalError", "ModelError", "ScheduleError", "StructureError",
    "abs", "compile", "concat", "conv2d", "dot", "einsum", "elu", "embedding", "exp", "export", "field", "full",
    "gpu_target", "layer_norm", "leaky_relu", "load", "log", "matmul", "max", "maximum", "mean", "min", "minimum",
    "model", "ones", "outer", "relu", "reshape", "sigmoid", "softmax", "split", "sqrt", "stack", "state", "sum",
    "tanh", "transpose", "where", "zeros",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing Cortex costs little."""
    if name not in _HOME:
        raise AttributeError(f"module 'cortex' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

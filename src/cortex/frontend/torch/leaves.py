"""The tensors and numbers of a result, by place."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from cortex.frontend.state import StateRecord
from cortex.frontend.torch.categories import is_data


def leaves(result: Any, place: str = "result") -> dict[str, Any]:
    """The tensors and numbers of a result as arrays, by place: `result[0]`, `result['h']`, `result.c`."""
    match result:
        case _ if is_data(result):
            array = result if isinstance(result, np.ndarray) else result.detach().cpu().double().numpy()
            return {place: np.array(array, np.float64)}
        case bool() | int() | float():
            return {place: float(result)}
        case StateRecord():
            parts = [(f".{name}", x) for name, x in result._tensors.items()]
        case dict():
            parts = [(f"[{key!r}]", x) for key, x in result.items()]
        case tuple() if hasattr(result, "_fields"):
            parts = [(f".{name}", getattr(result, name)) for name in result._fields]
        case list() | tuple():
            parts = [(f"[{i}]", x) for i, x in enumerate(result)]
        case _ if dataclasses.is_dataclass(result) and not isinstance(result, type):
            parts = [(f".{f.name}", getattr(result, f.name)) for f in dataclasses.fields(result)]
        case _:
            return {}
    return {name: x for step, part in parts for name, x in leaves(part, place + step).items()}

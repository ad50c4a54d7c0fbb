"""Functions that torch writes in Python: their own code runs, on symbolic tensors.

Such a function first asks whether an argument overrides torch's functions, and calls the override if so. Here it is
rebuilt so that it sees none, and reaches the operators it is made of; those are in the table.
"""

from __future__ import annotations

from functools import lru_cache
from types import FunctionType
from typing import Any

MODULES = ("torch.nn.functional", "torch.functional")
QUESTIONS = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")


@lru_cache(maxsize=256)
def decomposed(function: Any) -> FunctionType | None:
    """`function` without the question, if it is one that torch writes in Python."""
    if not isinstance(function, FunctionType) or function.__module__ not in MODULES:
        return None
    if not any(name in function.__code__.co_names for name in QUESTIONS):
        return None
    scope = {**function.__globals__, **{name: _no for name in QUESTIONS if name in function.__globals__}}
    rebuilt = FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)
    rebuilt.__kwdefaults__ = function.__kwdefaults__
    return rebuilt


def _no(*_: object) -> bool:
    return False

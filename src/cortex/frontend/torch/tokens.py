"""Fields of nodes in constructors of tensors that torch does not let anyone override: `torch.LongTensor([node.word])`.

Such a constructor asks each item for a Python number. It gets one that stands for the field, a token, so far from any
that data has that it cannot be taken for one. The tensor is real, and wherever it is used, tokens become fields again.
"""

from __future__ import annotations

import ast
from typing import Any

import torch

from cortex.frontend import movement
from cortex.frontend.builder import Value
from cortex.frontend.pointwise import fill
from cortex.frontend.spans import running_call, user_frame
from cortex.frontend.standin import Attribute
from cortex.frontend.torch.content import Content, integers, whole_field

CONSTRUCTORS = ("LongTensor", "IntTensor", "FloatTensor", "Tensor")
WHOLE = -(1 << 30)
"""Whole tokens go down from here: they fit 32 bits."""
FLOAT = -(2.0**-90)
STEP = 2.0**-20
"""Float tokens are FLOAT * (1 + k * STEP): exact in single precision."""


class Tokens:
    """The fields that tokens stand for, in one trace."""

    def __init__(self) -> None:
        self._whole: dict[int, Attribute] = {}
        self._float: dict[float, Attribute] = {}

    def whole(self, field: Attribute) -> int:
        """An integer for a field."""
        token = WHOLE - len(self._whole)
        self._whole[token] = field
        return token

    def float(self, field: Attribute) -> float:
        """A float for a field."""
        token = FLOAT * (1 + len(self._float) * STEP)
        self._float[token] = field
        return token

    def are_in(self, x: torch.Tensor) -> bool:
        """Does a real tensor hold tokens?"""
        if not (self._whole or self._float):
            return False
        known = self._float if x.is_floating_point() else self._whole
        return any(element in known for element in x.detach().reshape(-1).tolist())

    def resolved(self, x: torch.Tensor) -> Content:
        """A real tensor with fields where it has tokens."""
        elements, shape = x.detach().reshape(-1).tolist(), tuple(x.shape)
        if not x.is_floating_point():
            return integers([self._element(e) if e in self._whole else int(e) for e in elements], shape)
        parts: list[Value] = [self._float[e]._cortex_value() if e in self._float else fill(e) for e in elements]
        return movement.reshape(movement.concat([movement.reshape(p, (1,)) for p in parts], 0), shape)

    def _element(self, token: int) -> Any:
        field = self._whole[token]
        return whole_field(field) if isinstance(field, Attribute) else field._cortex_index()


def is_constructing() -> bool:
    """Is the user's code calling one of these constructors?"""
    call = running_call()
    match None if call is None else call.func:
        case ast.Attribute(value=ast.Name(), attr=name):
            return name in CONSTRUCTORS
        case ast.Name(id=name):
            return name in CONSTRUCTORS or any(_named(name) is getattr(torch, each) for each in CONSTRUCTORS)
    return False


def _named(name: str) -> Any:
    """What a name means in the user's code that is running."""
    frame = user_frame()
    assert frame is not None, "its call was found"
    if name in frame.f_locals:
        return frame.f_locals[name]
    try:
        return frame.f_globals[name]
    except KeyError:
        return None

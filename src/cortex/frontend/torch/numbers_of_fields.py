"""Functions of Python that numbers of nodes are computed with: `float(node.x)`, `math.sqrt(len(node.children))`.

Python would call them with the number itself, and there would be a kind of node for each. Of a field they make a
computed field (see frontend/computed.py), which is a number to the code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np

from cortex.frontend.builder import is_tracing
from cortex.frontend.computed import OF_MATH
from cortex.frontend.field_arithmetic import compute, is_guarded
from cortex.frontend.standin import Attribute
from cortex.frontend.torch.standins import tracing

NUMBERS = (int, float, np.integer, np.floating, Decimal, Fraction)


def of_fields(name: str, usual: Callable[..., Any]) -> Callable[..., Any]:
    """What a function means that the linearizer knows by this name: of fields, a field still."""

    def run(*args: Any) -> Any:
        if not is_tracing() or is_guarded():
            return usual(*args)
        language = tracing().language
        operands = tuple(map(language.as_field, args))
        fields = [x for x in operands if isinstance(x, Attribute)]
        if not fields or not all(isinstance(x._cortex_sample(), NUMBERS) for x in fields):
            return usual(*args)
        if isinstance(usual, type) and type(fields[0]._cortex_sample()) is usual and len(operands) == 1:
            return language.as_number(fields[0])
        return language.as_number(compute(name, operands))

    return run


CONVERSIONS = {kind.__name__: of_fields(kind.__name__, kind) for kind in (float, int)}


class _Math(ModuleType):
    """`math` with the functions that fields are computed with."""

    def __getattr__(self, name: str) -> Any:
        return getattr(math, name)


for _name in OF_MATH:
    setattr(_Math, _name, staticmethod(of_fields(_name, getattr(math, _name))))
MATH = _Math("math")
FUNCTIONS_OF_MATH = tuple((getattr(math, name), getattr(MATH, name)) for name in OF_MATH)

"""Torch functions of constants: torch itself computes them, while the module is traced."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from cortex.frontend.builder import Value
from cortex.frontend.spans import fail
from cortex.frontend.torch.content import Integers
from cortex.frontend.torch.refusals import GRADIENTS, RANDOM, REMEDIES, operator_name, plain_name
from cortex.frontend.torch.tensor import TorchTensor
from cortex.ra import interp
from cortex.ra.ir import Arity, Field, Lookup, OverChildren, Param, State

OF_NODES = (Arity, Field, Lookup, OverChildren, State)
NEVER = frozenset(f"{REMEDIES[RANDOM]} {REMEDIES[GRADIENTS]} requires_grad_ data_ptr storage untyped_storage".split())


class NotConstant(Exception):
    """An argument is computed, or the function does more than compute a result."""


def computed_now(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What torch makes of constants, as real tensors."""
    name = plain_name(function)
    changes = (name.endswith("_") and not name.endswith("__")) or name.startswith(("__i", "__set", "__del"))
    if name in NEVER or changes or kwargs.get("out") is not None:
        raise NotConstant
    given, named = _real(args), {key: _real(value) for key, value in kwargs.items()}
    try:
        result = function(*given, **named)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise fail(f"{operator_name(function)}: {str(error).splitlines()[0]}") from None
    if not _is_plain(result):
        raise NotConstant
    return result


def _is_plain(x: Any) -> bool:
    return all(map(_is_plain, x)) if isinstance(x, tuple | list) else isinstance(x, torch.Tensor | int | float)


def _real(x: Any) -> Any:
    match x:
        case TorchTensor():
            return _tensor(x)
        case list():
            return [_real(each) for each in x]
        case tuple() if type(x) is tuple:
            return tuple(map(_real, x))
        case torch.Tensor() | int() | float() | str() | None | torch.dtype() | torch.device() | torch.Size() | slice():
            return x
    raise NotConstant


def _tensor(x: TorchTensor) -> torch.Tensor:
    """The elements of a tensor, none of which depends on a node or a parameter."""
    held, dtype = x._cortex_content(), x._cortex_meta.dtype
    if isinstance(held, Integers):
        if not held.known:
            raise NotConstant
        return torch.tensor(held.elements.tolist(), dtype=dtype).reshape(held.shape)
    return torch.from_numpy(_array(held)).to(dtype)


def _array(value: Value) -> np.ndarray[Any, Any]:
    found: dict[str, np.ndarray[Any, Any]] = {}
    for let in value.builder.reachable((value.name,)):
        match let.op:
            case Param(name):
                weights = value.builder.knowledge.weights
                if not weights.is_constant(name):
                    raise NotConstant
                found[let.name] = weights.arrays((name,))[name]
            case _ if isinstance(let.op, OF_NODES):
                raise NotConstant
            case op:
                found[let.name] = interp.constant(op, found)
    return np.array(found[value.name])

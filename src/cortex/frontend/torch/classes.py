"""What class a field is of: a question about the node, which Python code may ask and torch's own code may not.

    isinstance(node.x, torch.Tensor)     asked: of what class is node.x?
    torch.where(mask, node.x, 0)         torch asks too, and would read what stands for the tensor as one of its own

Both come down to `__class__`, and C code has no frame that would tell them apart. So `isinstance` and its like get
another meaning when the user's code is rebuilt (`rebuild.py`). In code that is not rebuilt, `__class__` answers what
can be seen to be such a question.
"""

from __future__ import annotations

import ast
import builtins
from abc import ABCMeta
from collections.abc import Iterator
from types import BuiltinMethodType, FrameType, UnionType
from typing import Any

import numpy as np

from cortex.frontend.builder import is_tracing
from cortex.frontend.spans import DISPATCHERS, fail
from cortex.frontend.standin import StandIn
from cortex.frontend.torch.if_loaded import is_torch_tensor, torch_if_loaded
from cortex.frontend.written import instruction, passes_on, running

ASKING = (isinstance, getattr)
"""Functions that ask for `__class__` on behalf of their caller."""
ABSTRACT, FUNCTOOLS = DISPATCHERS


def is_asking_for_user(frame: FrameType) -> bool:
    """Is this frame that of `torch.is_tensor`, which is Python code, or of a function of `functools.singledispatch`?"""
    code = frame.f_code
    torch = torch_if_loaded()
    is_asked = torch is not None and code is torch.is_tensor.__code__
    return is_asked or (code.co_filename == FUNCTOOLS and "__class__" in code.co_names)


def asks_class(frame: FrameType) -> bool:
    """Does this frame, from which `__class__` of a tensor was asked for, ask by Python code, and not by torch's?"""
    code = frame.f_code
    if code.co_filename == ABSTRACT:
        return True
    at = running(frame)
    step = instruction(frame) if at is None else ""
    if isinstance(at, ast.Attribute | ast.pattern) or step in ("LOAD_ATTR", "MATCH_CLASS"):
        return True
    if isinstance(at, ast.Call) and _is_asking(frame, at.func):
        return True
    is_rebuilt = frame.f_globals.get("isinstance") is meaning_of_isinstance
    if at is None:
        may_ask = "CALL" not in step or (not is_rebuilt and "isinstance" in code.co_names)
    else:
        may_ask = isinstance(at, ast.Call) and not is_rebuilt and passes_on(code, "isinstance")
    if may_ask:
        raise fail(
            f"{code.co_name} asks for the class of a field, and does not call isinstance itself, or its source is not "
            "at hand. Call it in a function that is defined in a file: isinstance(node.x, torch.Tensor)."
        )
    return False


def _is_asking(frame: FrameType, x: ast.expr) -> bool:
    match x:
        case ast.Attribute(attr=name):
            return any(name == each.__name__ for each in ASKING)
        case ast.Name(id=name):
            found = frame.f_locals.get(name, frame.f_globals.get(name, getattr(builtins, name, None)))
            return any(found is each for each in ASKING)
    return False


def _class_of(x: Any) -> type | None:
    """The class of what `x` stands for, as a fact; None where it stands for nothing."""
    if not is_tracing():
        return None
    if issubclass(type(x), StandIn):
        found: type = x._cortex_class()
        return found
    return getattr(x, "_cortex_kind", None) if hasattr(type(x), "_cortex_number") else None


def _sample(x: Any) -> Any:
    """What a field or a node of the user's is in the node that is traced."""
    found = x._cortex_sample
    return found() if hasattr(type(x), "_cortex_tag") else found


def _flat(kinds: Any) -> Iterator[Any]:
    for kind in kinds if isinstance(kinds, tuple) else kinds.__args__ if isinstance(kinds, UnionType) else (kinds,):
        if isinstance(kind, tuple | UnionType):
            yield from _flat(kind)
        else:
            yield kind


def meaning_of_isinstance(x: Any, kinds: Any) -> bool:
    """What `isinstance(x, kinds)` means in the user's code."""
    kind = _class_of(x)
    if kind is None:
        return isinstance(x, kinds)
    tensor = getattr(torch_if_loaded(), "Tensor", None)
    if all(type(each) in (type, ABCMeta) or each is tensor for each in _flat(kinds)):
        return issubclass(kind, kinds)
    if not _is_field(x):
        return issubclass(kind, kinds) if hasattr(type(x), "_cortex_number") else isinstance(x, kinds)
    x._cortex_ask_form()  # torch.FloatTensor is a question about the elements
    return isinstance(_sample(x), kinds)


def of_sizes(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What `function(...)` means, which may be one of torch's: sizes decide what is computed, hence are numbers."""
    torch = torch_if_loaded()
    if torch is None or not all(type(x) is torch.Size or issubclass(_class_of(x) or type(x), int) for x in args):
        return function(*args, **kwargs)
    sizes = tuple(map(_whole, args))
    if function is torch.Tensor or function is torch.FloatTensor:
        return torch.zeros(*sizes)
    return function(*(sizes if isinstance(function, BuiltinMethodType) else args), **kwargs)


def _whole(x: Any) -> Any:
    """A size that is a field of a node, or a number that stands for one, as an integer."""
    if _class_of(x) is None:
        return x
    return x._cortex_tag() if issubclass(type(x), StandIn) else x._cortex_number()


def meaning_of_callable(x: Any) -> bool:
    """What `callable(x)` means in the user's code."""
    if _class_of(x) is None:
        return callable(x)
    return issubclass(type(x), StandIn) and callable(_sample(x))


def meaning_of_isscalar(x: Any) -> bool:
    """What `np.isscalar(x)` means in the user's code."""
    if _class_of(x) is None:
        return bool(np.isscalar(x))
    return not issubclass(type(x), StandIn) or bool(np.isscalar(_sample(x)))


def meaning_of_hasattr(x: Any, name: str) -> bool:
    """What `hasattr(x, name)` means in the user's code; what stands for `x` has special methods of all classes."""
    is_special = isinstance(name, str) and name.startswith("__")
    if is_tracing() and (_is_field(x) or (is_special and hasattr(type(x), "_cortex_steps"))):
        sample, kind = _sample(x), _class_of(x)
        if is_special or hasattr(kind, name) or not is_torch_tensor(sample):
            return hasattr(sample, name)
    return hasattr(x, name)


def _is_field(x: Any) -> bool:
    return hasattr(type(x), "_cortex_ask_form")

"""IR nodes, steps and plain data as JSON, and back; reading builds values of known classes and runs nothing else.

    number, string, true, false, null      themselves
    [x, ...]                               a tuple
    {"ra.Let": [field, ...]}               a node: its class and all its fields in order, source positions left out
    {"ilir.Scope": "param"}                a member of an enumeration

A file of the cache is written with this in one process and read in another one; see `entry`.
"""

from __future__ import annotations

import dataclasses
import inspect
from enum import Enum
from functools import cache
from types import ModuleType
from typing import Any

from cortex.cache.typed import checks_of
from cortex.codegen.gpu.target import GpuTarget
from cortex.codegen.target import Target
from cortex.cost.choose import Considered
from cortex.frontend.computed import Computed, Constant, Named
from cortex.frontend.torch.calls import Row, Storing
from cortex.frontend.torch.steps import (
    At,
    Attr,
    Called,
    Contains,
    Given,
    Has,
    Kept,
    LookedUp,
    Of,
    Question,
    Sliced,
    Sorted,
)
from cortex.ilir import ir as ilir
from cortex.ir import scalar
from cortex.ir.node import Node
from cortex.ra import ir as ra
from cortex.runtime.signature import Signature
from cortex.schedule.default import Choices
from cortex.schedule.registers import TileChoice
from cortex.schedule.schedule import STEPS

WAYS = (
    Attr,
    At,
    Given,
    Sliced,
    Sorted,
    Kept,
    Question,
    Called,
    Of,
    Contains,
    Has,
    LookedUp,
    Storing,
    Row,
    Computed,
    Constant,
    Named,
)


def encode(value: Any) -> Any:
    """`value` as what `json` writes; ValueError where it holds anything but nodes, steps, tuples and plain data."""
    kind: type[Any] = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is tuple:
        return [encode(item) for item in value]
    name = _names().get(kind)
    if name is None:
        raise ValueError(f"{value!r} cannot be written")
    if isinstance(value, Enum):
        return {name: value.value}
    return {name: [encode(getattr(value, field)) for field in _fields()[kind]]}


def decode(data: Any) -> Any:
    """What `encode` was given; ValueError or TypeError where `data` is nothing that it makes."""
    kind = type(data)
    if kind is list:
        return tuple([decode(item) for item in data])
    if kind is not dict:
        return data
    if len(data) != 1:
        raise ValueError(f"a node has one name, not {len(data)}")
    [(name, content)] = data.items()
    cls = _classes().get(name)
    if cls is None:
        raise ValueError(f"nothing is called {name!r}")
    if issubclass(cls, Enum):
        return cls(content)
    names = _fields()[cls]
    if type(content) is not list or len(content) > len(names):
        raise ValueError(f"{name} has {len(names)} fields")
    values = [decode(item) for item in content]
    for field, check, value in zip(names, checks_of(cls, names), values, strict=False):
        if not check(value):
            raise ValueError(f"{name}.{field} is no {type(value).__name__}")
    # what is left out, by a Cortex that did not know it yet, has a default; or it is a TypeError
    return cls(**dict(zip(names, values, strict=False)))


@cache
def _classes() -> dict[str, type[Any]]:
    own = {cls.__name__: cls for cls in (Signature, Considered, Target, GpuTarget, Choices, TileChoice)}
    steps = {f"step.{s.__name__}": s for s in STEPS}
    ways = {f"way.{cls.__name__}": cls for cls in WAYS}
    return own | steps | ways | _of(ra, "ra") | _of(ilir, "ilir") | _of(scalar, "scalar")


@cache
def _names() -> dict[type[Any], str]:
    return {cls: name for name, cls in _classes().items()}


@cache
def _fields() -> dict[type[Any], tuple[str, ...]]:
    kept = {cls for cls in _names() if not issubclass(cls, Enum)}
    return {cls: tuple(f.name for f in dataclasses.fields(cls) if f.compare) for cls in kept}


def _of(module: ModuleType, prefix: str) -> dict[str, type[Any]]:
    """The nodes and enumerations of a grammar, in its module or in others of its package."""
    return {
        f"{prefix}.{name}": cls
        for name, cls in inspect.getmembers(module, inspect.isclass)
        if cls.__module__.rpartition(".")[0] == module.__package__
        and (dataclasses.is_dataclass(cls) if issubclass(cls, Node) else issubclass(cls, Enum))
    }

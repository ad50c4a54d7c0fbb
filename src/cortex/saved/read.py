"""Read a file that `write` wrote. Values of known classes are built, and nothing is run."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from cortex.cache.encoding import decode
from cortex.cache.entry import Entry
from cortex.codegen.gpu.target import GpuTarget
from cortex.codegen.target import Target
from cortex.errors import ModelError, ScheduleError
from cortex.frontend.arity.lengths import CheckedLengths
from cortex.frontend.torch.interface import Interface
from cortex.frontend.torch.serving import Serving
from cortex.ra import ir as ra
from cortex.runtime.signature import Signature
from cortex.runtime.storage import Array
from cortex.saved.checked import decode_checked
from cortex.saved.container import unpack
from cortex.saved.modules import decode_interface, decode_serving, decode_ways
from cortex.saved.names import checked_sources
from cortex.saved.write import Wanted
from cortex.schedule.schedule import Schedule

UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, ScheduleError)
"""What building values from a description that is none may raise."""


@dataclass(frozen=True)
class Program:
    """Object code with what is needed to call it, and the programs that fill its tables."""

    entry: Entry
    target: Target
    tables: tuple[Program, ...]


@dataclass(frozen=True)
class SavedPart:
    """One model of a file. `program` reads what only the Cortex that wrote it is sure to understand.

    It is None for a model that is for a device.
    """

    model: ra.Model
    checked: tuple[CheckedLengths | None, ...]
    threads: int
    built_for: int
    weights: dict[str, Array]
    names: dict[str, Any]
    serving: Serving | None
    program: Callable[[], Program] | None


@dataclass(frozen=True)
class Saved:
    """What is in a file of `size` bytes, and by which compiler."""

    what: str
    size: int
    compiler: str
    wanted: Wanted
    interface: Interface | None
    parts: tuple[SavedPart, ...]


def read(path: str | os.PathLike[str]) -> Saved:
    """What is in a file; ModelError for anything but a whole one that this Cortex understands."""
    what = repr(os.fspath(path))
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ModelError(f"{what} cannot be read: {error.strerror}.") from None
    contents, sections = unpack(content, what)
    cortex = contents.get("cortex") if type(contents) is dict else None
    try:
        compiler, cortex = _text(contents["compiler"]), _text(cortex)
        recursion, choices, steps, table_bytes, narrow = decode(contents["wanted"])
        schedule = None if steps is None else Schedule(steps)
        device = decode(contents.get("device"))
        wanted = Wanted(cortex, recursion, choices, schedule, table_bytes, narrow, device)
        parts = tuple(_part(part, sections, what, cortex) for part in contents["parts"])
        interface = None if contents["interface"] is None else decode_interface(contents["interface"])
        if not parts or any((part.serving is None) != (interface is None) for part in parts):
            raise ValueError("parts")
        if not (device is None or isinstance(device, GpuTarget)):
            raise ValueError("device")
        if any((part.program is None) is (device is None) for part in parts):
            raise ValueError("programs")
    except UNREADABLE:
        raise _not_understood(what, cortex) from None
    return Saved(what, len(content), compiler, wanted, interface, parts)


def _part(data: Any, sections: list[memoryview], what: str, cortex: str) -> SavedPart:
    m, checked = decode(data["model"]), tuple(map(decode_checked, data["checked"]))
    if not isinstance(m, ra.Model) or len(checked) != len(m.kinds):
        raise ValueError("model and numbers of children")
    weights = {_text(name): _array(shape, sections[_whole(number)]) for name, shape, number in data["weights"]}
    if [(p.name, p.type.shape) for p in m.params] != [(name, array.shape) for name, array in weights.items()]:
        raise ValueError("weights of the model")
    checked_sources(data["names"])
    if data["names"]["ways"] is not None:
        decode_ways(data["names"]["ways"])

    def program() -> Program:
        try:
            return _program(data["program"], sections)
        except UNREADABLE:
            raise _not_understood(what, cortex) from None

    threads, built_for = _whole(data["threads"]), _whole(data["built_for"])
    serving = None if data["serving"] is None else decode_serving(data["serving"])
    is_for_device = data["program"] is None
    names = data["names"]
    return SavedPart(m, checked, threads, built_for, weights, names, serving, None if is_for_device else program)


def _program(data: Any, sections: list[memoryview]) -> Program:
    m, steps, considered, signature = map(decode, data["parts"])
    target = decode(data["target"])
    if not isinstance(m, ra.Model) or not isinstance(signature, Signature) or not isinstance(target, Target):
        raise ValueError("model, signature and target")
    code = bytes(sections[_whole(data["code"])])
    entry = Entry(m, Schedule(steps), considered, signature, code, _text(data["name"]))
    tables = tuple(_program(table, sections) for table in data["tables"])
    if len(tables) != len(m.tables):
        raise ValueError("tables")
    return Program(entry, target, tables)


def _array(shape: Any, section: memoryview) -> Array:
    sizes = tuple(_whole(n) for n in shape)
    if prod(sizes) * 4 != len(section):
        raise ValueError("size of an array")
    return np.frombuffer(section, "<f4").reshape(sizes)


def _text(x: Any) -> str:
    if type(x) is not str:
        raise ValueError("text")
    return x


def _whole(x: Any) -> int:
    if type(x) is not int or x < 0:
        raise ValueError("number")
    return x


def _not_understood(what: str, cortex: Any) -> ModelError:
    """The checksum is right, so it is what some Cortex wrote."""
    by = f"Cortex {cortex}" if type(cortex) is str else "something else"
    return ModelError(
        f"{what} was saved by {by}, and this Cortex does not understand its description; load it with that version, or "
        "compile the model and save it again."
    )

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
from cortex.cache.key import contents as compiler_contents
from cortex.codegen.gpu.target import GpuTarget
from cortex.codegen.target import Target
from cortex.cost.choose import Considered
from cortex.errors import InternalError, ModelError, ScheduleError, StructureError, printable
from cortex.frontend.arity.lengths import CheckedLengths
from cortex.frontend.torch.interface import Interface
from cortex.frontend.torch.serving import Serving
from cortex.ir.step import Step
from cortex.ra import ir as ra
from cortex.ra.verify import verify
from cortex.runtime.signature import Signature
from cortex.runtime.storage import Array
from cortex.runtime.threads import MOST_THREADS
from cortex.saved.checked import decode_checked
from cortex.saved.container import unpack
from cortex.saved.modules import decode_interface, decode_serving, decode_ways
from cortex.saved.names import checked_sources
from cortex.saved.seal import SEAL, seal_of
from cortex.saved.write import Wanted
from cortex.schedule.default import Choices
from cortex.schedule.narrow import Narrow
from cortex.schedule.schedule import Schedule

UNREADABLE = (
    *(ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError, OverflowError),
    *(RecursionError, MemoryError, ScheduleError, StructureError, InternalError),
)
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
    except ValueError as error:  # a NUL in the name
        raise ModelError(f"{what} cannot be read: {error}.") from None
    contents, sections = unpack(content, what)
    cortex = contents.get("cortex") if type(contents) is dict else None
    try:
        compiler, cortex = _text(contents["compiler"]), _text(cortex)
        known = contents.get(SEAL, None if compiler == compiler_contents() else "")
        if known != "" and known != seal_of(contents):
            raise ValueError("seal")
        device = decode(contents.get("device"))
        wanted = _wanted(cortex, decode(contents["wanted"]), device)
        parts = tuple(_part(part, sections, what, cortex) for part in contents["parts"])
        interface = None if contents["interface"] is None else decode_interface(contents["interface"])
        if not parts or any((part.serving is None) != (interface is None) for part in parts):
            raise ValueError("parts")
        if not (device is None or isinstance(device, GpuTarget)):
            raise ValueError("device")
        if any((part.program is None) is (device is None) for part in parts):
            raise ValueError("programs")
        for part in parts:
            _check_serving(part, interface)
    except UNREADABLE:
        raise not_understood(what, cortex) from None
    return Saved(what, len(content), compiler, wanted, interface, parts)


def _wanted(cortex: str, asked: Any, device: GpuTarget | None) -> Wanted:
    recursion, choices, steps, table_bytes, narrow = asked
    for given, kind in ((recursion, tuple), (choices, Choices), (steps, tuple), (narrow, Narrow)):
        if not (given is None or isinstance(given, kind)):
            raise ValueError("what was asked for")
    if not all(isinstance(step, Step) for step in recursion or ()):
        raise ValueError("steps on the recursion")
    return Wanted(
        cortex, recursion, choices, None if steps is None else Schedule(steps), _whole(table_bytes), narrow, device
    )


def _check_serving(part: SavedPart, interface: Interface | None) -> None:
    """Refuse calls that cannot be made, and results that there are not."""
    if interface is None or part.serving is None:
        return
    parameters = interface.signature.parameters
    states = {s.name for s in part.model.outputs} | {rows.name for kind in part.model.kinds for rows in kind.rows}
    arguments = {part.serving.node, *part.serving.tensors, *(name for name, *_ in part.serving.constants)}
    if not arguments <= set(parameters) or not set(part.serving.names) <= states:
        raise ValueError("how a module is called")


def _part(data: Any, sections: list[memoryview], what: str, cortex: str) -> SavedPart:
    m, checked = decode(data["model"]), tuple(map(decode_checked, data["checked"]))
    if not isinstance(m, ra.Model) or len(checked) != len(m.kinds):
        raise ValueError("model and numbers of children")
    verify(m)
    for kind, lengths in zip(m.kinds, checked, strict=True):
        if lengths is not None and not {*lengths.lists} <= {*m.lists}:
            raise ValueError(f"lists of {kind.name}")
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
            raise not_understood(what, cortex) from None

    threads, built_for = _whole(data["threads"]), _whole(data["built_for"])
    if not 1 <= min(threads, built_for) <= max(threads, built_for) <= MOST_THREADS:
        raise ValueError("threads")
    serving = None if data["serving"] is None else decode_serving(data["serving"])
    is_for_device = data["program"] is None
    names = data["names"]
    return SavedPart(m, checked, threads, built_for, weights, names, serving, None if is_for_device else program)


def _program(data: Any, sections: list[memoryview]) -> Program:
    m, steps, considered, signature = map(decode, data["parts"])
    target = decode(data["target"])
    if not isinstance(m, ra.Model) or not isinstance(signature, Signature) or not isinstance(target, Target):
        raise ValueError("model, signature and target")
    if type(considered) is not tuple or not all(isinstance(each, Considered) for each in considered):
        raise ValueError("what was considered")
    verify(m)
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


def not_understood(what: str, cortex: Any) -> ModelError:
    """The checksum is right, so it is what some Cortex wrote."""
    by = f"Cortex {printable(cortex[:40])}" if type(cortex) is str else "something else"
    return ModelError(
        f"{what} was saved by {by}, and this Cortex does not understand its description; load it with that version, or "
        "compile the model and save it again."
    )

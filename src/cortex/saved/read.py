"""Read a file that `write` wrote. Values of known classes are built, and nothing is run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cortex.cache.encoding import decode
from cortex.cache.entry import Entry
from cortex.codegen.gpu.target import GpuTarget
from cortex.codegen.target import Target
from cortex.cost.choose import Considered
from cortex.errors import InternalError, ScheduleError, StructureError
from cortex.frontend.arity.lengths import CheckedLengths
from cortex.frontend.torch.interface import Interface
from cortex.frontend.torch.serving import Serving
from cortex.ir.step import Step
from cortex.ra import ir as ra
from cortex.ra.verify import verify
from cortex.runtime.ready import Ready
from cortex.runtime.recorded import array_in
from cortex.runtime.signature import Signature
from cortex.runtime.storage import Array
from cortex.runtime.threads import MOST_THREADS
from cortex.saved.checked import decode_checked
from cortex.saved.head import ILL_FORMED, File, not_understood, opened
from cortex.saved.modules import decode_interface, decode_serving, decode_ways
from cortex.saved.names import checked_sources
from cortex.saved.source import Source
from cortex.saved.write import Wanted
from cortex.schedule.default import Choices
from cortex.schedule.narrow import Narrow
from cortex.schedule.schedule import Schedule

UNREADABLE = (*ILL_FORMED, ScheduleError, StructureError, InternalError)
"""What building values from a description that is none may raise."""


@dataclass(frozen=True)
class Program:
    """Object code with what is needed to call it, and the programs that fill its tables."""

    entry: Entry
    target: Target
    tables: tuple[Program, ...]


@dataclass(frozen=True)
class SavedProgram:
    """Code for one machine and so many threads. `program` reads what only some versions of Cortex understand."""

    target: Target
    threads: int
    program: Callable[[], Program]
    record: int
    """The section of its record."""


@dataclass(frozen=True)
class SavedPart:
    """One model of a file; its programs are in the order of preference of who saved it.

    There are none for a model that is for a device.
    """

    model: ra.Model
    checked: tuple[CheckedLengths | None, ...]
    threads: int
    weights: dict[str, Array]
    names: dict[str, Any]
    serving: Serving | None
    programs: tuple[SavedProgram, ...]


@dataclass(frozen=True)
class Saved:
    """What is in a file of `size` bytes, and by which compiler."""

    what: str
    size: int
    code_format: int
    wanted: Wanted
    interface: Interface | None
    parts: tuple[SavedPart, ...]


def read(source: Source, verify: bool = False) -> Saved:
    """What is in a file; ModelError for anything but a whole one that this Cortex understands."""
    return read_all(opened(source, verify))


def read_all(file: File) -> Saved:
    """The same of a file that was opened."""
    what, cortex, sections = file.what, file.cortex, file.sections
    try:
        contents = json.loads(bytes(sections[_whole(file.head["description"])]))
        device = decode(contents.get("device"))
        wanted = _wanted(cortex, decode(contents["wanted"]), device)
        parts = tuple(_part(part, sections, what, cortex) for part in contents["parts"])
        interface = None if contents["interface"] is None else decode_interface(contents["interface"])
        if not parts or any((part.serving is None) != (interface is None) for part in parts):
            raise ValueError("parts")
        if not (device is None or isinstance(device, GpuTarget)):
            raise ValueError("device")
        if any(bool(part.programs) is (device is not None) for part in parts):
            raise ValueError("programs")
        for part in parts:
            _check_serving(part, interface)
    except UNREADABLE:
        raise not_understood(what, cortex) from None
    return Saved(what, file.size, file.code_format, wanted, interface, parts)


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
    ways = data["names"]["ways"]
    of_ways = {} if ways is None else decode_ways(ways).steps  # lists without calls on their items too
    lists = {*m.lists, *(p.relation for p in m.positions), *of_ways}
    for kind, lengths in zip(m.kinds, checked, strict=True):
        if lengths is not None and not lists.issuperset(lengths.lists):
            raise ValueError(f"lists of {kind.name}")
    weights = {_text(name): _array(shape, pitch, sections[_whole(i)]) for name, shape, pitch, i in data["weights"]}
    if [(p.name, p.type.shape) for p in m.params] != [(name, array.shape) for name, array in weights.items()]:
        raise ValueError("weights of the model")
    checked_sources(data["names"])

    threads = _threads(data["threads"])
    serving = None if data["serving"] is None else decode_serving(data["serving"])
    programs = tuple(_saved_program(program, sections, what, cortex) for program in data["programs"])
    return SavedPart(m, checked, threads, weights, data["names"], serving, programs)


def _saved_program(data: Any, sections: list[memoryview], what: str, cortex: str) -> SavedProgram:
    target = decode(data["target"])
    if not isinstance(target, Target):
        raise ValueError("target")

    codes = {number: bytes(sections[number]) for number in _code_sections(data)}  # the file need not stay in memory

    def program() -> Program:
        try:
            return _program(data, codes)
        except UNREADABLE:
            raise not_understood(what, cortex) from None

    return SavedProgram(target, _threads(data["threads"]), program, _whole(data["record"]))


def _code_sections(data: Any) -> Iterator[int]:
    yield _whole(data["code"])
    for table in data["tables"]:
        yield from _code_sections(table)


def ready_of(file: File, program: SavedProgram) -> Ready:
    """The arrays of a program as its code takes them, which stay in the file."""
    try:
        return _ready(json.loads(bytes(file.sections[program.record])), file.sections)
    except UNREADABLE:
        raise not_understood(file.what, file.cortex) from None


def _ready(record: Any, sections: list[memoryview]) -> Ready:
    arrays = {}
    for name, number in record["placed"].items():
        match record["arrays"][_whole(number)]:
            case ["weight", section, str(dtype), [*shape]]:
                arrays[name] = array_in(sections[_whole(section)], dtype, shape)
            case _:
                raise ValueError("arrays of a program")
    return Ready(arrays, tuple(_ready(table[-1], sections) for table in record["tables"]))


def _threads(x: Any) -> int:
    if not 1 <= _whole(x) <= MOST_THREADS:
        raise ValueError("threads")
    return _whole(x)


def _program(data: Any, codes: Mapping[int, bytes]) -> Program:
    m, steps, considered, signature = map(decode, data["parts"])
    target = decode(data["target"])
    if not isinstance(m, ra.Model) or not isinstance(signature, Signature) or not isinstance(target, Target):
        raise ValueError("model, signature and target")
    if type(considered) is not tuple or not all(isinstance(each, Considered) for each in considered):
        raise ValueError("what was considered")
    verify(m)
    code = codes[_whole(data["code"])]
    entry = Entry(m, Schedule(steps), considered, signature, code, _text(data["name"]))
    tables = tuple(_program(table, codes) for table in data["tables"])
    if len(tables) != len(m.tables):
        raise ValueError("tables")
    return Program(entry, target, tables)


def _array(shape: Any, pitch: Any, section: memoryview) -> Array:
    """The weight in a section, whose rows are `pitch` elements apart."""
    sizes = [_whole(n) for n in shape]
    if sizes and sizes[-1] > _whole(pitch):
        raise ValueError("rows of an array")
    whole = array_in(section, "<f4", [*sizes[:-1], pitch] if sizes else [])
    return whole[..., : sizes[-1]] if sizes else whole


def _text(x: Any) -> str:
    if type(x) is not str:
        raise ValueError("text")
    return x


def _whole(x: Any) -> int:
    if type(x) is not int or x < 0:
        raise ValueError("number")
    return x

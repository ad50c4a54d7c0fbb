"""Write compiled models to a file.

The head of the file says which Cortex wrote it, the version of the format of its code, the checksums of all sections,
the sections of the description and of the records (record.py), and the seal of all that (seal.py).

The description has what was asked of the compiler, how a module is called, and for each program (a module that is
called with different constants has several):

    model       as it was traced: what is compiled again where the code does not fit the machine
    checked     for each kind, the numbers of children that it is for if it is of any arity (checked.py)
    programs    for each instruction set and number of threads: the machine that the code is for, the model after the
                steps on its recursion, all steps, the signature, and the section of the record; the same of the
                programs that fill its tables. Empty for a device, where the model is compiled when it is loaded
    weights     names, shapes, elements from row to row, and sections; equal arrays share one, also with the records
    names       what names mean on the user's objects (names.py)
    serving     how calls of a module become requests (modules.py); null for others
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cortex.cache.encoding import encode
from cortex.codegen.gpu.device_code import DeviceCode
from cortex.codegen.gpu.target import GpuTarget
from cortex.errors import ModelError
from cortex.frontend.torch.interface import Interface
from cortex.ir.step import Step
from cortex.ra import ir as ra
from cortex.runtime.code_format import CODE_FORMAT
from cortex.runtime.compiled import Compiled
from cortex.runtime.linearize import names_read
from cortex.runtime.part import Built, Part
from cortex.runtime.storage import Array, padded
from cortex.saved.checked import encode_checked
from cortex.saved.container import Buffer, pack, table_of
from cortex.saved.modules import encode_interface, encode_serving
from cortex.saved.names import describe_names
from cortex.saved.record import aligns_of, raw, record_of
from cortex.saved.seal import SEAL, seal_of
from cortex.saved.source import Sink, write_sink
from cortex.schedule.default import Choices
from cortex.schedule.narrow import Narrow
from cortex.schedule.schedule import Schedule


@dataclass(frozen=True)
class Wanted:
    """What was asked of which compiler: the part of `compile`'s arguments that decides how a model is compiled."""

    cortex: str
    recursion: tuple[Step[ra.Model], ...] | None
    choices: Choices | None
    schedule: Schedule | None
    table_bytes: int
    narrow: Narrow | None
    device: GpuTarget | None = None

    def save(self, sink: Sink, parts: Sequence[Part], interface: Interface | None) -> None:
        """Write a file that has all of the model in these parts."""
        sections = Sections()
        steps = None if self.schedule is None else self.schedule.steps
        try:
            description: dict[str, Any] = {
                "wanted": encode((self.recursion, self.choices, steps, self.table_bytes, self.narrow)),
                "device": encode(self.device),
                "interface": None if interface is None else encode_interface(interface),
                "parts": [_part(part, sections) for part in parts],
            }
            contents: dict[str, Any] = {
                "cortex": self.cortex,
                "code_format": CODE_FORMAT,
                "description": sections.add(_json(description)),
                "calls": "model" if interface is None else "module",
                "records": [_brief(program) for program in description["parts"][0]["programs"]],
                "functions": any(None in part["names"]["sources"].values() for part in description["parts"]),
                "threads": parts[0].threads,
            }
            contents["checksums"] = [checksum for _, checksum in table_of(sections.all)]
            pieces = pack(contents | {SEAL: seal_of(contents)}, sections.all)
        except ValueError as error:
            raise ModelError(
                f"model '{parts[0].model.name}' cannot be saved: {error}. Numbers, strings, truth values and None can, "
                "and tuples of them."
            ) from None
        write_sink(sink, pieces)


class Sections:
    """The sections of a file; equal ones are one."""

    def __init__(self) -> None:
        self.all: list[Buffer] = []
        self._known: dict[bytes, int] = {}

    def add(self, content: Buffer) -> int:
        """The number of the section with this content."""
        number = self._known.setdefault(hashlib.sha256(content).digest(), len(self.all))
        if number == len(self.all):
            self.all.append(content)
        return number


def _part(part: Part, sections: Sections) -> dict[str, Any]:
    lengths = [each for _, each in part.checked]
    names = names_read(part.model, lengths).union(*(names_read(b.compiled.model, lengths) for b in part.built))
    aligns = aligns_of(part.built[0].compiled)
    return {
        "model": encode(part.model),
        "checked": [encode_checked(lengths) for _, lengths in part.checked],
        "threads": part.threads,
        "programs": [
            _built(part, built, sections) for built in part.built if not isinstance(built.compiled.code, DeviceCode)
        ],
        "weights": [_weight(name, array, aligns.get(name, 1), sections) for name, array in part.weights.items()],
        "names": describe_names(part.accessors, names),
        "serving": None if part.serving is None else encode_serving(part.serving),
    }


def _weight(name: str, array: Array, align: int, sections: Sections) -> list[Any]:
    """A weight: its name, shape, elements from row to row and section. It is padded as code takes it: both are one."""
    whole = padded(array, align)
    return [name, list(array.shape), whole.shape[-1] if whole.shape else 1, sections.add(raw(whole))]


def _built(part: Part, built: Built, sections: Sections) -> dict[str, Any]:
    record = record_of(built.compiled, part.weights, part.accessors, part.checked, sections)
    number = sections.add(_json(record))
    return {"threads": built.threads, "record": number} | _program(built.compiled, record, sections)


def _brief(program: dict[str, Any]) -> list[Any]:
    """What has to be known of a program to choose one: its machine, and for how many threads it is."""
    [(_, (triple, _, features, lanes, *_))] = program["target"].items()
    return [triple.split("-", 1)[0], features, lanes, program["threads"], program["record"]]


def _json(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode("ascii")


def _program(compiled: Compiled, record: dict[str, Any], sections: Sections) -> dict[str, Any]:
    parts = (compiled.model, compiled.schedule.steps, compiled.considered, compiled.signature)
    return {
        "name": compiled.object_code.entry,
        "target": encode(compiled.object_code.target),
        "parts": [encode(part) for part in parts],
        "code": record["code"],
        "tables": [
            _program(table, inner[-1], sections) for table, inner in zip(compiled.tables, record["tables"], strict=True)
        ],
    }

"""Write compiled models to a file.

The description of a model has, for each program (a module that is called with different constants has several):

    model       as it was traced: what is compiled again where the code does not fit the machine
    checked     for each kind, the numbers of children that it is for if it is of any arity (checked.py)
    program     the machine that the code is for, the model after the steps on its recursion, all steps, the signature,
                and the section with the code; the same of the programs that fill its tables. None for a device, where
                the model is compiled when it is loaded
    weights     names, shapes and sections; equal arrays share one
    names       what names mean on the user's objects (names.py)
    serving     how calls of a module become requests (modules.py); null for others

and, once, what was asked of the compiler, which Cortex it was, and the seal of all that (seal.py).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from errno import EISDIR
from pathlib import Path
from typing import Any

from cortex.cache.encoding import encode
from cortex.cache.key import contents as compiler_contents
from cortex.codegen.gpu.device_code import DeviceCode
from cortex.codegen.gpu.target import GpuTarget
from cortex.errors import ModelError
from cortex.frontend.torch.interface import Interface
from cortex.ir.step import Step
from cortex.ra import ir as ra
from cortex.runtime.executable import Compiled
from cortex.runtime.linearize import names_read
from cortex.runtime.part import Part
from cortex.saved.checked import encode_checked
from cortex.saved.container import pack
from cortex.saved.modules import encode_interface, encode_serving
from cortex.saved.names import describe_names
from cortex.saved.seal import SEAL, seal_of
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

    def save(self, path: str | os.PathLike[str], parts: Sequence[Part], interface: Interface | None) -> None:
        """Write a file that has all of the model in these parts."""
        sections = Sections()
        steps = None if self.schedule is None else self.schedule.steps
        try:
            description: dict[str, Any] = {
                "cortex": self.cortex,
                "compiler": compiler_contents(),
                "wanted": encode((self.recursion, self.choices, steps, self.table_bytes, self.narrow)),
                "device": encode(self.device),
                "interface": None if interface is None else encode_interface(interface),
                "parts": [_part(part, sections) for part in parts],
            }
            pieces = pack(description | {SEAL: seal_of(description)}, sections.all)
        except ValueError as error:
            raise ModelError(
                f"model '{parts[0].model.name}' cannot be saved: {error}. Numbers, strings, truth values and None can, "
                "and tuples of them."
            ) from None
        _write(Path(path), pieces)


class Sections:
    """The sections of a file; equal ones are one."""

    def __init__(self) -> None:
        self.all: list[bytes] = []
        self._known: dict[bytes, int] = {}

    def add(self, content: bytes) -> int:
        """The number of the section with this content."""
        number = self._known.setdefault(hashlib.sha256(content).digest(), len(self.all))
        if number == len(self.all):
            self.all.append(content)
        return number


def _part(part: Part, sections: Sections) -> dict[str, Any]:
    lengths = [each for _, each in part.checked]
    names = names_read(part.model, lengths) | names_read(part.compiled.model, lengths)
    return {
        "model": encode(part.model),
        "checked": [encode_checked(lengths) for _, lengths in part.checked],
        "threads": part.threads,
        "built_for": part.built_for,
        "program": None if isinstance(part.compiled.code, DeviceCode) else _program(part.compiled, sections),
        "weights": [
            [name, list(array.shape), sections.add(array.astype("<f4", copy=False).tobytes())]
            for name, array in part.weights.items()
        ],
        "names": describe_names(part.accessors, names),
        "serving": None if part.serving is None else encode_serving(part.serving),
    }


def _program(compiled: Compiled, sections: Sections) -> dict[str, Any]:
    parts = (compiled.model, compiled.schedule.steps, compiled.considered, compiled.signature)
    return {
        "name": compiled.object_code.entry,
        "target": encode(compiled.object_code.target),
        "parts": [encode(part) for part in parts],
        "code": sections.add(compiled.object_code.code),
        "tables": [_program(table, sections) for table in compiled.tables],
    }


def _write(path: Path, pieces: list[bytes]) -> None:
    """All of the file or nothing of it: a reader never sees a half. Errors are those of `path`."""
    partial = path.with_name(f"{path.name or '_'}.{os.getpid()}.partial")
    try:
        if path.is_dir():
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        with partial.open("wb") as file:
            file.writelines(pieces)
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise OSError(error.errno, error.strerror or str(error), os.fspath(path)) from None

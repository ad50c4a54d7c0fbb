"""A program in memory, made from its record in a file: what `Loaded` is, without model, schedule or compiler.

Records are written by saved/record.py. They are plain data; object code and arrays are sections of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cortex import _native
from cortex.codegen.load import load
from cortex.runtime.forest import Forest
from cortex.runtime.output import Output, output_type
from cortex.runtime.storage import ALIGNMENT, Array
from cortex.runtime.tables import Rows, TableForm

Section = Callable[[Any], memoryview]
FromPlain = Callable[[Any], Any]


class Recorded:
    """Object code, arrays and linearizer, ready to be called; `from_plain` reads nested plain data."""

    def __init__(self, record: Mapping[str, Any], section: Section, from_plain: FromPlain) -> None:
        self.name: str = record["model"]
        self.output: type[Output] = output_type(tuple(map(str, record["states"])), from_plain(record["rows"]))
        self.shared_out = bool(record["shared_out"])
        self._tables = [_rows(Recorded(table[5], section, from_plain), table, from_plain) for table in record["tables"]]
        padded = [list(rows.padded.values()) for rows in self._tables]
        code = load(bytes(section(record["code"])), record["entry"])
        self.linearizer = _native.Linearizer(from_plain(record["spec"]))
        layout = {
            "entry": code.address,
            "keepalive": code,
            "sizes": list(record["sizes"]),
            "arrays": [_argument(each, section, padded, from_plain) for each in record["arrays"]],
            "tables": [rows.for_native() for rows in self._tables],
        }
        self.program = _native.Program(self.linearizer, layout)

    def most(self, threads: int) -> int:
        """`threads`, of which a program without parallel loops has work for one only."""
        return threads if self.shared_out else 1

    def write(self, structures: Forest, out: list[Array]) -> None:
        """The states at the roots, into arrays."""
        self.program.run(structures, False, 1, out)


def _rows(program: Recorded, table: Any, from_plain: FromPlain) -> Rows:
    field, limit, params, shapes, aligns, _ = table
    return Rows(TableForm(field, limit, tuple(params), from_plain(shapes), tuple(aligns)), program.write)


def _argument(given: Any, section: Section, padded: list[list[Array]], from_plain: FromPlain) -> tuple[Any, ...]:
    match given:
        case ["weight", number, str(dtype), [*shape]]:
            return "weight", array_in(section(number), dtype, shape)
        case ["table", int(number), int(place)]:
            return "weight", padded[number][place]
        case [str(what), *rest]:
            return (what, *from_plain(rest))
    raise ValueError("arrays of a program")


def array_in(section: memoryview, dtype: str, shape: list[int]) -> Array:
    """The array that a section holds; it stays there."""
    array: Array = np.frombuffer(section if len(section) else b"", dtype).reshape(shape)
    if array.size and array.__array_interface__["data"][0] % ALIGNMENT:
        raise ValueError("an array that is not aligned")
    return array

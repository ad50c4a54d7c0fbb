"""Binary AIGER: and-inverter graphs, deep graphs with much sharing, read straight into arrays.

The file is a line `aig M I L O A` (highest variable, inputs, latches, outputs, and-gates), a line per latch and per
output, then for each gate two differences as little-endian base-128 numbers. A literal is twice a variable plus one
if inverted; gate literals satisfy lhs > rhs0 >= rhs1, so the graph is acyclic as written.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cortex.errors import StructureError, printable
from cortex.runtime.forest import Forest

Ints = npt.NDArray[np.int64]

# `word` of a node: what it is. A gate's word is GATE + 2 * (left is inverted) + (right is inverted).
CONSTANT, INPUT, LATCH, GATE = 0, 1, 2, 3
NUM_WORDS = GATE + 4
MOST_VARIABLES = 2**26
MOST_UNREAD = 2**20
"""Inputs take no room in a file: without a bound on those that nothing reads, one line could ask for gigabytes."""


@dataclass(frozen=True, slots=True)
class Circuit:
    """An and-inverter graph: node i is variable i (0 is the constant false); -1 where a node has no operands.

    `outputs` are the nodes whose values leave the circuit, `inverted` says which of them through an inverter.
    """

    left: Ints
    right: Ints
    word: Ints
    outputs: Ints
    inverted: Ints

    def forest(self) -> Forest:
        """The graph with slots `left` and `right` and the field `word`; the roots are the outputs."""
        return Forest.from_slots(
            {"left": self.left, "right": self.right}, fields={"word": self.word}, roots=self.outputs
        )


def read_aiger(source: bytes | Path) -> Circuit:
    """The circuit in a binary AIGER file (a Path) or its bytes."""
    data = source if isinstance(source, bytes) else _read(source)
    (last, inputs, latches, outputs, gates), position = _header(data)
    lines: list[int] = []
    for what in ("latch",) * latches + ("output",) * outputs:
        literal, position = _literal_line(data, position, what, last)
        lines.append(literal)
    left, right, inversions = _gates(data, position, last - gates, gates)
    none = np.full(last + 1 - gates, -1, dtype=np.int64)
    kinds = np.repeat([CONSTANT, INPUT, LATCH], [1, inputs, latches])
    literals = np.array(lines[latches:], dtype=np.int64)
    return Circuit(
        left=np.concatenate([none, np.array(left, dtype=np.int64)]),
        right=np.concatenate([none, np.array(right, dtype=np.int64)]),
        word=np.concatenate([kinds, GATE + np.array(inversions, dtype=np.int64)]),
        outputs=literals >> 1,
        inverted=literals & 1,
    )


def _malformed(problem: str) -> StructureError:
    return StructureError(f"read_aiger: {problem}")


def _is_number(word: bytes) -> bool:
    return word.isdigit() and len(word) < 16


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _malformed(f"{printable(path.name)}: {error.strerror}; give a readable file or its bytes") from None
    except ValueError as error:  # a NUL in the name
        raise _malformed(f"{printable(path.name)}: {error}; give a readable file or its bytes") from None


def _header(data: bytes) -> tuple[tuple[int, ...], int]:
    end = data.find(b"\n")
    words = data[: max(end, 0)].split()
    if len(words) != 6 or words[0] != b"aig" or not all(map(_is_number, words[1:])):
        raise _malformed("the first line is not 'aig M I L O A'; binary AIGER without extensions is read")
    counts = tuple(int(word) for word in words[1:])
    last, inputs, latches, outputs, gates = counts
    if last != inputs + latches + gates:
        raise _malformed(f"the header says M = {last}, but I + L + A = {inputs + latches + gates}; they must be equal")
    if last > MOST_VARIABLES:
        raise _malformed(f"the header says M = {last}; up to {MOST_VARIABLES} variables are read")
    if latches + outputs + gates > len(data):
        raise _malformed(f"the header promises more than fits in {len(data)} bytes; the file is cut short")
    if inputs > latches + outputs + 2 * gates + MOST_UNREAD:
        raise _malformed(
            f"the header says I = {inputs}, of which the file reads at most {latches + outputs + 2 * gates}; up to "
            f"{MOST_UNREAD} inputs more are taken"
        )
    return counts, end + 1


def _literal_line(data: bytes, position: int, what: str, last: int) -> tuple[int, int]:
    end = data.find(b"\n", position)
    words = data[position : max(end, position)].split()
    if not words or not _is_number(words[0]) or (what == "output" and len(words) > 1):
        raise _malformed(f"at byte {position}: expected a line with one {what} literal")
    literal = int(words[0])
    if literal > 2 * last + 1:
        raise _malformed(f"at byte {position}: {what} literal {literal} is beyond the highest, {2 * last + 1}")
    return literal, end + 1


def _gates(data: bytes, position: int, before: int, gates: int) -> tuple[list[int], list[int], list[int]]:
    """Operands of each gate as variables, and 2 * (left is inverted) + (right is inverted)."""
    left, right, inversions = [], [], []
    for variable in range(before + 1, before + 1 + gates):
        above = 2 * variable
        operands = []
        for _ in range(2):
            difference = shift = 0
            while True:
                if position >= len(data) or shift > 35:
                    raise _malformed(f"at byte {position}: gate {variable} is cut short or its number is too long")
                byte = data[position]
                position += 1
                difference |= (byte & 127) << shift
                if byte < 128:
                    break
                shift += 7
            above -= difference
            if above < 0 or above == 2 * variable:
                raise _malformed(f"at byte {position}: gate {variable} has an operand that is not an earlier literal")
            operands.append(above)
        left.append(operands[0] >> 1)
        right.append(operands[1] >> 1)
        inversions.append(2 * (operands[0] & 1) + (operands[1] & 1))
    return left, right, inversions

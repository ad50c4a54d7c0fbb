"""The numbers that a model's code knows: from these alone can it tell one large number of children from another.

    if len(node.children) > 5000: ...            5000 is mentioned
    for child in node.children[: self.most]: ...   so is what self.most holds
    if len(node.children) % 100 == 0: ...        there is no number from which on all are alike

Each number of children up to `EXACT` is traced by itself, whatever the code says. Larger ones would take long, so they
are traced where a mentioned number has just been passed, and are taken to be alike from there to the next.
"""

from __future__ import annotations

import dis
import math
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import CodeType
from typing import Any

EXACT = 512
"""Tracing takes up to two milliseconds for each child, so that checking so many takes about a second."""
NEAR = 8
"""Numbers of children that are at most so much larger than a mentioned number are traced themselves."""
LARGEST = 1 << 15
"""No node is traced with more children."""
MANY = 16
"""Where more children are taken one by one, parts of them are taken for lists by themselves, if the code has some."""
LARGEST_OWN = 256
"""No kind of its own is compiled for more: that takes a time that grows with the square of the number."""

COUNTS = frozenset(
    ("len", "enumerate", "range", "size", "shape", "numel", "count", "index", "islice", "__len__", "Counter")
)
"""Names by which code comes to know how many there are."""
PERIODIC = ("%", "//", "&", "|", "^", ">>", "<<")
PERIODIC_NAMES = ("divmod", "bin", "hex", "oct", "bit_length", "bit_count", "gcd", "isqrt", "str", "repr", "format")
"""Operators and functions of whole numbers that are not the same from some number on."""


@dataclass(frozen=True)
class Mentions:
    """Numbers above `EXACT`, in order, and the first use of an operator that tells all numbers apart."""

    numbers: tuple[int, ...] = ()
    periodic: tuple[CodeType, int] | None = None

    @property
    def most(self) -> int:
        """From here on, all numbers of children are alike, or there are none."""
        return LARGEST + 1 if self.periodic else max((EXACT, *(n + NEAR for n in self.numbers)))

    @property
    def divides(self) -> bool:
        """Is there a remainder or the like, rather than an operator that masks of tensors have too?"""
        if self.periodic is None:
            return False
        code, offset = self.periodic
        step = next(s for s in dis.get_instructions(code) if s.offset == offset)
        return step.opname != "FORMAT_VALUE" and step.argrepr.removesuffix("=") not in ("&", "|", "^")

    def alike(self, count: int) -> int:
        """The number of children to trace for, instead of for `count`."""
        if count <= EXACT or self.periodic or any(n <= count < n + NEAR for n in self.numbers):
            return count
        return max((EXACT, *(n + NEAR for n in self.numbers if n + NEAR <= count)))


def mentions(
    codes: Collection[CodeType],
    spaces: Iterable[Mapping[str, Any]],
    others: Iterable[Any] = (),
    told_at: Container[tuple[str, int]] = (),
) -> Mentions:
    """What is mentioned in code, in what it reads by name from `spaces`, and in `others`.

    Operators in the lines `told_at` tell no numbers apart that questions about the node do not (see `told`).
    """
    names = {name for code in codes for name in (*code.co_names, *code.co_freevars)}
    found: set[int] = set()
    for code in codes:
        for constant in code.co_consts:
            _collect(constant, found)
    for space in spaces:
        for name in names & space.keys():
            _collect(space[name], found)
    for value in others:
        _collect(value, found)
    counts = not COUNTS.isdisjoint(names) or any(map(_counts_itself, codes))
    periodic = next(filter(None, (_periodic(code, told_at) for code in codes)), None) if counts else None
    return Mentions(tuple(sorted(n for n in found if n > EXACT - NEAR)), periodic)


def _collect(value: Any, found: set[int]) -> None:
    """The numbers that a value is, has for a size, or consists of."""
    match value:
        case bool():
            return
        case int() | float() if abs(value) < 1 << 30:
            found.add(abs(math.ceil(value)))
        case tuple() | list() | frozenset() | set() | dict():
            found.add(len(value))
            for each in list(value)[:64] if len(value) <= 64 else ():
                _collect(each, found)
        case str() | bytes() | CodeType():
            return
        case _ if isinstance(shape := getattr(value, "shape", None), tuple):
            found.update(int(n) for n in shape if isinstance(n, int))


def _counts_itself(code: CodeType) -> bool:
    """Is a whole number added to something, as `i += 1` does?"""
    steps = [s for s in dis.get_instructions(code) if s.opname != "CACHE"]
    return any(
        a.opname == "LOAD_CONST" and type(a.argval) is int and b.opname == "BINARY_OP" and b.argrepr in ("+=", "+")
        for a, b in pairwise(steps)
    )


def _periodic(code: CodeType, told_at: Container[tuple[str, int]]) -> tuple[CodeType, int] | None:
    steps = [s for s in dis.get_instructions(code) if s.opname not in ("CACHE", "PRECALL", "EXTENDED_ARG")]
    for at, step in enumerate(steps):
        if step.positions is not None and (code.co_filename, step.positions.lineno) in told_at:
            continue
        is_operator = step.opname == "BINARY_OP" and step.argrepr.removesuffix("=") in PERIODIC
        if is_operator and not _is_of_size(steps[:at], code):
            return code, step.offset
        if step.opname in ("LOAD_GLOBAL", "LOAD_METHOD", "LOAD_ATTR", "FORMAT_VALUE") and (
            step.opname == "FORMAT_VALUE" or step.argval in PERIODIC_NAMES
        ):
            return code, step.offset
    return None


def _is_of_size(before: list[dis.Instruction], code: CodeType) -> bool:
    """Is the left side a size that is not the number of rows, `x.size(1) // 3`, or an attribute of the module?"""
    match [(s.opname, s.argval) for s in before[-5:-1]]:
        case [*_, ("LOAD_METHOD" | "LOAD_ATTR", "size"), ("LOAD_CONST", axis), ("CALL", _)]:
            return bool(axis != 0)
        case [*_, ("LOAD_ATTR", "shape"), ("LOAD_CONST", axis), ("BINARY_SUBSCR", _)]:
            return bool(axis != 0)
        case [*_, ("LOAD_FAST", name), ("LOAD_ATTR", _)]:
            return bool(code.co_varnames) and name == code.co_varnames[0] == "self"
    return False

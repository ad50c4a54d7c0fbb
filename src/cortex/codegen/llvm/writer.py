"""The function body under construction: its text so far, and what is known where the text ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cortex.codegen.llvm.types import Value, constant_vector, type_text
from cortex.codegen.target import Target
from cortex.errors import InternalError
from cortex.ir.scalar import DType


@dataclass(frozen=True)
class Array:
    """Where a buffer or index function lives: its base pointer, element type and strides in elements."""

    pointer: str
    storage: str
    dtype: DType
    strides: tuple[Value, ...]
    constant: bool  # nothing in this function writes it
    in_halves: bool = False  # each word of 32 bits is two bf16, and an index more says which
    streamed: bool = False  # begins at a whole vector and is written in such, past the caches


@dataclass
class Writer:
    """Appends instructions to a function body.

    A pure instruction that was already written at a place which dominates this one is not written again:
    control flow is structured, so what dominates is what was written before and not in a branch that has ended.
    """

    target: Target
    arrays: dict[str, Array]
    names: dict[str, Value]
    lines: list[str] = field(default_factory=list)
    block: str = "entry"
    lanes: int = 1  # extent of the surrounding vectorized loop
    declarations: dict[str, str] = field(default_factory=dict)
    loops: int = 0
    looks: dict[int, int] = field(default_factory=dict)  # see `stop`
    _known: dict[str, str] = field(default_factory=dict)
    _trail: list[str] = field(default_factory=list)
    _count: int = 0

    def instruction(self, right: str) -> str:
        """Write `%t = right` and give the name `%t`."""
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"  {name} = {right}")
        return name

    def pure(self, right: str) -> str:
        """Like `instruction`, for one without effects whose operands never change."""
        name = self._known.get(right)
        if name is None:
            name = self._known[right] = self.instruction(right)
            self._trail.append(right)
        return name

    def effect(self, line: str) -> None:
        """Write an instruction that has no result."""
        self.lines.append(f"  {line}")

    def label(self, hint: str) -> str:
        """A fresh block name; loops may be called anything."""
        self._count += 1
        readable = re.sub(r"[^\w.]", "_", hint, flags=re.ASCII)
        return f"{'_' if readable[:1].isdigit() else ''}{readable}.{self._count}"

    def start(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")
        self.block = label

    def new_loop(self) -> int:
        """The number of the metadata node of a new loop; see `module`."""
        self.loops += 1
        return self.loops + 3

    @contextmanager
    def bindings(self) -> Iterator[None]:
        """Names bound inside are forgotten afterwards."""
        names = self.names
        self.names = dict(names)
        yield
        self.names = names

    @contextmanager
    def branch(self) -> Iterator[None]:
        """What is written inside may not have been executed afterwards: it is not used again."""
        mark = len(self._trail)
        yield
        for right in self._trail[mark:]:
            del self._known[right]
        del self._trail[mark:]

    def call(self, name: str, result: str, *operands: str) -> str:
        """The text of a call of the pure intrinsic `name`; `operands` are spelled with their types."""
        if name not in self.declarations:
            types = ", ".join(o[: o.index(">") + 1] if o[0] == "<" else o.split(" ", 1)[0] for o in operands)
            self.declarations[name] = f"declare {result} @{name}({types})"
        return f"call {result} @{name}({', '.join(operands)})"

    def scalar(self, v: Value) -> str:
        """The operand of a value that is the same in all lanes."""
        if not v.uniform:
            raise InternalError(f"a value that differs between lanes is used where one value is needed: {v}")
        if v.dtype != "i64":
            return v.text
        if not v.text:
            return str(v.offset)
        return self.pure(f"add nsw i64 {v.text}, {v.offset}") if v.offset else v.text

    def all_lanes(self, dtype: str, one: str, lanes: int) -> str:
        """The vector that has the value `one`, of `dtype` or of a storage type, in all lanes."""
        ty = type_text(dtype, lanes)
        first = self.pure(f"insertelement {ty} poison, {type_text(dtype)} {one}, i64 0")
        return self.pure(f"shufflevector {ty} {first}, {ty} poison, <{lanes} x i32> zeroinitializer")

    def vector(self, v: Value, lanes: int) -> str:
        """The operand of `v` with `lanes` elements; for one lane, the scalar."""
        if v.lanes > 1:
            return v.text
        if lanes == 1:
            return self.scalar(v)
        if v.dtype == "i64" and not v.text:
            return constant_vector("i64", [v.offset + v.step * lane for lane in range(lanes)])
        ty, element = type_text(v.dtype, lanes), type_text(v.dtype)
        base = self.scalar(v._replace(step=0))
        if base[0] != "%":
            return f"splat ({element} {base})"
        all_lanes = self.all_lanes(v.dtype, base, lanes)
        if not v.step:
            return all_lanes
        return self.pure(f"add nsw {ty} {all_lanes}, {constant_vector('i64', [v.step * i for i in range(lanes)])}")

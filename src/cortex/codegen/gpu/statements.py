"""Statements as lines of C.

    for p in 0..8 parallel      for (int p = SHARE(GROUP, 8); p < SHARE(GROUP + 1, 8); ++p)     work-groups
    for j in 0..32 items x      for (int j = ITEM_X; j < 32; j += ITEMS_X)                      items
    for r in 0..4 unrolled      #pragma unroll
    one iteration               its body

A register is declared where all that uses it is in sight; one of several elements is an array, which the device's
compiler takes apart once loops are unrolled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from math import prod
from typing import assert_never

from cortex.codegen.gpu.dialect import Dialect
from cortex.codegen.gpu.expressions import ExpressionPrinter
from cortex.codegen.gpu.names import Identifiers
from cortex.errors import InternalError
from cortex.ilir.ir import (
    Accumulate,
    Barrier,
    Buffer,
    For,
    Func,
    If,
    Let,
    LoopKind,
    Mark,
    Prefetch,
    Scope,
    Stmt,
    Store,
    Switch,
)
from cortex.ilir.to_python import extents
from cortex.ilir.verify import PER_THREAD
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Expr, Int, Load, dtype_of
from cortex.ir.simplify import add, free_vars, mul, simplify, sub, substitute

_TYPES = {"i64": "int", "f32": "float", "bool": "bool"}
_ITEMS = {LoopKind.ITEMS_X: ("ITEM_X", "ITEMS_X"), LoopKind.ITEMS_Y: ("ITEM_Y", "ITEMS_Y")}


@dataclass
class StatementPrinter:
    """Prints the statements of one kernel, and notes what it uses."""

    f: Func
    dialect: Dialect
    identifier: Identifiers
    groups: int
    expr: ExpressionPrinter = field(init=False)
    buffers: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    has_grid_barrier: bool = False

    def __post_init__(self) -> None:
        self.expr = ExpressionPrinter(self.dialect, self.identifier, self.element)
        self.declared = {b.name: b for b in self.f.buffers}

    def kernel_body(self, body: tuple[Stmt, ...]) -> list[str]:
        """The lines of a whole kernel."""
        mentioned = _mentioned(body)
        own = frozenset(b.name for b in self.f.buffers if b.scope in PER_THREAD and b.name in mentioned)
        return [*self.local_memory(body), *self.block(body, own)]

    def local_memory(self, body: tuple[Stmt, ...]) -> list[str]:
        """The lines that declare what the items of a work-group share."""
        named = [(self.identifier.array(b.name), self.elements(b)) for b in self.shared_in(body)]
        if not self.is_given_at_launch(body):
            return [f"{self.dialect.local} float {name}[{count}];" for name, count in named]
        starts = accumulate((count for _, count in named), initial=0)
        parts = (f"float *const {name} = group_memory + {at};" for (name, _), at in zip(named, starts, strict=False))
        return [f"extern {self.dialect.local} float group_memory[];", *parts]

    def local_bytes(self, body: tuple[Stmt, ...]) -> int:
        """The local memory that a kernel uses."""
        return sum(4 * self.elements(b) for b in self.shared_in(body))

    def is_given_at_launch(self, body: tuple[Stmt, ...]) -> bool:
        """Is the local memory of a kernel more than it may declare?"""
        most = self.dialect.most_declared
        return most is not None and self.local_bytes(body) > most

    def shared_in(self, body: tuple[Stmt, ...]) -> list[Buffer]:
        """The buffers in local memory that a kernel uses."""
        mentioned = _mentioned(body)
        return [b for b in self.f.buffers if b.scope in (Scope.LOCAL, Scope.RESIDENT) and b.name in mentioned]

    def elements(self, b: Buffer) -> int:
        """Elements of a buffer of constant shape; of a resident one, those of the most slices that a group has."""
        shape = [e.value for e in extents(b) if isinstance(e, Int)]
        if b.scope is Scope.RESIDENT:
            shape[0] = -(-shape[0] // self.groups)
        return prod(shape)

    def block(self, body: tuple[Stmt, ...], own: frozenset[str] = frozenset()) -> list[str]:
        """The lines of a list. Registers `own` are declared here, or, if one statement uses them, inside it."""
        lines: list[str] = []
        users = {name: [s for s in body if name in _mentioned((s,))] for name in sorted(own)}
        below: dict[int, set[str]] = {}
        for name, using in users.items():
            if len(using) == 1 and isinstance(using[0], For | If | Switch):
                below.setdefault(id(using[0]), set()).add(name)
            elif using:
                lines.append(self._register(self.declared[name]))
        for s in body:
            lines += self._statement(s, frozenset(below.get(id(s), ())))
        return lines

    def _register(self, b: Buffer) -> str:
        count = self.elements(b)
        return f"float {self.identifier.array(b.name)}{'' if count == 1 else f'[{count}]'};"

    def _statement(self, s: Stmt, own: frozenset[str]) -> Iterable[str]:
        match s:
            case For():
                return self._loop(s, own)
            case If(cond, then, orelse):
                rest = ["} else {", *_indented(self.block(orelse, own))] if orelse else []
                return [f"if ({self.expr(cond)}) {{", *_indented(self.block(then, own)), *rest, "}"]
            case Switch(value, cases):
                arms = [
                    line
                    for c in cases
                    for line in (f"case {c.value}: {{", *_indented([*self.block(c.body, own), "break;"]), "}")
                ]
                return [f"switch ({self.expr(value)}) {{", *arms, "}"]
            case Let(var, value):
                return [f"const {_TYPES[var.dtype]} {self.identifier.variable(var.name)} = {self.expr(value)};"]
            case Store(buffer, index, value):
                return [f"{self._target(buffer, index)} = {self.expr(value)};"]
            case Accumulate():
                return [self._accumulate(s)]
            case Barrier("team") if self.groups > 1:
                self.has_grid_barrier = True
                return ["grid_barrier(arrived);"]
            case Barrier():
                return [self.dialect.item_barrier]
            case Mark():
                raise InternalError("a program for a GPU does not read the clock")
            case Prefetch():
                return []
            case _:
                assert_never(s)

    def _loop(self, s: For, own: frozenset[str]) -> list[str]:
        if s.kind not in (LoopKind.PARALLEL, *_ITEMS) and s.hi == add(s.lo, 1) and isinstance(s.lo, Int):
            return self._once(s, own)
        var, lo = self.identifier.variable(s.var), self.expr(s.lo)
        match s.kind:
            case LoopKind.PARALLEL:
                return self._share(s, var, lo, own)
            case LoopKind.ITEMS_X | LoopKind.ITEMS_Y:
                item, items = _ITEMS[s.kind]
                if (s.lo, s.hi) == (Int(0), Int(1)):
                    return [f"if ({item} == 0) {{", *self._only_iteration(s, own), "}"]
                first = item if s.lo == Int(0) else f"{self.expr(s.lo, 5)} + {item}"
                head = f"for (int {var} = {first}; {var} < {self.expr(s.hi, 5)}; {var} += {items}) {{"
            case LoopKind.SERIAL | LoopKind.UNROLLED | LoopKind.VECTORIZED:
                head = f"for (int {var} = {lo}; {var} < {self.expr(s.hi, 5)}; ++{var}) {{"
            case _:
                assert_never(s.kind)
        pragma = ["#pragma unroll"] if s.kind in (LoopKind.UNROLLED, LoopKind.VECTORIZED) else []
        return [*pragma, head, *_indented(self.block(s.body, own)), "}"]

    def _once(self, s: For, own: frozenset[str]) -> list[str]:
        """A loop of one iteration: its body, in braces if it binds names."""
        body = tuple(_at(each, s.var, s.lo) for each in s.body)
        lines = self.block(body, own)
        has_names = bool(own) or any(isinstance(each, Let) for each in body)
        return ["{", *_indented(lines), "}"] if has_names else lines

    def _share(self, s: For, var: str, lo: str, own: frozenset[str]) -> list[str]:
        """The iterations of a parallel loop that this work-group runs."""
        if (s.lo, s.hi) == (Int(0), Int(1)):
            body = self._only_iteration(s, own)
            return ["{", *body, "}"] if self.groups == 1 else ["if (GROUP == GROUPS - 1) {", *body, "}"]
        count = self.expr(simplify(sub(s.hi, s.lo)))
        start = "" if s.lo == Int(0) else f"{self.expr(s.lo, 5)} + "
        if self.groups == 1:
            head = f"for (int {var} = {lo}; {var} < {self.expr(s.hi, 5)}; ++{var}) {{"
            return [head, *_indented(self.block(s.body, own)), "}"]
        bounds = f"int {var} = {start}SHARE(GROUP, {count}), {var}_end = {start}SHARE(GROUP + 1, {count})"
        return [f"for ({bounds}; {var} < {var}_end; ++{var}) {{", *_indented(self.block(s.body, own)), "}"]

    def _only_iteration(self, s: For, own: frozenset[str]) -> list[str]:
        return _indented(self.block(tuple(_at(each, s.var, s.lo) for each in s.body), own))

    def _accumulate(self, s: Accumulate) -> str:
        place = self._target(s.buffer, s.index)
        if s.fn != "add":
            of_floats = dtype_of(s.value) == "f32"
            return f"{place} = {self.expr.extremum(s.fn, place, self.expr(s.value), of_floats)};"
        products = _products(s.value)
        if products is None:
            return f"{place} += {self.expr(s.value)};"
        total = place
        for x, y in products:
            total = f"{self.dialect.functions['fma']}({self.expr(x)}, {self.expr(y)}, {total})"
        return f"{place} = {total};"

    def _target(self, buffer: str, index: tuple[Expr, ...]) -> str:
        self.written.add(buffer)
        return self.element(buffer, index)

    def element(self, buffer: str, index: tuple[Expr, ...]) -> str:
        """The text of an element; noting that the kernel needs the buffer."""
        b = self.declared[buffer]
        if b.dtype != "f32":
            raise InternalError(f"buffer {buffer!r} is of {b.dtype}; programs for a GPU store f32")
        name = self.identifier.array(buffer)
        if b.scope in PER_THREAD and self.elements(b) == 1:
            return name
        if b.scope not in PER_THREAD:
            self.buffers.add(buffer)
        shape, start = extents(b), ""
        if b.scope is Scope.RESIDENT and self.groups > 1:  # the work-group has its own slices only
            one_slice = prod(e.value for e in shape[1:] if isinstance(e, Int))
            start = f"({self.expr.narrowly(index[0])} - SHARE(GROUP, {self.expr(shape[0])})) * {one_slice} + "
            index, shape = index[1:], shape[1:]
        at: Expr = Int(0)
        for e, extent in zip(index, shape, strict=True):
            at = add(mul(at, extent), e)
        return f"{name}[{start}{self.expr.narrowly(simplify(at))}]"


def _products(e: Expr) -> list[tuple[Expr, Expr]] | None:
    """The products that `e` is a sum of, in order; None if it is something else."""
    match e:
        case Binary("mul", x, y) if dtype_of(e) == "f32":
            return [(x, y)]
        case Binary("add", x, y):
            first, second = _products(x), _products(y)
            return None if first is None or second is None else [*first, *second]
        case _:
            return None


def _at(s: Stmt, var: str, value: Expr) -> Stmt:
    """A statement of a loop, in its only iteration."""
    return substitute((s,), {var: value})[0] if var in free_vars((s,)) else s


def _mentioned(body: tuple[Stmt, ...]) -> set[str]:
    return {n.buffer for s in body for n in walk(s) if isinstance(n, Load | Store | Accumulate)}


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]

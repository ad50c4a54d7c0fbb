"""ILIR as Python source, for the interpreter.

One function, with the sizes, index functions and buffers as arguments; buffers are flat. Every list of
statements has a counter of how often it ran, and the function returns the counters:

    for j in 0..n: y[j] = exp(x[j])      ->      c1 += max(0, n - 0)
                                                 for j in range(0, n): y[j] = exp(x[j])

An access whose index is not within bounds by the constant bounds of loops is checked when it runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import assert_never

from cortex.ilir.count import Counts, count_list
from cortex.ilir.ir import (
    ROUNDING,
    Accumulate,
    Barrier,
    Buffer,
    For,
    Func,
    If,
    Let,
    Mark,
    Prefetch,
    Stmt,
    Store,
    Switch,
)
from cortex.ir.polynomial import interval_of
from cortex.ir.scalar import Binary, Cast, Expr, Float, Fma, Index, Int, Load, Select, Unary, Var, dtype_of
from cortex.ir.simplify import ceildiv, mul, simplify

_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "and": "&", "or": "|",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}  # fmt: skip
_CASTS = {"f32": "float({})", "i64": "truncate({})", "bool": "({} != 0)"}


@dataclass(frozen=True)
class PythonFunction:
    """The source of a function `run(sizes..., index functions..., buffers...)` and what its counters count."""

    source: str
    counts: tuple[Counts, ...]


def extents(b: Buffer) -> tuple[Expr, ...]:
    """The shape of a buffer as it lies in memory, with padded rows."""
    if not b.shape or b.align == 1:
        return b.shape
    return (*b.shape[:-1], simplify(mul(ceildiv(b.shape[-1], b.align), b.align)))


def to_python(f: Func, check_bounds: bool = True) -> PythonFunction:
    """Translate a verified function."""
    t = _Translation(f, check_bounds)
    arrays = (*(i.name for i in f.index_functions), *(b.name for b in f.buffers))
    header = f"def run({', '.join([*map(t.identifier, f.sizes), *map(t.array, arrays)])}):"
    body = list(t.block(f.body, "1"))
    counters = [f"c{i}" for i in range(len(t.counts))]
    zeros = [f"{c} = 0" for c in counters]
    lines = [*zeros, *body, f"return [{', '.join(counters)}]"]
    return PythonFunction("\n".join([header, *(f" {line}" for line in lines)]), tuple(t.counts))


@dataclass
class _Translation:
    f: Func
    check: bool
    counts: list[Counts] = field(default_factory=list)
    identifiers: dict[str, str] = field(default_factory=dict)
    loops: list[str] = field(default_factory=list)  # variables of the loops around the current statement
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    temporaries: int = 0

    def identifier(self, name: str) -> str:
        """A Python identifier for a name of the program, which may be any text."""
        if name not in self.identifiers:
            self.identifiers[name] = f"v{len(self.identifiers)}_{re.sub(r'[^A-Za-z0-9]', '_', name)}"
        return self.identifiers[name]

    def array(self, name: str) -> str:
        """A Python identifier for an array, which may be called as a loop is."""
        return self.identifier(f"{name}[]")

    def temporary(self) -> str:
        self.temporaries += 1
        return f"t{self.temporaries}"

    def block(self, body: tuple[Stmt, ...], runs: str) -> Iterator[str]:
        """A list of statements that is about to run `runs` times; the counting is the first line."""
        counter = f"c{len(self.counts)}"
        self.counts.append(count_list(body))
        yield f"{counter} += {runs}"
        for s in body:
            yield from self.statement(s)

    def statement(self, s: Stmt) -> Iterator[str]:
        match s:
            case For():
                yield from self.loop(s)
            case If(cond, then, orelse):
                yield f"if {self.expr(cond)}:"
                yield from _indent(self.block(then, "1"))
                if orelse:
                    yield "else:"
                    yield from _indent(self.block(orelse, "1"))
            case Switch(value, cases):
                chosen = self.temporary()
                yield f"{chosen} = {self.expr(value)}"
                for i, c in enumerate(cases):
                    yield f"{'elif' if i else 'if'} {chosen} == {c.value}:"
                    yield from _indent(self.block(c.body, "1"))
            case Let(var, value):
                yield f"{self.identifier(var.name)} = {self.expr(value)}"
            case Store(buffer, index, value):
                yield f"{self.element(buffer, index)} = {self.rounded(buffer, self.expr(value))}"
            case Accumulate(buffer, index, "add", value):
                yield f"{self.element(buffer, index)} += {self.expr(value)}"
            case Accumulate(buffer, index, fn, value):
                at = self.temporary()
                cell = f"{self.array(buffer)}[{at}]"
                yield f"{at} = {self.offset(buffer, index)}"
                yield f"{cell} = {self.extremum(fn, dtype_of(value), cell, self.expr(value))}"
            case Barrier() | Prefetch():
                pass
            case Mark(buffer, index):  # time stands still here
                yield f"{self.element(buffer, index)} = 0"
            case _:
                assert_never(s)

    def loop(self, s: For) -> Iterator[str]:
        lo, hi = self.expr(s.lo), self.expr(s.hi)
        if not isinstance(s.lo, Int):
            first = self.temporary()
            yield f"{first} = {lo}"
            lo = first
        if not isinstance(s.hi, Int):
            last = self.temporary()
            yield f"{last} = {hi}"
            hi = last
        runs = f"max(0, {hi} - {lo})"
        if isinstance(s.lo, Int) and isinstance(s.hi, Int):
            self.ranges[s.var] = (s.lo.value, s.hi.value - 1)
            runs = str(max(0, s.hi.value - s.lo.value))
        self.loops.append(s.var)
        counting, *body = self.block(s.body, runs)
        self.loops.pop()
        self.ranges.pop(s.var, None)
        yield counting
        turned = "" if s.turned is None else f"[:: 1 - 2 * ({self.expr(s.turned)} % 2)]"
        yield f"for {self.identifier(s.var)} in range({lo}, {hi}){turned}:"
        yield from _indent(iter(body or ["pass"]))

    def element(self, buffer: str, index: tuple[Expr, ...]) -> str:
        return f"{self.array(buffer)}[{self.offset(buffer, index)}]"

    def rounded(self, buffer: str, value: str) -> str:
        """A value as a buffer keeps it: only narrow buffers round what is stored."""
        dtype = self.f.buffer(buffer).dtype
        return f"to_{dtype}({value})" if dtype in ROUNDING else value

    def offset(self, buffer: str, index: tuple[Expr, ...]) -> str:
        """The flat index of an element, checked one dimension at a time: ((i*d1) + j)*d2 + k."""
        b = self.f.buffer(buffer)
        shape = extents(b)
        total = ""
        for e, extent in zip(index, shape, strict=True):
            checked = self.checked(e, extent, buffer, index, shape)
            total = f"({total}*{self.expr(extent)} + {checked})" if total else checked
        return total or "0"

    def checked(self, e: Expr, extent: Expr, array: str, index: tuple[Expr, ...], shape: tuple[Expr, ...]) -> str:
        """The value of index `e`, or a call that reports the whole access when it is not in 0..extent."""
        text = self.expr(e)
        if not self.check:
            return text
        lo, hi = interval_of(e, self.ranges)
        if isinstance(extent, Int) and lo >= 0 and hi < extent.value:
            return text
        value = self.temporary()
        where = "".join(f"{v!r}: {self.identifier(v)}, " for v in self.loops)
        indices = "".join(f"{self.expr(i)}, " for i in index)
        limits = "".join(f"{self.expr(i)}, " for i in shape)
        report = f"out_of_bounds({array!r}, ({indices}), ({limits}), {{{where}}})"
        return f"({value} if 0 <= ({value} := {text}) < {self.expr(extent)} else {report})"

    def extremum(self, fn: str, dtype: str, x: str, y: str) -> str:
        return f"{fn}({x}, {y})" if dtype == "i64" else f"float_{fn}({x}, {y})"

    def expr(self, e: Expr) -> str:
        match e:
            case Int(value):
                return str(value) if value >= 0 else f"({value})"
            case Float(value):
                return f"({value!r})" if math.isfinite(value) else f"float('{value!r}')"
            case Var(name):
                return self.identifier(name)
            case Load(buffer, index):
                return self.element(buffer, index)
            case Index(fn, (argument,)):
                extent = next(i.extent for i in self.f.index_functions if i.name == fn)
                return f"{self.array(fn)}[{self.checked(argument, extent, fn, (argument,), (extent,))}]"
            case Index(fn, args):
                raise AssertionError(f"verified: {fn} has one argument, not {len(args)}")
            case Unary("neg", x):
                return f"(-{self.expr(x)})"
            case Unary("not", x):
                return f"(not {self.expr(x)})"
            case Unary("abs", x):
                return f"abs({self.expr(x)})"
            case Unary(fn, x):
                return f"float_{fn}({self.expr(x)})"
            case Binary("min" | "max" as fn, x, y):
                return self.extremum(fn, dtype_of(x), self.expr(x), self.expr(y))
            case Binary(fn, x, y) if fn in _OPERATORS:
                return f"({self.expr(x)} {_OPERATORS[fn]} {self.expr(y)})"
            case Binary(fn, x, y):
                return f"float_{fn}({self.expr(x)}, {self.expr(y)})"
            case Fma(x, y, z):
                return f"({self.expr(x)} * {self.expr(y)} + {self.expr(z)})"
            case Select(cond, x, y):
                # Both arms are evaluated, as the language says: a load in the arm not taken is checked too.
                return f"({self.expr(y)}, {self.expr(x)})[{self.expr(cond)}]"
            case Cast(x, dtype):
                return _CASTS[dtype].format(self.expr(x))
            case _:
                assert_never(e)


def _indent(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield f" {line}"

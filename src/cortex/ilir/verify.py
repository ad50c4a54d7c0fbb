"""The rules every ILIR program obeys, checked after every pass and step.

    names     sizes, loop variables and lets are bound before use and hide nothing; loop variables are unique
    arrays    every access names a declared array and has one index per dimension
    types     operands agree; indices and bounds are i64, conditions bool, a stored value has the buffer's type
    scopes    params, packed params and fields are only read; streamed states are only written; the shape of a
              register or private buffer is constant
    loops     a vectorized or unrolled loop has constant bounds, and a vectorized one contains lets, stores and
              accumulations only
    threads   parallel loops are not nested and hold no barrier; where there are any, states and scratch are written
              inside them only
    items     loops of items stand in a parallel loop, at most one of each axis around a statement, and hold no item
              barrier; where there are any, what items share is written inside both axes only; a local buffer is
              used in parallel loops, a resident one in those from 0 to its first extent, at the iteration's slice
    packings  every packed buffer has one, of exactly its shape, made of params; only packed buffers are narrow,
              and scratch of bf16 and i16; only registers are of i32, and sum products of integers

A program that breaks one is a bug in Cortex: `InternalError`, with the program attached as a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from cortex.errors import InternalError
from cortex.ilir.ir import (
    ITEMS,
    NARROW,
    ROUNDING,
    Accumulate,
    Barrier,
    Buffer,
    For,
    Func,
    If,
    IndexFunction,
    Let,
    LoopKind,
    Mark,
    Packing,
    Prefetch,
    Scope,
    Stmt,
    Store,
    Switch,
    value_type,
)
from cortex.ilir.show import show, show_expr, show_stmts
from cortex.ilir.statements import statements
from cortex.ir.node import walk
from cortex.ir.scalar import (
    COMPARISONS,
    LOGICAL,
    Binary,
    Cast,
    DType,
    Expr,
    Float,
    Fma,
    Index,
    Int,
    Load,
    Select,
    Unary,
    Var,
)

READ_ONLY = frozenset({Scope.PARAM, Scope.PACKED, Scope.FIELD})
PER_THREAD = frozenset({Scope.PRIVATE, Scope.REGISTER})
PER_GROUP = frozenset({Scope.LOCAL, Scope.RESIDENT})

Place: TypeAlias = "Stmt | str"  # what an expression is part of, for messages

_NUMBERS: frozenset[DType] = frozenset({"i64", "f32"})
_INTEGERS: frozenset[DType] = frozenset({"i64"})
_FLOATS: frozenset[DType] = frozenset({"f32"})
_BOOLS: frozenset[DType] = frozenset({"bool"})


def verify(f: Func) -> None:
    """Raise InternalError if `f` breaks a rule of the language."""
    try:
        checker = _Checker(f)
        checker.declarations()
        checker.block(f.body, dict.fromkeys(f.sizes, "i64"))
    except InternalError as error:
        error.add_note(show(f))
        raise


@dataclass
class _Checker:
    """What is declared in a function and which loop variables have been met so far."""

    f: Func
    loops: set[str] = field(default_factory=set)
    team: bool = False  # are there parallel loops?
    has_items: bool = False  # are there loops of items?
    parallel: For | None = None  # the parallel loop around the current statement
    items: dict[LoopKind, str] = field(default_factory=dict)  # the loops of items around it
    buffers: dict[str, Buffer] = field(init=False)
    functions: dict[str, IndexFunction] = field(init=False)

    def __post_init__(self) -> None:
        self.buffers = {b.name: b for b in self.f.buffers}
        self.functions = {i.name: i for i in self.f.index_functions}
        kinds = {n.kind for n in statements(self.f.body) if isinstance(n, For)}
        self.team, self.has_items = LoopKind.PARALLEL in kinds, bool(kinds & ITEMS)

    def declarations(self) -> None:
        names = [*self.f.sizes, *(i.name for i in self.f.index_functions), *(b.name for b in self.f.buffers)]
        for name in _repeated(names):
            raise InternalError(f"{name!r} is declared twice in {self.f.name!r}")
        sizes: dict[str, DType] = dict.fromkeys(self.f.sizes, "i64")
        for i in self.f.index_functions:
            for e in (i.extent, *([] if i.less_than is None else [i.less_than])):
                self.expect(e, _INTEGERS, sizes, f"declaration of {i.name!r}")
        for b in self.f.buffers:
            if b.align < 1:
                raise InternalError(f"buffer {b.name!r} is aligned to {b.align} elements")
            scopes = (Scope.PACKED, Scope.SCRATCH) if b.dtype in ROUNDING else (Scope.PACKED,)
            if b.dtype in NARROW and b.scope not in scopes:
                raise InternalError(f"{b.scope.value} buffer {b.name!r} is of type {b.dtype}, which is for packed ones")
            if b.dtype == "i32" and b.scope is not Scope.REGISTER:
                raise InternalError(f"{b.scope.value} buffer {b.name!r} is of type i32, which is for registers")
            if b.dtype == "bf16" and b.scope is Scope.PACKED and b.shape[-1:] != (Int(2),):
                raise InternalError(f"the last dimension of bf16 buffer {b.name!r} has not the two elements of a word")
            if b.streamed and (b.scope is not Scope.STATE or b.name in _read(self.f)):
                raise InternalError(f"{b.scope.value} buffer {b.name!r} is streamed, and more than a state to write")
            for e in b.shape:
                self.expect(e, _INTEGERS, sizes, f"shape of {b.name!r}")
            if b.scope in PER_THREAD | PER_GROUP and not all(isinstance(e, Int) for e in b.shape):
                raise InternalError(f"{b.scope.value} buffer {b.name!r} has a shape that is not constant")
        packed = {b.name for b in self.f.buffers if b.scope is Scope.PACKED}
        for name in _repeated([p.buffer for p in self.f.packings]):
            raise InternalError(f"{name!r} is packed twice")
        for p in self.f.packings:
            self.packing(p)
        for name in sorted(packed - {p.buffer for p in self.f.packings}):
            raise InternalError(f"packed buffer {name!r} has no packing")

    def packing(self, p: Packing) -> None:
        b = self.known_buffer(p.buffer)
        if b.scope is not Scope.PACKED:
            raise InternalError(f"packing fills {p.buffer!r}, which is a {b.scope.value} buffer")
        if b.shape != tuple(Int(n) for n in p.shape):
            given = ", ".join(map(show_expr, b.shape))
            raise InternalError(f"packed buffer {p.buffer!r} has shape ({given}), its packing has {p.shape}")
        names: dict[str, DType] = dict.fromkeys([*(f"o{i}" for i in range(len(p.outer))), "j", "k"], "i64")
        for gate in p.gates:
            source = self.known_buffer(gate.param)
            if source.scope is not Scope.PARAM or source.dtype != value_type(b.dtype):
                raise InternalError(
                    f"packing of {p.buffer!r} reads {gate.param!r}, which is no {value_type(b.dtype)} param"
                )
            self.access(gate.param, gate.index, names, f"packing of {p.buffer!r}")

    def block(self, body: tuple[Stmt, ...], names: Mapping[str, DType]) -> None:
        """Statements of one list; a let is visible to those after it."""
        scope = dict(names)
        for s in body:
            self.statement(s, scope)
            if isinstance(s, Let):
                scope[s.var.name] = s.var.dtype

    def statement(self, s: Stmt, names: Mapping[str, DType]) -> None:
        match s:
            case For(var, lo, hi, body, kind):
                if var in names or var in self.loops:
                    raise InternalError(f"loop variable {var!r} is bound already, in `{_headline(s)}`")
                self.loops.add(var)
                self.expect(lo, _INTEGERS, names, s)
                self.expect(hi, _INTEGERS, names, s)
                constant = isinstance(lo, Int) and isinstance(hi, Int)
                if kind in (LoopKind.VECTORIZED, LoopKind.UNROLLED) and not constant:
                    raise InternalError(f"{kind.value} loop has bounds that are not constant, in `{_headline(s)}`")
                if s.turned is not None:
                    self.expect(s.turned, _INTEGERS, names, s)
                    if kind not in (LoopKind.SERIAL, LoopKind.PARALLEL):
                        raise InternalError(f"{kind.value} loop is turned, in `{_headline(s)}`")
                if kind is LoopKind.VECTORIZED:
                    self.vectorized(s)
                if kind is LoopKind.PARALLEL:
                    if self.parallel is not None:
                        raise InternalError(f"parallel loop {var!r} is inside parallel loop {self.parallel.var!r}")
                    self.parallel = s
                if kind in ITEMS:
                    self.enter_items(s)
                self.block(body, {**names, var: "i64"})
                if kind is LoopKind.PARALLEL:
                    self.parallel = None
                self.items = {axis: loop for axis, loop in self.items.items() if loop != var}
            case If(cond, then, orelse):
                self.expect(cond, _BOOLS, names, s)
                self.block(then, names)
                self.block(orelse, names)
            case Switch(value, cases):
                self.expect(value, _INTEGERS, names, s)
                for repeated in _repeated([c.value for c in cases]):
                    raise InternalError(f"case {repeated} occurs twice, in `{_headline(s)}`")
                for c in cases:
                    self.block(c.body, names)
            case Let(var, value):
                if var.name in names:
                    raise InternalError(f"let hides {var.name!r}, in `{_headline(s)}`")
                self.expect(value, frozenset({var.dtype}), names, s)
            case Store(buffer, index, value) | Accumulate(buffer, index, _, value):
                b = self.access(buffer, index, names, s)
                if b.scope in READ_ONLY:
                    raise InternalError(f"{b.scope.value} buffer {buffer!r} is written, in `{_headline(s)}`")
                if self.parallel is not None and b.scope is Scope.COPIED:
                    raise InternalError(f"a thread writes a part of copied buffer {buffer!r}, in `{_headline(s)}`")
                if self.team and self.parallel is None and b.scope not in PER_THREAD | {Scope.COPIED}:
                    raise InternalError(f"every thread writes {b.scope.value} buffer {buffer!r}, in `{_headline(s)}`")
                if self.has_items and b.scope not in PER_THREAD and len(self.items) < len(ITEMS):
                    raise InternalError(f"several items write {b.scope.value} buffer {buffer!r}, in `{_headline(s)}`")
                self.expect(value, frozenset({value_type(b.dtype)}), names, s)
                if isinstance(s, Accumulate) and b.dtype == "i32" and not self.is_of_integers(s.value):
                    raise InternalError(f"i32 buffer {buffer!r} sums what is no product of integers")
                if isinstance(s, Accumulate) and value_type(b.dtype) not in _NUMBERS:
                    raise InternalError(f"accumulation into {b.dtype} buffer {buffer!r}, in `{_headline(s)}`")
            case Mark(buffer, index):
                b = self.access(buffer, index, names, s)
                if b.dtype != "i64" or b.scope is not Scope.SCRATCH:
                    raise InternalError(f"the clock goes to {buffer!r}, which is no i64 scratch, in `{_headline(s)}`")
            case Prefetch(buffer, index):
                self.access(buffer, index, names, s)
            case Barrier("team"):
                if self.parallel is not None:
                    raise InternalError(f"barrier inside parallel loop {self.parallel.var!r}")
            case Barrier():
                for loop in self.items.values():
                    raise InternalError(f"item barrier inside loop {loop!r} of items")
            case _:
                assert_never(s)

    def enter_items(self, s: For) -> None:
        if self.parallel is None:
            raise InternalError(f"loop of items outside parallel loops, in `{_headline(s)}`")
        if s.kind in self.items:
            raise InternalError(f"{s.kind.value} loop {s.var!r} is inside {s.kind.value} loop {self.items[s.kind]!r}")
        self.items[s.kind] = s.var

    def of_group(self, b: Buffer, index: tuple[Expr, ...], place: Place) -> None:
        """An access of a buffer that a work-group has: inside a parallel loop, and to nobody else's slice."""
        loop = self.parallel
        if loop is None:
            raise InternalError(f"{b.scope.value} buffer {b.name!r} outside parallel loops, in `{_headline(place)}`")
        is_own = index[:1] == (Var(loop.var),) and (loop.lo, loop.hi) == (Int(0), b.shape[0])
        if b.scope is Scope.RESIDENT and not is_own:
            raise InternalError(f"resident buffer {b.name!r} at another one's slice, in `{_headline(place)}`")

    def is_of_integers(self, e: Expr) -> bool:
        match e:
            case Binary("add" | "mul", x, y):
                return self.is_of_integers(x) and self.is_of_integers(y)
            case Load(buffer):
                return self.known_buffer(buffer).dtype in ("i8", "i16")
            case _:
                return False

    def vectorized(self, s: For) -> None:
        for inner in s.body:
            if not isinstance(inner, Let | Store | Accumulate):
                raise InternalError(f"vectorized loop contains {type(inner).__name__}, in `{_headline(s)}`")

    def known_buffer(self, name: str) -> Buffer:
        if name not in self.buffers:
            raise InternalError(f"no buffer is called {name!r}")
        return self.buffers[name]

    def access(self, buffer: str, index: tuple[Expr, ...], names: Mapping[str, DType], place: Place) -> Buffer:
        b = self.known_buffer(buffer)
        if len(index) != len(b.shape):
            raise InternalError(
                f"{buffer!r} has {len(b.shape)} dimensions and is accessed with {len(index)}, in `{_headline(place)}`"
            )
        for e in index:
            self.expect(e, _INTEGERS, names, place)
        if b.scope in PER_GROUP:
            self.of_group(b, index, place)
        return b

    def expect(self, e: Expr, allowed: frozenset[DType], names: Mapping[str, DType], place: Place) -> DType:
        """The type of `e`, which must be one of `allowed`."""
        dtype = self.type_of(e, names, place)
        if dtype not in allowed:
            wanted = " or ".join(sorted(allowed))
            raise InternalError(f"`{show_expr(e)}` is {dtype} where {wanted} is needed, in `{_headline(place)}`")
        return dtype

    def type_of(self, e: Expr, names: Mapping[str, DType], place: Place) -> DType:
        match e:
            case Int():
                return "i64"
            case Float():
                return "f32"
            case Var(name, dtype):
                if names.get(name) != dtype:
                    known = f"is {names[name]}" if name in names else "is not bound"
                    raise InternalError(f"{name!r} is used as {dtype} but {known}, in `{_headline(place)}`")
                return dtype
            case Load(buffer, index, dtype):
                if value_type(self.access(buffer, index, names, place).dtype) != dtype:
                    raise InternalError(f"{buffer!r} is not a buffer of {dtype}, in `{_headline(place)}`")
                return dtype
            case Index(fn, args):
                if fn not in self.functions:
                    raise InternalError(f"no index function is called {fn!r}, in `{_headline(place)}`")
                if len(args) != 1:
                    raise InternalError(
                        f"index function {fn!r} takes one argument, not {len(args)}, in `{_headline(place)}`"
                    )
                return self.expect(args[0], _INTEGERS, names, place)
            case Unary(fn, x):
                return self.expect(x, _UNARY_OPERAND.get(fn, _FLOATS), names, place)
            case Binary(fn, x, y):
                dtype = self.expect(x, _BINARY_OPERAND.get(fn, _NUMBERS), names, place)
                self.expect(y, frozenset({dtype}), names, place)
                return "bool" if fn in COMPARISONS or fn in LOGICAL else dtype
            case Fma(x, y, z):
                for operand in (x, y, z):
                    self.expect(operand, _FLOATS, names, place)
                return "f32"
            case Select(cond, x, y):
                self.expect(cond, _BOOLS, names, place)
                return self.expect(y, frozenset({self.type_of(x, names, place)}), names, place)
            case Cast(x, dtype):
                self.type_of(x, names, place)
                return dtype
            case _:
                assert_never(e)


_UNARY_OPERAND = {"neg": _NUMBERS, "abs": _NUMBERS, "not": _BOOLS}
_BINARY_OPERAND = {
    "div": _FLOATS, "copysign": _FLOATS, "ldexp": _FLOATS,
    "floordiv": _INTEGERS, "mod": _INTEGERS,
    "and": _BOOLS, "or": _BOOLS,
}  # fmt: skip


def _headline(place: Place) -> str:
    return place if isinstance(place, str) else show_stmts((place,)).split("\n")[0]


def _read(f: Func) -> set[str]:
    return {n.buffer for n in walk(f) if isinstance(n, Load | Accumulate)}


def _repeated(items: Iterable[object]) -> list[object]:
    """The items that occur again, in order."""
    seen: set[object] = set()
    again = []
    for item in items:
        if item in seen:
            again.append(item)
        seen.add(item)
    return again

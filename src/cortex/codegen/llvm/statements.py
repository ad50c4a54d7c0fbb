"""Statements as LLVM basic blocks.

Loops are written in the form LLVM likes best: tested once before, then at the end of each iteration. Serial
loops forbid LLVM to unroll or vectorize them: that was the schedule's decision.
"""

from __future__ import annotations

from typing import assert_never

from cortex.codegen.llvm import dot, expressions, memory, parallel, stop
from cortex.codegen.llvm.expressions import evaluate
from cortex.codegen.llvm.types import Value, integer
from cortex.codegen.llvm.writer import Writer
from cortex.errors import InternalError
from cortex.ilir.ir import Accumulate, Barrier, For, If, Let, LoopKind, Mark, Prefetch, Stmt, Store, Switch
from cortex.ir.scalar import Expr


def execute(w: Writer, body: tuple[Stmt, ...]) -> None:
    """Write the statements of a list, in order. What they bind is forgotten at the end of the list."""
    with w.bindings():
        for s in body:
            _execute(w, s)


def _execute(w: Writer, s: Stmt) -> None:
    match s:
        case Store(buffer, index, value):
            array = w.arrays[buffer]
            at = memory.position(w, array, [evaluate(w, i) for i in index])
            memory.store(w, array, at, evaluate(w, value))
        case Accumulate():
            _accumulate(w, s)
        case Let(var, value):
            w.names[var.name] = evaluate(w, value)
        case For(kind=LoopKind.SERIAL | LoopKind.ITEMS_X | LoopKind.ITEMS_Y):  # a thread is one item
            lo, hi = evaluate(w, s.lo), evaluate(w, s.hi)
            _loop(w, s, w.scalar(lo), w.scalar(hi), _iterations(lo, hi))
        case For(kind=LoopKind.PARALLEL):
            _loop(w, s, *parallel.share(w, evaluate(w, s.lo), evaluate(w, s.hi)), None)
        case For(kind=LoopKind.UNROLLED):
            _unrolled(w, s)
        case For(kind=LoopKind.VECTORIZED):
            _vectorized(w, s)
        case If():
            _branch(w, s)
        case Switch():
            _switch(w, s)
        case Barrier("team"):
            parallel.barrier(w)
        case Barrier():
            pass
        case Mark(buffer, index):
            array = w.arrays[buffer]
            at = memory.position(w, array, [evaluate(w, i) for i in index])
            memory.store(w, array, at, Value(w.instruction(w.call(_clock(w), "i64")), "i64"))
        case Prefetch(buffer, index, to):
            array = w.arrays[buffer]
            memory.prefetch(w, array, memory.position(w, array, [evaluate(w, i) for i in index]), to)
        case _:
            assert_never(s)  # type: ignore[arg-type]


def _clock(w: Writer) -> str:
    """The counter that user programs may read: cycles on x86, the system counter elsewhere."""
    return "llvm.readcyclecounter" if w.target.triple.startswith("x86_64") else "llvm.readsteadycounter"


def _accumulate(w: Writer, s: Accumulate) -> None:
    array = w.arrays[s.buffer]
    at = memory.position(w, array, [evaluate(w, i) for i in s.index])
    products = dot.terms_of(s.value) if s.fn == "add" and array.dtype == "f32" else None
    if products is not None and array.storage == "i32":
        memory.store_as_is(w, array, at, dot.add_integers(w, memory.load_integers(w, array, at), products))
        return
    if products is not None:
        new = dot.add_products(w, memory.load(w, array, at), products)
    else:
        value = evaluate(w, s.value)
        new = expressions.binary(w, s.fn, memory.load(w, array, at), value)
    memory.store(w, array, at, new)


def _iterations(lo: Value, hi: Value) -> int | None:
    """The number of iterations of a loop, where it is known."""
    return None if lo.constant is None or hi.constant is None else max(0, hi.constant - lo.constant)


def _loop(w: Writer, s: For, first: str, last: str, iterations: int | None) -> None:
    if iterations == 0:
        return
    between_looks = w.looks.get(id(s), 0)
    if between_looks < 2 or s.turned is not None:
        _iterate(w, s, first, last, iterations is not None, looks=between_looks > 0)
    else:
        _in_pieces(w, s, first, last, iterations is not None, between_looks)


def _in_pieces(w: Writer, s: For, first: str, last: str, is_entered: bool, length: int) -> None:
    """A loop in pieces of `length` iterations, and a look after each piece but the last."""
    before = w.block
    piece, more, after = w.label(f"{s.var}.piece"), w.label(f"{s.var}.more"), w.label(f"{s.var}.end")
    _enter(w, first, last, is_entered, piece, after)
    w.start(piece)
    header = len(w.lines)
    w.lines.append("")  # the phi, once the block that ends the piece is known
    begin = f"%{piece}.begin"
    with w.branch():
        following = w.instruction(f"add nsw i64 {begin}, {length}")
        end = w.instruction(w.call("llvm.smin.i64", "i64", f"i64 {following}", f"i64 {last}"))
        _iterate(w, s, begin, end, is_entered=True, looks=False)
        again = w.instruction(f"icmp slt i64 {end}, {last}")
        w.effect(f"br i1 {again}, label %{more}, label %{after}, !prof !{stop.SELDOM}")
        w.start(more)
        stop.look(w)
    w.lines[header] = f"  {begin} = phi i64 [ {first}, %{before} ], [ {end}, %{w.block} ]"
    w.effect(f"br label %{piece}, !llvm.loop !{w.new_loop()}")
    w.start(after)


def _enter(w: Writer, first: str, last: str, is_entered: bool, body: str, after: str) -> None:
    """Go to the block `body` if there are iterations, else to `after`."""
    if is_entered:
        w.effect(f"br label %{body}")
    else:
        entered = w.pure(f"icmp slt i64 {first}, {last}")
        w.effect(f"br i1 {entered}, label %{body}, label %{after}")


def _iterate(w: Writer, s: For, first: str, last: str, is_entered: bool, looks: bool) -> None:
    """All iterations of a loop. Where `is_entered`, there is one; where `looks`, each looks whether to stop."""
    start, step = (first, "1") if s.turned is None else _direction(w, s.turned, first, last)
    before = w.block
    body, after = w.label(f"{s.var}.body"), w.label(f"{s.var}.end")
    _enter(w, first, last, is_entered, body, after)
    w.start(body)
    header = len(w.lines)
    w.lines.append("")  # the phis, once the block that ends the body is known
    variable = f"%{body}.var"
    counter = variable if s.turned is None else f"%{body}.count"
    with w.branch(), w.bindings():
        w.names[s.var] = Value(variable, "i64")
        if looks:
            stop.look(w)
        execute(w, s.body)
        passed = w.instruction(f"add nuw nsw i64 {counter}, 1")
        following = passed if s.turned is None else w.instruction(f"add nsw i64 {variable}, {step}")
        again = w.instruction(f"icmp slt i64 {passed}, {last}")
    values = {counter: (first, passed), variable: (start, following)}
    phis = (f"  {name} = phi i64 [ {a}, %{before} ], [ {b}, %{w.block} ]" for name, (a, b) in values.items())
    w.lines[header] = "\n".join(phis)
    w.effect(f"br i1 {again}, label %{body}, label %{after}, !llvm.loop !{w.new_loop()}")
    w.start(after)


def _direction(w: Writer, turned: Expr, first: str, last: str) -> tuple[str, str]:
    """Where a turned loop begins and its step. LLVM takes twice as long for a choice inside the loop."""
    down = w.pure(f"trunc i64 {w.scalar(evaluate(w, turned))} to i1")
    end = w.pure(f"add nsw i64 {last}, -1")
    start = w.pure(f"select i1 {down}, i64 {end}, i64 {first}")
    return start, w.pure(f"select i1 {down}, i64 -1, i64 1")


def _constant_bounds(w: Writer, s: For) -> tuple[int, int]:
    lo, hi = evaluate(w, s.lo).constant, evaluate(w, s.hi).constant
    if lo is None or hi is None:
        raise InternalError(f"the {s.kind} loop '{s.var}' needs constant bounds")
    return lo, hi


def _unrolled(w: Writer, s: For) -> None:
    for i in range(*_constant_bounds(w, s)):
        with w.bindings():
            w.names[s.var] = integer(i)
            execute(w, s.body)


def _vectorized(w: Writer, s: For) -> None:
    lo, hi = _constant_bounds(w, s)
    if hi - lo <= 1:
        _unrolled(w, s)
        return
    if w.lanes > 1:
        raise InternalError(f"the vectorized loop '{s.var}' is inside another one")
    w.lanes = hi - lo
    with w.bindings():
        w.names[s.var] = Value("", "i64", 1, 1, lo)
        execute(w, s.body)
    w.lanes = 1


def _branch(w: Writer, s: If) -> None:
    cond = evaluate(w, s.cond)
    then, orelse, after = w.label("then"), w.label("else"), w.label("endif")
    w.effect(f"br i1 {w.scalar(cond)}, label %{then}, label %{orelse if s.orelse else after}")
    for label, body in ((then, s.then), (orelse, s.orelse)):
        if label == then or body:
            w.start(label)
            with w.branch():
                execute(w, body)
            w.effect(f"br label %{after}")
    w.start(after)


def _switch(w: Writer, s: Switch) -> None:
    value, after = w.scalar(evaluate(w, s.value)), w.label("endswitch")
    labels = [w.label(f"case.{c.value}") for c in s.cases]
    arms = " ".join(f"i64 {c.value}, label %{label}" for c, label in zip(s.cases, labels, strict=True))
    w.effect(f"switch i64 {value}, label %{after} [ {arms} ]")
    for case, label in zip(s.cases, labels, strict=True):
        w.start(label)
        with w.branch():
            execute(w, case.body)
        w.effect(f"br label %{after}")
    w.start(after)

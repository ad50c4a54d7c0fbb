"""Scalar expressions as LLVM values."""

from __future__ import annotations

from typing import assert_never

from cortex.codegen.llvm import floats, integers, memory
from cortex.codegen.llvm.log import natural_log
from cortex.codegen.llvm.types import Value, float_text, integer, type_text
from cortex.codegen.llvm.writer import Writer
from cortex.errors import InternalError
from cortex.ir.scalar import (
    COMPARISONS,
    Binary,
    BinaryFn,
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

_COMPARE_FLOATS = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
_FLOAT_OPERATIONS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}


def evaluate(w: Writer, e: Expr) -> Value:
    """Write the instructions that compute `e`. What is the same in all lanes is computed once."""
    match e:
        case Binary(fn, x, y):
            return binary(w, fn, evaluate(w, x), evaluate(w, y))
        case Var(name):
            try:
                return w.names[name]
            except KeyError:
                raise InternalError(f"the variable '{name}' is used where it is not bound") from None
        case Int(value):
            return integer(value)
        case Float(value):
            return Value(float_text(value), "f32")
        case Load(buffer, index):
            array = w.arrays[buffer]
            place = [evaluate(w, i) for i in index]
            if array.in_halves:
                return memory.load_half(w, array, memory.position(w, array, place[:-1]), place[-1])
            return memory.load(w, array, memory.position(w, array, place))
        case Index(fn, args):
            array = w.arrays[fn]
            return memory.load(w, array, memory.position(w, array, [evaluate(w, i) for i in args]))
        case Fma(x, y, z):
            a, b, c = evaluate(w, x), evaluate(w, y), evaluate(w, z)
            n = max(a.lanes, b.lanes, c.lanes)
            return Value(floats.fused(w, n, w.vector(a, n), w.vector(b, n), w.vector(c, n)), "f32", n)
        case Unary(fn, x):
            return _unary(w, fn, evaluate(w, x))
        case Select(cond, x, y):
            return _select(w, evaluate(w, cond), evaluate(w, x), evaluate(w, y))
        case Cast(x, dtype):
            return _cast(w, evaluate(w, x), dtype)
        case _:
            assert_never(e)


def binary(w: Writer, fn: BinaryFn, x: Value, y: Value) -> Value:
    """A function of two values of one type."""
    if x.dtype == "i64":
        return _binary_integer(w, fn, x, y)
    n = max(x.lanes, y.lanes)
    a, b = w.vector(x, n), w.vector(y, n)
    if fn in ("and", "or"):
        return Value(w.pure(f"{fn} {type_text('bool', n)} {a}, {b}"), "bool", n)
    if x.dtype == "bool":
        if fn not in ("eq", "ne"):
            raise InternalError(f"'{fn}' is not a function of bool")
        return Value(w.pure(f"icmp {fn} {type_text('bool', n)} {a}, {b}"), "bool", n)
    if fn in COMPARISONS:
        return Value(w.pure(f"fcmp {_COMPARE_FLOATS[fn]} {type_text('f32', n)} {a}, {b}"), "bool", n)
    if fn in _FLOAT_OPERATIONS:
        return Value(floats.operation(w, _FLOAT_OPERATIONS[fn], n, a, b), "f32", n)
    match fn:
        case "min" | "max":
            return Value(floats.extremum(w, fn, n, x, y), "f32", n)
        case "copysign":
            return Value(floats.intrinsic(w, "copysign", n, a, b), "f32", n)
        case "ldexp":
            return Value(floats.scale(w, n, a, b), "f32", n)
        case _:
            raise InternalError(f"'{fn}' is not a function of f32")


def _binary_integer(w: Writer, fn: BinaryFn, x: Value, y: Value) -> Value:
    match fn:
        case "add":
            return integers.add(w, x, y)
        case "sub":
            return integers.subtract(w, x, y)
        case "mul":
            return integers.multiply(w, x, y)
        case "floordiv" | "mod":
            return integers.divide(w, fn, x, y)
        case "min" | "max":
            return integers.extremum(w, fn, x, y)
        case "lt" | "le" | "gt" | "ge" | "eq" | "ne":
            return integers.compare(w, fn, x, y)
        case _:
            raise InternalError(f"'{fn}' is not a function of i64")


def _unary(w: Writer, fn: str, x: Value) -> Value:
    n = x.lanes
    if x.dtype == "i64":
        if fn == "neg":
            return integers.subtract(w, integer(0), x)
        if fn == "abs":
            return integers.extremum(w, "max", x, integers.subtract(w, integer(0), x))
    elif x.dtype == "bool":
        if fn == "not":
            true = "true" if n == 1 else "splat (i1 true)"
            return Value(w.pure(f"xor {type_text('bool', n)} {x.text}, {true}"), "bool", n)
    else:
        match fn:
            case "neg":
                return Value(w.pure(f"fneg {type_text('f32', n)} {x.text}"), "f32", n)
            case "abs":
                return Value(floats.intrinsic(w, "fabs", n, x.text), "f32", n)
            case "sqrt":
                return Value(floats.intrinsic(w, "sqrt", n, x.text), "f32", n)
            case "round":
                return Value(floats.round_even(w, n, x.text), "f32", n)
            case "log":
                return Value(natural_log(w, n, x.text), "f32", n)
    raise InternalError(f"'{fn}' of {x.dtype} has no instruction; exp, tanh and sigmoid are removed by expand_math")


def _select(w: Writer, cond: Value, x: Value, y: Value) -> Value:
    if cond.text in ("true", "false"):
        return x if cond.text == "true" else y
    n = max(cond.lanes, x.lanes, y.lanes, 1 if x.uniform and y.uniform else w.lanes)
    test = f"i1 {cond.text}" if cond.lanes == 1 else f"{type_text('bool', n)} {cond.text}"
    ty = type_text(x.dtype, n)
    return Value(w.pure(f"select {test}, {ty} {w.vector(x, n)}, {ty} {w.vector(y, n)}"), x.dtype, n)


def _cast(w: Writer, x: Value, dtype: DType) -> Value:
    if x.dtype == dtype:
        return x
    if dtype == "bool" and x.constant is not None and x.dtype == "i64":
        return Value("true" if x.constant else "false", "bool")
    n = 1 if x.uniform else w.lanes
    a, source, result = w.vector(x, n), type_text(x.dtype, n), type_text(dtype, n)
    zero = "zeroinitializer" if n > 1 else ("0" if x.dtype == "i64" else float_text(0.0))
    match x.dtype, dtype:
        case "i64", "f32":
            right = f"sitofp {source} {a} to {result}"
        case "i64", _:
            right = f"icmp ne {source} {a}, {zero}"
        case "f32", "i64":  # the saturating form: an f32 outside i64 must not make the program undefined
            lanes = "" if n == 1 else f"v{n}"
            right = w.call(f"llvm.fptosi.sat.{lanes}i64.{lanes}f32", result, f"{source} {a}")
        case "f32", _:
            right = f"fcmp une {source} {a}, {zero}"
        case _, "f32":
            right = f"uitofp {source} {a} to {result}"
        case _:
            right = f"zext {source} {a} to {result}"
    return Value(w.pure(right), dtype, n)

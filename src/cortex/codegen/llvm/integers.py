"""Integer arithmetic on values of the form `text + offset + step * lane`; see `Value`.

Constants are folded here, not left to LLVM: the bounds and strides of unrolled and vectorized loops must be
known while their text is written.
"""

from __future__ import annotations

from typing import Literal

from cortex.codegen.llvm.types import Value, integer, suffix, type_text
from cortex.codegen.llvm.writer import Writer

_COMPARE = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}


def add(w: Writer, x: Value, y: Value) -> Value:
    """x + y."""
    if x.lanes > 1 or y.lanes > 1:
        return _vectors(w, "add nsw", x, y)
    text = w.pure(f"add nsw i64 {x.text}, {y.text}") if x.text and y.text else x.text or y.text
    return Value(text, "i64", 1, x.step + y.step, x.offset + y.offset)


def subtract(w: Writer, x: Value, y: Value) -> Value:
    """x - y."""
    if x.lanes > 1 or y.lanes > 1:
        return _vectors(w, "sub nsw", x, y)
    if x.text == y.text:
        text = ""
    elif y.text:
        text = w.pure(f"sub nsw i64 {x.text or 0}, {y.text}")
    else:
        text = x.text
    return Value(text, "i64", 1, x.step - y.step, x.offset - y.offset)


def multiply(w: Writer, x: Value, y: Value) -> Value:
    """x * y."""
    factor, other = (x.constant, y) if x.constant is not None else (y.constant, x)
    if factor is not None and other.lanes == 1:
        if factor == 0:
            return integer(0)
        text = w.pure(f"mul nsw i64 {other.text}, {factor}") if other.text and factor != 1 else other.text
        return Value(text, "i64", 1, other.step * factor, other.offset * factor)
    if x.uniform and y.uniform:
        return Value(w.pure(f"mul nsw i64 {w.scalar(x)}, {w.scalar(y)}"), "i64")
    return _vectors(w, "mul nsw", x, y)


def divide(w: Writer, fn: Literal["floordiv", "mod"], x: Value, y: Value) -> Value:
    """x // y or x % y, rounding down; operands are not negative."""
    divisor = y.constant
    if divisor is not None and divisor > 0 and x.lanes == 1 and not x.text:
        first, last = x.offset, x.offset + x.step * (w.lanes - 1)
        if first // divisor == last // divisor:
            quotient = first // divisor
            return integer(quotient) if fn == "floordiv" else x._replace(offset=first - quotient * divisor)
    op = "udiv" if fn == "floordiv" else "urem"
    if x.uniform and y.uniform:
        return Value(w.pure(f"{op} i64 {w.scalar(x)}, {w.scalar(y)}"), "i64")
    return _vectors(w, op, x, y)


def extremum(w: Writer, fn: Literal["min", "max"], x: Value, y: Value) -> Value:
    """The smaller or the greater."""
    if x.constant is not None and y.constant is not None:
        return integer((min if fn == "min" else max)(x.constant, y.constant))
    n = 1 if x.uniform and y.uniform else w.lanes
    ty = type_text("i64", n)
    name = f"llvm.s{fn}.{suffix('i64', n)}"
    return Value(w.pure(w.call(name, ty, f"{ty} {w.vector(x, n)}", f"{ty} {w.vector(y, n)}")), "i64", n)


def compare(w: Writer, fn: str, x: Value, y: Value) -> Value:
    """x fn y as a bool."""
    n = 1 if x.uniform and y.uniform else w.lanes
    right = f"icmp {_COMPARE[fn]} {type_text('i64', n)} {w.vector(x, n)}, {w.vector(y, n)}"
    return Value(w.pure(right), "bool", n)


def _vectors(w: Writer, op: str, x: Value, y: Value) -> Value:
    n = w.lanes
    return Value(w.pure(f"{op} {type_text('i64', n)} {w.vector(x, n)}, {w.vector(y, n)}"), "i64", n)

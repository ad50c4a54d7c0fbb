"""ILIR as text: what a reader sees of a program. (`repr` rebuilds it; `show` is for people.)

func tree_rnn(num_nodes, num_groups, max_group)
  index group_start: 0..num_groups, in_nodes, < num_nodes
  param W[4, 4] f32, rows of 16
  state h[num_nodes, 4] f32
{
  for g in 0..num_groups:
    for n in group_start(g)..group_start(g) + group_len(g):
      for j in 0..4 vectorized:
        h[n, j] = sigmoid(t[n, j] + b[j])
}
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import assert_never

from cortex.ilir.ir import (
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
    Stmt,
    Store,
    Switch,
)
from cortex.ir.scalar import Binary, Cast, Expr, Float, Fma, Index, Int, Load, Select, Unary, Var

_INFIX = {
    "or": ("or", 1), "and": ("and", 2),
    "lt": ("<", 4), "le": ("<=", 4), "gt": (">", 4), "ge": (">=", 4), "eq": ("==", 4), "ne": ("!=", 4),
    "add": ("+", 5), "sub": ("-", 5),
    "mod": ("mod", 6), "mul": ("*", 7), "div": ("/", 7), "floordiv": ("//", 7),
}  # fmt: skip
_NOT, _COMPARE, _SUM, _PREFIX, _ATOM = 3, 4, 5, 8, 9
_TIGHT = ("*", "/", "//")  # written without blanks where that cannot be misread: i*16 + j
_UPDATE = {"add": "+=", "max": "max=", "min": "min="}


def show(f: Func) -> str:
    """The whole function: its inputs, arrays and packings, then its loops."""
    lines = [f"func {f.name}({', '.join(f.sizes)})"]
    lines += [f"  {_show_index_function(i)}" for i in f.index_functions]
    lines += [f"  {_show_buffer(b)}" for b in f.buffers]
    lines += [f"  {line}" for p in f.packings for line in _show_packing(p)]
    return "\n".join([*lines, "{", *(f"  {line}".rstrip() for line in _lines(f.body)), "}"]) + "\n"


def show_stmts(body: tuple[Stmt, ...], marked: str | None = None) -> str:
    """Statements, one to a line. With `marked`, the loop with that variable has `> ` before it."""
    lines = _lines(body)
    if marked is None:
        return "\n".join(lines)
    return "\n".join(("> " if line.lstrip().startswith(f"for {marked} in ") else "  ") + line for line in lines)


def show_expr(e: Expr) -> str:
    """An expression on one line."""
    return _expr(e)[0]


def _show_index_function(i: IndexFunction) -> str:
    limit = [] if i.less_than is None else [f"< {show_expr(i.less_than)}"]
    return ", ".join([f"index {i.name}: 0..{show_expr(i.extent)}", *i.facts, *limit])


def _show_buffer(b: Buffer) -> str:
    padding = "" if b.align == 1 else f", rows of {b.align}"
    streamed = ", streamed" if b.streamed else ""
    return f"{b.scope.value} {b.name}{_subscript(b.shape)} {b.dtype}{padding}{streamed}"


def _show_packing(p: Packing) -> Iterator[str]:
    outer = [f"o{i}" for i in range(len(p.outer))]
    extents = [f"{name} < {n}" for name, n in zip(outer, p.outer, strict=True)]
    for gate, source in enumerate(p.gates):
        is_scale = p.part != "weights"
        k, last = ("k", []) if p.steps == 1 else (f"k // {p.steps}", [f"k mod {p.steps}"])
        place = [f"j // {p.width}", "0" if is_scale else k, str(gate), f"j mod {p.width}", *last]
        target = ", ".join([*outer, *place])
        domain = ", ".join([*extents, f"j < {p.columns}", f"k < {p.depth}"])
        value = f"{source.param}{_subscript(source.index)}"
        match p.part:
            case "scales_i8":
                value = f"max over k of |{value}| / 127"
            case "scales_i16":
                value = f"scale of {value} over k"
        yield f"pack {p.buffer}[{target}] = {value}  ({domain})"


def _lines(body: tuple[Stmt, ...]) -> list[str]:
    return [line for s in body for line in _statement(s)]


def _indented(body: tuple[Stmt, ...]) -> list[str]:
    return [f"  {line}" for line in _lines(body)] or ["  pass"]


def _statement(s: Stmt) -> list[str]:
    match s:
        case For(var, lo, hi, body, kind):
            how = "" if kind is LoopKind.SERIAL else f" {kind.value}"
            how += "" if s.turned is None else f" down where {show_expr(s.turned)} is odd"
            return [f"for {var} in {_bound(lo)}..{_bound(hi)}{how}:", *_indented(body)]
        case If(cond, then, orelse):
            rest = ["else:", *_indented(orelse)] if orelse else []
            return [f"if {show_expr(cond)}:", *_indented(then), *rest]
        case Switch(value, cases):
            arms = [line for c in cases for line in (f"case {c.value}:", *_indented(c.body))]
            return [f"switch {show_expr(value)}:", *(f"  {line}" for line in arms)]
        case Let(var, value):
            return [f"let {var.name}: {var.dtype} = {show_expr(value)}"]
        case Store(buffer, index, value):
            return [f"{buffer}{_subscript(index)} = {show_expr(value)}"]
        case Accumulate(buffer, index, fn, value):
            return [f"{buffer}{_subscript(index)} {_UPDATE[fn]} {show_expr(value)}"]
        case Barrier(among):
            return ["barrier" if among == "team" else "item barrier"]
        case Mark(buffer, index):
            return [f"{buffer}{_subscript(index)} = clock()"]
        case Prefetch(buffer, index, to):
            return [f"prefetch to {to} {buffer}{_subscript(index)}"]
        case _:
            assert_never(s)


def _bound(e: Expr) -> str:
    text, level = _expr(e)
    return text if level >= _SUM else f"({text})"


def _subscript(index: tuple[Expr, ...]) -> str:
    return f"[{', '.join(map(show_expr, index))}]"


def _call(fn: str, *args: Expr) -> tuple[str, int]:
    return f"{fn}({', '.join(map(show_expr, args))})", _ATOM


def _expr(e: Expr) -> tuple[str, int]:
    """The text of `e` and how tightly its outermost operator binds."""
    match e:
        case Int(value):
            return str(value), _ATOM if value >= 0 else _PREFIX
        case Float(value):
            return repr(value), _ATOM if math.copysign(1.0, value) > 0 else _PREFIX
        case Var(name):
            return name, _ATOM
        case Load(buffer, index):
            return f"{buffer}{_subscript(index)}", _ATOM
        case Index(fn, args):
            return _call(fn, *args)
        case Unary("neg", x):
            return f"-{_operand(x, _PREFIX + 1)}", _PREFIX
        case Unary("not", x):
            return f"not {_operand(x, _NOT)}", _NOT
        case Unary(fn, x):
            return _call(fn, x)
        case Binary(fn, x, y) if fn in _INFIX:
            symbol, level = _INFIX[fn]
            # Comparisons do not chain, and of the rest all associate to the left as written.
            left, right = _operand(x, level + (level == _COMPARE)), _operand(y, level + 1)
            tight = symbol in _TIGHT and left.isidentifier() and right.isalnum()
            return f"{left}{symbol}{right}" if tight else f"{left} {symbol} {right}", level
        case Binary(fn, x, y):
            return _call(fn, x, y)
        case Fma(x, y, z):
            return _call("fma", x, y, z)
        case Select(cond, x, y):
            return _call("select", cond, x, y)
        case Cast(Int(value), "bool"):
            return "true" if value else "false", _ATOM
        case Cast(x, dtype):
            return _call(dtype, x)
        case _:
            assert_never(e)


def _operand(e: Expr, least: int) -> str:
    text, level = _expr(e)
    return text if level >= least else f"({text})"

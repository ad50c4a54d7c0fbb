"""What code asks that Python answers without asking the stand-ins: `is` between nodes, `id(node)`, `type(node)`.

Such questions are found in the source (`written.py`). Where a model function has some, its calls have to be seen; then
they have their meaning (`torch/rewrite.py`, `torch/rebuild.py`).
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import CellType, CodeType, FunctionType
from typing import Any

from cortex.frontend.beyond import beyond_at
from cortex.frontend.spans import is_library, span_at, span_of, span_of_function
from cortex.frontend.written import codes, names_in, with_inner, written
from cortex.ir.source import Span

REMEDY = (
    "a model is traced with stand-ins for the nodes. Make the class a field, "
    'fields={"kind": lambda node: type(node).__name__}, and compare it: node.kind == "Join".'
)

Test = tuple[ast.Compare, ast.expr, ast.expr]
"""A comparison by `is` or `is not`, and both sides; a chain may have several."""


def refuse_unseen_questions(function: Callable[..., Any], node: str) -> None:
    """Refuse to trace a model function node by node that asks for identity or for the class of a node.

    `node` is its first parameter. So are user functions that it names, as far as identity goes.
    """
    span = _asks_class(function.__code__, node)
    if span is not None:
        raise beyond_at(f"the class of a node is asked for, and {REMEDY}", span)
    for found in functions_of(function):
        span = _asks_identity(found.__code__)
        if span is not None:
            raise beyond_at(
                "objects are compared by `is` or by id(...) here, and a model is traced with stand-ins for nodes and "
                "what they hold. Compare values by ==. Of nodes, let a field say it: "
                'fields={"is_twice": lambda node: node.left is node.right}, and test node.is_twice. A torch module may '
                "compare nodes by `is` and by ==.",
                span,
            )


def identity_tests(outer: ast.AST) -> Iterator[Test]:
    """The comparisons by `is` in a function that Python itself may not decide: all but those with None and `...`."""
    for x in with_inner(outer):
        if isinstance(x, ast.Compare):
            sides = [x.left, *x.comparators]
            tests = zip(sides, x.ops, sides[1:], strict=False)
            yield from ((x, left, right) for left, op, right in tests if needs_meaning(left, op, right))


def needs_meaning(left: ast.expr, op: ast.cmpop, right: ast.expr) -> bool:
    """Is it an `is` of which Python itself may not decide?"""
    is_none = any(isinstance(side, ast.Constant) and side.value in (None, ...) for side in (left, right))
    return isinstance(op, ast.Is | ast.IsNot) and not is_none


@lru_cache(maxsize=512)
def first_is(code: CodeType) -> Span | None:
    """The first comparison of objects by `is`; without source, the first `is` whose right side is no constant.

    Safe in all versions of Python: without source, what is found is refused.
    """
    outer = written(code)
    if outer is not None:
        found = next(identity_tests(outer), None)
        return None if found is None else span_of(code, found[0])
    for inner in codes(code):
        before = None
        for step in dis.get_instructions(inner):
            is_constant = before is not None and "CONST" in before.opname and type(before.argval) is not bool
            if step.opname == "IS_OP" and not is_constant:
                return span_at(inner, step.offset) or span_of_function(inner)
            before = before if step.opname in ("CACHE", "EXTENDED_ARG") else step
    return None


@lru_cache(maxsize=512)
def tells_truth(code: CodeType) -> bool:
    """May code compare with True or False by `is`?"""
    outer = written(code)
    if outer is None:
        return first_is(code) is not None
    has_truth = any(isinstance(x, ast.expr) and _is_truth(x) for x in with_inner(outer))
    return has_truth and first_is(code) is not None


def _asks_identity(code: CodeType) -> Span | None:
    """Where code may ask whether what a node leads to is some object, or for the id of one.

    `type(x) is Leaf` and comparisons of what is from outside the function do not; nor does `x is True`, as fields are
    then told by value (`tells_truth`).
    """
    outer = written(code)
    if outer is None:
        return first_is(code)
    own = {name for inner in codes(code) for name in (*inner.co_varnames, *inner.co_cellvars)}
    for test, left, right in identity_tests(outer):
        is_outside = isinstance(left, ast.Call) or _root(left) not in (None, *own)
        if not _is_truth(right) and not (is_outside and _root(right) not in (None, *own)):
            return span_of(code, test)
    ids = (x for x in with_inner(outer) if isinstance(x, ast.Name) and x.id == "id" and "id" not in own)
    return next((span_of(code, x) for x in ids), None)


def _asks_class(code: CodeType, node: str) -> Span | None:
    """Where code calls `type(node)` or `type(node.left)`, for the model's first parameter or what is iterated."""
    outer = written(code)
    if outer is None:
        return span_of_function(code) if "type" in names_in(code) else None
    parts = list(with_inner(outer))
    targets = [x.target for x in parts if isinstance(x, ast.For | ast.comprehension)]
    nodes = {node, *(x.id for target in targets for x in ast.walk(target) if isinstance(x, ast.Name))}
    for x in parts:
        match x:
            case ast.Call(func=ast.Name(id="type"), args=[of]) if _root(of) in nodes:
                return span_of(code, x)
    return None


def _is_truth(x: ast.expr) -> bool:
    return isinstance(x, ast.Constant) and type(x.value) is bool


def _root(x: ast.expr) -> str | None:
    """The name that an expression begins with: `node` of `node.left.right`; None of anything else."""
    while isinstance(x, ast.Attribute):
        x = x.value
    return x.id if isinstance(x, ast.Name) else None


def functions_of(function: Callable[..., Any]) -> Iterator[FunctionType]:
    """A function, and the user's functions that it names, and so on."""
    todo: list[Any] = [function]
    seen: list[Any] = []
    while todo:
        at = todo.pop()
        if not isinstance(at, FunctionType) or is_library(at.__code__.co_filename) or at in seen:
            continue
        seen.append(at)
        yield at
        todo += (cell.cell_contents for cell in at.__closure__ or () if is_bound(cell))
        todo += (at.__globals__.get(name) for code in codes(at.__code__) for name in code.co_names)


def is_bound(cell: CellType) -> bool:
    """Has a variable of an outer function a value yet?"""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False

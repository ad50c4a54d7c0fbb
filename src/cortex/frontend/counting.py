"""Lists made by a comprehension over children, where their length matters.

Such a comprehension runs once for all children, so the list it makes has one item, whatever their number:

    hs = [f(k, w).h for k in node.children]
    cortex.sum(hs)     right: the item stands for all children
    len(hs), if hs     wrong: always 1, always true

The second kind of use gives no tensor that could be checked, hence this look at the source.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FrameType

from cortex.errors import ModelError
from cortex.frontend.spans import span_between
from cortex.ir.source import Span

COLLECTIONS = (ast.ListComp, ast.SetComp, ast.DictComp)
COUNTING = ("len", "enumerate", "bool", "any", "all", "range", "reversed", "sorted")


def refuse_counting(frame: FrameType, relation: str) -> None:
    """Refuse the comprehension over children that `frame` is about to run, if the model counts its items."""
    span = _where_counted(frame.f_code, frame.f_lasti)
    if span is not None:
        raise ModelError(
            f"the items of a comprehension over '{relation}' are counted here: it runs once for all children, so it "
            f"has one item whatever their number. Count the children themselves, len(node.{relation}) (one kind for "
            "each number), or take them one by one in a `for` statement.",
            span,
        )


@lru_cache(maxsize=256)
def _where_counted(code: CodeType, lasti: int) -> Span | None:
    """Where the items of the collection that the instruction at `lasti` begins to make are counted, if anywhere."""
    position = list(code.co_positions())[lasti // 2]
    line, _, column, _ = position
    if line is None or column is None:
        return None
    text = linecache.getline(code.co_filename, line).encode()  # columns count bytes of UTF-8
    if text[column : column + 1] not in (b"[", b"{"):  # a generator, most often: no need to parse the file
        return None
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except SyntaxError:  # a notebook's magic, or a file that has changed meanwhile
        return None
    parents = {id(child): parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    for node in ast.walk(tree):
        if isinstance(node, COLLECTIONS) and _position(node) == position:
            for use in _uses(node, parents):
                if _counts(use, parents):
                    around = parents[id(use)]
                    at = around if isinstance(around, ast.Call) else use
                    return span_between(code, at.lineno, at.col_offset, at.end_lineno, at.end_col_offset)
    return None


def _uses(made: ast.expr, parents: dict[int, ast.AST]) -> Iterator[ast.expr]:
    """The comprehension itself, and every use of the variable it is assigned to."""
    yield made
    match parents.get(id(made)):
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            pass
        case ast.NamedExpr(target=ast.Name(id=name)) as named:
            yield named
        case _:
            return
    function: ast.AST = made
    while id(function) in parents and not isinstance(function, ast.FunctionDef):
        function = parents[id(function)]
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            yield node


def _counts(use: ast.expr, parents: dict[int, ast.AST]) -> bool:
    """Does the expression around `use` depend on how many items there are?"""
    match parents.get(id(use)):
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) | ast.Assert(test=test):
            return test is use
        case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Call(func=ast.Name(id=function), args=arguments):
            return function in COUNTING and use in arguments
    return False


def _position(node: ast.expr) -> tuple[int | None, int | None, int | None, int | None]:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset

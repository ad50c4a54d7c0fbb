"""What Python decides alone, with another meaning: code is compiled again from its source, with calls in its place.

before:  if node.parent.left is node: c = torch.Tensor(node.num_children, self.size)
after:   if _cortex_is(node.parent.left, node): c = _cortex_sized(torch.Tensor, node.num_children, self.size)

Comparisons with None stay. A text or a number in the code is refused where Python does not promise that equal ones are
one object: the code that is compiled again has another. Lines and columns stay, so that messages show the user's text.
"""

from __future__ import annotations
import __future__

import ast
from copy import deepcopy
from functools import lru_cache
from types import CodeType

from cortex.errors import ModelError
from cortex.frontend.node_identity import first_is, needs_meaning
from cortex.frontend.spans import span_between
from cortex.frontend.written import codes, names_in, with_inner, written

NAME, SIZED = "_cortex_is", "_cortex_sized"
"""The global names that the calls use."""
CLASSES, FUNCTIONS = ("Tensor", "FloatTensor"), ("zeros", "ones", "empty", "expand", "repeat")
"""What takes sizes one by one: torch takes nothing that stands for a number there, and asks nobody."""

FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


def _is_shared(value: object) -> bool:
    """Is a constant one object wherever code has an equal one? CPython keeps one of each name and small integer."""
    if isinstance(value, str):
        return value.isascii() and value.isidentifier()
    return isinstance(value, bool) or (type(value) is int and -5 <= value <= 256)


def rewrite(code: CodeType) -> CodeType:
    """The code with calls in place of `is` and of what takes sizes; itself where it has none."""
    asked = first_is(code)
    if asked is not None:
        made = _rewritten(code)
        if made is None:
            raise ModelError(
                f"{code.co_name} compares objects by `is`, and its source is not at hand, or is a lambda. Compare "
                "nodes by ==, or fields of them, or define it by `def` in a file.",
                asked,
            )
        return made
    found = written(code) if not {*CLASSES, *FUNCTIONS}.isdisjoint(names_in(code)) else None
    has_sizes = isinstance(found, ast.FunctionDef) and any(map(_takes_sizes, with_inner(found)))
    return (_rewritten(code) or code) if has_sizes else code


def _takes_sizes(x: ast.AST) -> bool:
    """Is it a call of one of these with sizes, some of which are computed?"""
    match x:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, *others]):
            is_constant = all(isinstance(each, ast.Constant) for each in (first, *others))
            return not is_constant and (name in CLASSES or (name in FUNCTIONS and bool(others)))
    return False


@lru_cache(maxsize=512)
def _rewritten(code: CodeType) -> CodeType | None:
    found = written(code)
    made = _compiled(found, code) if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef) else None
    if made is None or set(made.co_freevars) != set(code.co_freevars):
        return None
    assert made.co_freevars == code.co_freevars  # both are sorted
    return made.replace(co_qualname=code.co_qualname, co_firstlineno=code.co_firstlineno)


class _Rewriting(ast.NodeTransformer):
    def __init__(self, code: CodeType) -> None:
        self._code = code

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        operands = [node.left, *node.comparators]
        parts = [self._part(left, op, right) for left, op, right in zip(operands, node.ops, operands[1:], strict=False)]
        if all(isinstance(part, ast.Compare) for part in parts):
            return node
        made = parts[0] if len(parts) == 1 else ast.BoolOp(ast.And(), parts)
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if not _takes_sizes(node):
            return node
        made = ast.Call(ast.Name(SIZED, ast.Load()), [node.func, *node.args], node.keywords)
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def _part(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
        if not needs_meaning(left, op, right):
            return ast.Compare(left, [op], [right])
        if not all(_is_shared(x.value) for x in (left, right) if isinstance(x, ast.Constant)):
            raise ModelError(
                f"`{ast.unparse(ast.Compare(left, [op], [right]))}` asks whether two values are one object, which "
                f"Python does not promise of equal ones. Compare them by {'==' if isinstance(op, ast.Is) else '!='}.",
                span_between(self._code, left.lineno, left.col_offset, right.end_lineno, right.end_col_offset),
            )
        call = ast.Call(ast.Name(NAME, ast.Load()), [left, right], [])
        return call if isinstance(op, ast.Is) else ast.UnaryOp(ast.Not(), call)


def _compiled(function: ast.FunctionDef | ast.AsyncFunctionDef, code: CodeType) -> CodeType | None:
    body = [_Rewriting(code).visit(deepcopy(statement)) for statement in function.body]
    bare = type(function)(function.name, _without_values(function.args), body, [], lineno=0)
    ast.copy_location(bare, function)
    inner: list[ast.stmt] = [bare]
    owner = code.co_qualname.split(".")[-2:-1]
    if owner and owner[0] != "<locals>":  # names with two underscores are those of the class
        inner = [ast.ClassDef(owner[0], [], [], inner, [])]
    elif bare.name not in code.co_freevars:
        inner = [ast.Global([bare.name]), bare]  # it finds itself where it found itself before
    around = ast.parse(f"def around({', '.join(code.co_freevars)}): pass").body[0]
    assert isinstance(around, ast.FunctionDef)
    around.body = inner
    tree = ast.fix_missing_locations(ast.Module([around], []))
    made = compile(tree, code.co_filename, "exec", flags=code.co_flags & FUTURE, dont_inherit=True)
    return next((c for c in codes(made) if (c.co_name, c.co_firstlineno) == (bare.name, bare.lineno)), None)


def _without_values(args: ast.arguments) -> ast.arguments:
    """The parameters alone: defaults and annotations are those of the function that there is."""

    def bare(arg: ast.arg) -> ast.arg:
        return ast.copy_location(ast.arg(arg.arg), arg)

    return ast.arguments(
        [bare(a) for a in args.posonlyargs],
        [bare(a) for a in args.args],
        None if args.vararg is None else bare(args.vararg),
        [bare(a) for a in args.kwonlyargs],
        [None] * len(args.kwonlyargs),
        None if args.kwarg is None else bare(args.kwarg),
        [],
    )

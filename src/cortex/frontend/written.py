"""The user's code as it is written: the syntax of a function, and of the expression that is running.

Questions about what code says (does it compare by `is`, does a `try` surround this?) are answered from here, and never
from byte code, which each version of Python compiles in its own way. What is used of code objects means the same in all
versions: the file, the name and the first line, and the place in the source of each instruction (PEP 657).

None stands for source that is not at hand: code from `exec`, or of a plain interactive session. Who asks must then
suppose what is safe.
"""

from __future__ import annotations

import ast
import dis
import linecache
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import CodeType, FrameType

Position = tuple[int, int, int, int]
"""First line and column, last line and column; columns count bytes."""

COMPREHENSIONS: Mapping[type[ast.AST], str] = {
    ast.Lambda: "<lambda>",
    ast.GeneratorExp: "<genexpr>",
    ast.ListComp: "<listcomp>",
    ast.SetComp: "<setcomp>",
    ast.DictComp: "<dictcomp>",
}
MODULE = "<module>"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.ClassDef, *COMPREHENSIONS)


def codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def names_in(code: CodeType) -> tuple[str, ...]:
    """The global names and attributes that a function, and the functions inside it, may use."""
    return tuple(dict.fromkeys(name for inner in codes(code) for name in inner.co_names))


@lru_cache(maxsize=4096)
def positions(code: CodeType) -> tuple[tuple[int | None, ...], ...]:
    """First and last line, first and last column of each instruction's source, as `co_positions` gives them."""
    return tuple(code.co_positions())


@lru_cache(maxsize=4096)
def written(code: CodeType) -> ast.AST | None:
    """The definition, lambda or comprehension that code was compiled from; None where the source is not at hand."""
    scopes = _scopes("".join(linecache.getlines(code.co_filename)))
    found = scopes.get((code.co_name, 0 if code.co_name == MODULE else code.co_firstlineno), ())
    if len(found) > 1:  # lambdas in one line: the smallest around all that the code does
        places = [p for at in range(len(positions(code))) if (p := _position(code, at)) is not None and p[:2] < p[2:]]
        found = tuple(x for x in found if all(_is_around(place_of(getattr(x, "body", x)), place) for place in places))
        return min(found, key=lambda x: _size(place_of(x)), default=None)
    return found[0] if found else None


@lru_cache(maxsize=4096)
def running_at(code: CodeType, lasti: int) -> ast.AST | None:
    """The syntax that the instruction at byte offset `lasti` was compiled from."""
    place, outer = _position(code, lasti // 2), written(code)
    if place is None or outer is None:
        return None
    around = [x for x in ast.walk(outer) if hasattr(x, "lineno") and _is_around(place_of(x), place)]
    # The call of a method that stands in a line of its own begins there: it is the smallest around that.
    smallest = min((_size(place_of(x)) for x in around), default=None)
    alike = [x for x in around if _size(place_of(x)) == smallest]
    return next((x for x in alike if not isinstance(x, ast.stmt)), alike[0] if alike else None)


def running(frame: FrameType) -> ast.AST | None:
    """The syntax that is being evaluated in a frame."""
    return running_at(frame.f_code, frame.f_lasti)


def handles_errors(frame: FrameType) -> bool:
    """Does an `except` or a `finally` of this frame's function cover what is running? So without source, to be safe."""
    code = frame.f_code
    if not code.co_exceptiontable:  # there is none
        return False
    place, handled = _position(code, frame.f_lasti // 2), _handled(code)
    return place is None or handled is None or any(_is_around(block, place) for block in handled)


@lru_cache(maxsize=1024)
def _handled(code: CodeType) -> tuple[Position, ...] | None:
    """The statements of a function that an `except` or a `finally` covers."""
    outer = written(code)
    if outer is None:
        return None
    tries = [x for x in inside(outer) if isinstance(x, ast.Try | ast.TryStar)]
    blocks = [block for x in tries for block in ([x.body] if x.handlers else [])]
    blocks += [block for x in tries if x.finalbody for block in (x.body, x.orelse, *(h.body for h in x.handlers))]
    return tuple(place_of(statement) for block in blocks for statement in block)


def inside(scope: ast.AST) -> Iterator[ast.AST]:
    """What a function consists of, without functions inside it, annotations, and what its definition evaluates."""
    todo: list[ast.AST] = list(_body(scope))
    while todo:
        x = todo.pop()
        yield x
        if isinstance(x, SCOPES):
            continue
        skipped = x.annotation if isinstance(x, ast.AnnAssign) else None
        todo += (child for child in ast.iter_child_nodes(x) if child is not skipped)


def with_inner(scope: ast.AST) -> Iterator[ast.AST]:
    """What a function and all functions inside it consist of."""
    for x in inside(scope):
        yield x
        if isinstance(x, SCOPES):
            if isinstance(x, (*FUNCTIONS, ast.Lambda)):
                yield from (part for default in _defaults(x.args) for part in ast.walk(default))
            yield from with_inner(x)


def has_fixed_operand(frame: FrameType) -> bool:
    """Is an operand of what is being evaluated the same for every node: `len(kids) > 40`, `kids[: self.most]`?

    Constants are, attributes of `self`, and names from outside of the function. Without source, nothing is.
    """
    match running(frame):
        case ast.Compare(left=left, comparators=others):
            operands = [left, *others]
        case ast.Call(func=ast.Name(id="min" | "max"), args=operands):
            pass
        case ast.Subscript(slice=ast.Slice(lower=lower, upper=upper, step=step)):
            return all(x is None or _is_fixed(x, frame.f_code) for x in (lower, upper, step))
        case ast.Subscript(slice=index):
            operands = [index]
        case _:
            return False
    return any(_is_fixed(x, frame.f_code) for x in operands)


def _is_fixed(x: ast.expr, code: CodeType) -> bool:
    own = {*code.co_varnames, *code.co_cellvars} - ({"self"} if code.co_varnames[:1] == ("self",) else set())
    return not any(isinstance(y, ast.Call) or (isinstance(y, ast.Name) and y.id in own) for y in ast.walk(x))


def passes_on(code: CodeType, name: str) -> bool:
    """Does code use a global name other than by calling it, `map(float, xs)`? So without source, to be safe."""
    if name not in names_in(code):
        return False
    outer = written(code)
    if outer is None:
        return True
    parts = list(with_inner(outer))
    called = {id(x.func) for x in parts if isinstance(x, ast.Call)}
    return any(isinstance(x, ast.Name) and x.id == name and id(x) not in called for x in parts)


def instruction(frame: FrameType) -> str:
    """The name of the instruction that runs in code without source; "" for one of a version that is not known.

    Safe: who asks knows some names, which mean the same in all versions, and refuses what has another one.
    """
    code, at = frame.f_code.co_code, frame.f_lasti
    while at and dis.opname[code[at]] == "CACHE":
        at -= 2  # a call of a Python function has stepped over what belongs to its instruction
    return dis.opname[code[at]]


def place_of(x: ast.AST) -> Position:
    """Where syntax stands; a definition without its decorators."""
    return x.lineno, x.col_offset, x.end_lineno, x.end_col_offset  # type: ignore[attr-defined]


def _defaults(args: ast.arguments) -> list[ast.expr]:
    return [*args.defaults, *(x for x in args.kw_defaults if x is not None)]


def _body(scope: ast.AST) -> Iterator[ast.AST]:
    if isinstance(scope, ast.Lambda):
        yield scope.body
    elif isinstance(scope, (*FUNCTIONS, ast.ClassDef, ast.Module)):
        yield from scope.body
    else:
        yield from ast.iter_child_nodes(scope)


def _position(code: CodeType, at: int) -> Position | None:
    line, end_line, column, end = positions(code)[at]
    if line is None or end_line is None or column is None or end is None:
        return None
    return line, column, end_line, end


def _is_around(outer: Position, inner: Position) -> bool:
    return outer[:2] <= inner[:2] and inner[2:] <= outer[2:]


def _size(place: Position) -> tuple[int, int]:
    return place[2] - place[0], place[3] - place[1]


@lru_cache(maxsize=64)
def _scopes(text: str) -> Mapping[tuple[str, int], tuple[ast.AST, ...]]:
    """The scopes of a file by name and first line."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # a notebook's magic, or a file that has changed meanwhile
        return {}
    found: dict[tuple[str, int], tuple[ast.AST, ...]] = {(MODULE, 0): (tree,)}
    for x in ast.walk(tree):
        if isinstance(x, (*FUNCTIONS, ast.ClassDef)):
            key = x.name, min([x.lineno, *(d.lineno for d in x.decorator_list)])
        elif type(x) in COMPREHENSIONS:
            key = COMPREHENSIONS[type(x)], x.lineno  # type: ignore[attr-defined]
        else:
            continue
        found[key] = (*found.get(key, ()), x)
    return found

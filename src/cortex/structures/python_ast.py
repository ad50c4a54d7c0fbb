"""Python syntax trees: every function of a source text, or of Python's standard library, as a tree.

A node stands for a syntax node: its `label` is the type's name ("Call"), its `word` hashes the type together with
the identifier it carries (a name, an attribute, an argument) or, for a constant, the type of the value.
Load/Store/Del contexts are left out.
"""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

from cortex.errors import StructureError
from cortex.structures.tree import Node
from cortex.structures.vocabulary import Words, word_ids

_IDENTIFIER = {
    ast.Name: "id",
    ast.Attribute: "attr",
    ast.arg: "arg",
    ast.keyword: "arg",
    ast.alias: "name",
    ast.FunctionDef: "name",
    ast.AsyncFunctionDef: "name",
    ast.ClassDef: "name",
    ast.ExceptHandler: "name",
    ast.ImportFrom: "module",
}
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def functions(source: str, *, words: Words | None = None) -> Iterator[tuple[str, Node]]:
    """(qualified name, tree) for every function and method of a Python source text, inner before outer.

    An inner function's tree is part of the outer one's: the same nodes, not copies.
    """
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        problem = error.msg if isinstance(error, SyntaxError) else (str(error) or type(error).__name__)
        raise StructureError(f"functions(source){line}: {problem}; give Python source that parses") from None
    yield from _functions(module, word_ids(words))


def standard_library(*, words: Words | None = None) -> Iterator[tuple[str, Node]]:
    """(file:qualified name, tree) for the functions of this Python's standard library, file by file in sorted order.

    Its tests and installed packages are left out, and so are files that do not parse (templates, Python 2).
    """
    library = Path(sysconfig.get_path("stdlib"))
    word_id = word_ids(words)
    for path in sorted(library.rglob("*.py")):
        relative = path.relative_to(library)
        if {"test", "tests", "idle_test", "site-packages", "dist-packages"} & set(relative.parts):
            continue
        try:
            module = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError, RecursionError):
            continue
        for name, tree in _functions(module, word_id):
            yield f"{relative.as_posix()}:{name}", tree


def _functions(module: ast.Module, word_id: Callable[[str], int]) -> list[tuple[str, Node]]:
    """Build the whole module once, children first, and pick the functions out on the way."""
    found: list[tuple[str, Node]] = []
    # A frame: the syntax node, its children still to build, the trees built so far, the scope its children are in.
    stack: list[tuple[ast.AST, list[ast.AST], list[Node], str]] = [(module, _children(module), [], "")]
    while True:
        node, rest, trees, scope = stack[-1]
        if rest:
            child = rest.pop()
            inner = f"{scope}{child.name}." if isinstance(child, _SCOPES) else scope
            stack.append((child, _children(child), [], inner))
            continue
        stack.pop()
        kind = type(node).__name__
        tree = Node(trees, word_id(_word(node, kind)), kind)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.append((scope[:-1], tree))
        if not stack:
            return found
        stack[-1][2].append(tree)


def _children(node: ast.AST) -> list[ast.AST]:
    """The syntax nodes directly below, last first."""
    below: list[ast.AST] = []
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, ast.AST):
            if not isinstance(value, ast.expr_context):
                below.append(value)
        elif type(value) is list:
            below += [item for item in value if isinstance(item, ast.AST)]
    below.reverse()
    return below


def _word(node: ast.AST, kind: str) -> str:
    if isinstance(node, ast.Constant):
        return f"{kind}:{type(node.value).__name__}"
    attribute = _IDENTIFIER.get(type(node))
    identifier = getattr(node, attribute) if attribute else None
    return f"{kind}:{identifier}" if identifier else kind

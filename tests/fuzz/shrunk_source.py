"""A smaller program that fails likewise: statements are left out while it does."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator


def shrunk(text: str, fails: Callable[[str], bool]) -> str:
    """`text` without statements that `fails` does not need; a block that would be empty is left as it is."""
    tree = ast.parse(text)
    again = True
    while again:
        again = False
        for body in list(_bodies(tree)):
            for statement in reversed(list(body)):
                place = body.index(statement)
                inner = [s for each in _own_bodies(statement) for s in each]
                for instead in ([], inner) if inner and isinstance(statement, ast.If | ast.For | ast.With) else ([],):
                    body[place : place + 1] = instead
                    if body and fails(ast.unparse(tree) + "\n"):
                        again = True
                        break
                    body[place : place + len(instead)] = [statement]
    return ast.unparse(tree) + "\n"


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for each in ast.walk(tree):
        yield from _own_bodies(each)


def _own_bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        found = getattr(tree, name, None)
        if isinstance(found, list) and found:
            yield found

"""ListOps: lines `value TAB expression`, the expression like `( ( [MAX 4 ) ( ( [MIN 2 ) 7 ) ] ) ) ] )`.

The round brackets only spell out a left-branching binarization; the tree of the expression is in the square ones:
`[MAX 4 [MIN 2 7 ] ]`.
"""

from __future__ import annotations

from pathlib import Path

from cortex.errors import StructureError
from cortex.structures.source import shown, text_of
from cortex.structures.tree import Node

OPERATORS = ("MIN", "MAX", "MED", "SM", "FIRST", "LAST")
DIGITS = tuple(str(digit) for digit in range(10))
_WORDS = {digit: int(digit) for digit in DIGITS} | {name: 10 + i for i, name in enumerate(OPERATORS)}


def read_listops(source: str | Path) -> list[tuple[int, Node]]:
    """(value, tree) for each line of a text (a str) or a file (a Path).

    Digits are leaves, `word` 0..9; operators are inner nodes, `word` 10.. in the order of `OPERATORS`, with the
    operator's name as `label`.
    """
    text, name = text_of(source, "read_listops")
    examples = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            value, tab, expression = line.partition("\t")
            where = f"{name}, line {number}"
            if not tab or value.strip() not in DIGITS:
                raise StructureError(f"read_listops: {where}: {line[:40]!r} is not 'value TAB expression'")
            examples.append((int(value), _tree(expression, where)))
    return examples


def _tree(expression: str, where: str) -> Node:
    top: list[Node] = []
    open_lists: list[tuple[str, list[Node]]] = []
    siblings = top
    for token in expression.split():
        if token in ("(", ")"):
            continue
        if token == "]":
            if not open_lists or not siblings:
                raise StructureError(f"read_listops: {where}: ']' closes no operator with operands")
            operator, above = open_lists.pop()
            above.append(Node(siblings, _WORDS[operator], operator))
            siblings = above
        elif token[0] == "[" and token[1:] in OPERATORS:
            open_lists.append((token[1:], siblings))
            siblings = []
        elif token in DIGITS:
            siblings.append(Node((), _WORDS[token]))
        else:
            accepted = ", ".join(f"[{operator}" for operator in OPERATORS)
            raise StructureError(f"read_listops: {where}: unknown token {shown(token)}; known are {accepted}, ], 0..9")
    if open_lists or len(top) != 1:
        raise StructureError(f"read_listops: {where}: not one complete expression; every '[' needs its ']'")
    return top[0]

"""Penn Treebank brackets: `(3 (2 It) (4 (2 works) (2 .)))`, any number of trees in a text.

    tree = "(" label word ")"  |  "(" label tree+ ")"  |  "(" tree ")"

A bracket around a word is a leaf. The bracket without a label that the Penn Treebank puts around each sentence is
dropped. Only ASCII white space separates: words may contain a no-break space.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, overload

from cortex.errors import StructureError
from cortex.structures.source import place, shown, text_of
from cortex.structures.tree import BinaryNode, Node
from cortex.structures.vocabulary import Words, word_ids

_TOKEN = re.compile(r"[()]|[^ \t\r\n\f\v()]+")
_INTEGER = re.compile(r"[0-9]{1,18}")
_ESCAPES = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


@overload
def read_ptb(source: str | Path, *, words: Words | None = None, binary: Literal[False] = False) -> list[Node]: ...
@overload
def read_ptb(source: str | Path, *, words: Words | None = None, binary: Literal[True]) -> list[BinaryNode]: ...
def read_ptb(source: str | Path, *, words: Words | None = None, binary: bool = False) -> list[Any]:
    """The trees in a text (a str) or a file (a Path): `Node`s, or `BinaryNode`s with `binary=True`.

    Leaves have the word's id in `word`; labels are ints where they are up to 18 digits, else strings.
    `words` maps a word, with its brackets unescaped (-LRB- is "("), to its id; the default hashes.
    """
    text, name = text_of(source, "read_ptb")
    word_id = word_ids(words)
    trees: list[Any] = []
    stack: list[_Bracket] = []
    position = 0
    try:
        for match in _TOKEN.finditer(text):
            token = match.group()
            position = match.start()
            if token == "(":
                stack.append(_Bracket(position))
            elif not stack:
                raise _Malformed(
                    f"{shown(token)} outside any bracket; a tree starts with '(' (to read a file, pass a Path)"
                )
            elif token == ")":
                tree = stack.pop().close(word_id, binary)
                (stack[-1].trees if stack else trees).append(tree)
            else:
                stack[-1].add(token)
        if stack:
            position = stack[-1].start
            raise _Malformed("this '(' is never closed; every '(' needs its ')'")
    except _Malformed as problem:
        raise StructureError(f"read_ptb: {problem}\n\n{place(text, position, name)}") from None
    return trees


class _Malformed(Exception):
    """What is wrong at the current token."""


@dataclass(slots=True)
class _Bracket:
    """An open bracket: where it starts and what was seen in it so far."""

    start: int
    label: str | None = None
    word: str | None = None
    trees: list[Any] = field(default_factory=list)

    def add(self, token: str) -> None:
        """A word or the label."""
        if self.trees or self.word is not None:
            raise _Malformed(f"{shown(token)} beside other content; a bracket holds one word or only brackets")
        if self.label is None:
            self.label = token
        else:
            self.word = token

    def close(self, word_id: Callable[[str], int], binary: bool) -> Any:
        """The tree this bracket stands for."""
        label = int(self.label) if self.label and _INTEGER.fullmatch(self.label) else self.label
        if self.word is not None:
            if self.trees:
                raise _Malformed("this bracket holds a word and a bracket; it may hold one word or only brackets")
            leaf = word_id(_ESCAPES.get(self.word, self.word))
            return BinaryNode(None, None, leaf, label) if binary else Node((), leaf, label)
        if not self.trees:
            raise _Malformed("this bracket holds nothing; a leaf is '(label word)'")
        if label is None and len(self.trees) == 1:
            return self.trees[0]
        if not binary:
            return Node(self.trees, -1, label)
        if len(self.trees) != 2:
            raise _Malformed(f"binary=True: this node has {len(self.trees)} children, not 2; use binary=False")
        return BinaryNode(self.trees[0], self.trees[1], -1, label)

"""CoNLL-U: dependency trees (columns HEAD, DEPREL), or the enhanced graphs (column DEPS) with their shared nodes.

Lines are ten columns between tabs; `#` starts a comment; a blank line ends a sentence. Multiword tokens (`3-4`) are
spellings, not nodes, and are passed over. Empty nodes (`8.1`) exist in enhanced graphs only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cortex.errors import StructureError
from cortex.structures.source import shown, text_of
from cortex.structures.tree import postorder
from cortex.structures.vocabulary import Words, word_ids

ROOT = "<root>"


@dataclass(slots=True, eq=False, repr=False)
class Token:
    """A word of a sentence with its dependents, in the order of the sentence.

    `word` is the vocabulary's id of `form`; `deprel` is the relation to the (first) head.
    """

    form: str
    word: int
    upos: str
    deprel: str
    children: list[Token] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of a sentence: its id and the (head, relation) pairs it states."""

    id: str
    line: int
    form: str
    upos: str
    heads: tuple[tuple[str, str], ...]


def read_conllu(
    source: str | Path,
    *,
    words: Words | None = None,
    graph: Literal["basic", "enhanced"] = "basic",
    cycles: Literal["error", "skip"] = "error",
) -> list[Token]:
    """The root of each sentence in a text (a str) or a file (a Path).

    `graph="enhanced"` gives the enhanced graphs: a token with several heads is one node, shared. Where an enhanced
    graph has several roots, the result is node 0 of CoNLL-U (form "<root>") above them. A sentence whose graph has
    a cycle is an error, or left out with `cycles="skip"`. `words` maps a form to its id; the default hashes.
    """
    if graph not in ("basic", "enhanced") or cycles not in ("error", "skip"):
        raise StructureError(
            f"read_conllu(graph={graph!r}, cycles={cycles!r}): graph is 'basic' or 'enhanced', cycles 'error' or 'skip'"
        )
    text, name = text_of(source, "read_conllu")
    word_id = word_ids(words)
    roots = []
    for rows in _sentences(text, name, graph):
        root = _root(rows, _link(rows, name, word_id), name, graph, word_id)
        if not _is_cyclic(root, rows):
            roots.append(root)
        elif cycles == "error":
            raise _malformed(
                name, rows[0].line, f"the {graph} graph of this sentence has a cycle; use cycles='skip' to leave it out"
            )
    return roots


def _malformed(name: str, line: int, problem: str) -> StructureError:
    return StructureError(f"read_conllu: {name}, line {line}: {problem}")


def _sentences(text: str, name: str, graph: str) -> Iterator[list[_Row]]:
    rows: list[_Row] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.rstrip("\r")
        if not line.strip():
            if rows:
                yield rows
            rows = []
        elif not line.startswith("#"):
            row = _row(line, number, name, graph)
            if row is not None:
                rows.append(row)
    if rows:
        yield rows


def _row(line: str, number: int, name: str, graph: str) -> _Row | None:
    """The row of a line, None for a line that is no node of `graph`."""
    columns = line.split("\t")
    if len(columns) != 10:
        raise _malformed(name, number, f"{len(columns)} columns between tabs; CoNLL-U has 10")
    id_, form, _, upos, _, _, head, deprel, deps, _ = columns
    major, _, minor = id_.partition(".")
    first, dash, last = id_.partition("-")
    if dash and first.isdecimal() and last.isdecimal():
        return None
    if not major.isdecimal() or ("." in id_ and not minor.isdecimal()):
        raise _malformed(name, number, f"id {shown(id_)}; an id is a number, a range 3-4 or an empty node 8.1")
    if graph == "basic":
        if "." in id_:
            return None
        return _Row(id_, number, form, upos, ((head, deprel),))
    if deps == "_":
        raise _malformed(name, number, "column DEPS is empty; enhanced graphs need head:relation there")
    pairs: dict[str, str] = {}
    for pair in deps.split("|"):
        above, colon, relation = pair.partition(":")
        if not colon:
            raise _malformed(name, number, f"{shown(pair)} in column DEPS; entries are head:relation, between bars")
        pairs.setdefault(above, relation)
    return _Row(id_, number, form, upos, tuple(pairs.items()))


def _link(rows: list[_Row], name: str, word_id: Callable[[str], int]) -> list[Token]:
    """The roots of a sentence, with every token below its heads."""
    tokens: dict[str, Token] = {}
    for row in rows:
        if row.id in tokens:
            raise _malformed(name, row.line, f"id {shown(row.id)} occurs twice in this sentence; ids are unique")
        tokens[row.id] = Token(row.form, word_id(row.form), row.upos, row.heads[0][1])
    roots = []
    for row in rows:
        for head, _ in row.heads:
            if head == "0":
                roots.append(tokens[row.id])
            elif head in tokens:
                tokens[head].children.append(tokens[row.id])
            else:
                raise _malformed(name, row.line, f"head {shown(head)} is not in this sentence; a head is an id or 0")
    return roots


def _root(rows: list[_Row], roots: list[Token], name: str, graph: str, word_id: Callable[[str], int]) -> Token:
    if len(roots) == 1:
        return roots[0]
    if not roots or graph == "basic":
        raise _malformed(name, rows[0].line, f"this sentence has {len(roots)} tokens with head 0; a tree has one")
    return Token(ROOT, word_id(ROOT), "_", "_", roots)


def _is_cyclic(root: Token, rows: list[_Row]) -> bool:
    """Is a token below itself, or out of reach of the root (then some cycle leads to it)?"""
    try:
        reached = postorder(root, lambda token: token.children)
    except StructureError:
        return True
    return len(reached) < len(rows)

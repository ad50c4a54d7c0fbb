"""Trees of NLTK (`nltk.Tree` and its subclasses), walked as they are.

A tree around a single word, `(NN dog)`, is one node: a leaf with that word, as in `read_ptb`. Every other word is a
leaf of its own. A leaf may be a str, a number, or a pair of a word and its tag, as chunkers make.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cortex.errors import StructureError
from cortex.frontend.fields import Offered
from cortex.structures.meaning import Given, Meaning
from cortex.structures.vocabulary import Words, word_ids


def nltk_trees(
    *, words: Words | None = None, labels: Words | None = None, fields: Mapping[str, Given] | None = None
) -> Meaning:
    """What `node.children`, `node.word` and `node.label` are on an `nltk.Tree`.

    `word` is the id that `words` gives (by default a hash), None where there is no word; `label` is the label, or the
    tag of a tagged word, as a str or, with `labels`, an id. `fields` are more: attributes or functions of the node,
    which is a Tree, or a word that is a leaf of its own.
    """
    word_id = word_ids(words)
    label_id = None if labels is None else word_ids(labels)

    def word(node: Any) -> int | None:
        leaf = _leaf_of(node)
        if isinstance(leaf, tuple):
            leaf = leaf[0]
        return word_id(leaf) if isinstance(leaf, str) else leaf

    def label(node: Any) -> Any:
        tag = node[1] if isinstance(node, tuple) else None
        found = node.label() if hasattr(node, "label") else tag
        return found if label_id is None or found is None else label_id(found)

    return Meaning(children=_children, fields=Offered({"word": word, "label": label}, fields))


class _Word(str):
    """One occurrence of a word: nodes are told apart by identity, and Python keeps equal strings as one object."""

    __slots__ = ()


class _Number(int):
    """One occurrence of a number."""

    __slots__ = ()


class _Tagged(tuple[Any, ...]):
    """One occurrence of a word with its tag."""

    __slots__ = ()


_item = list.__getitem__  # nltk.Tree's own is written in Python and three times as slow


def _children(node: Any) -> list[Any] | None:
    if not isinstance(node, list) or (len(node) == 1 and not isinstance(_item(node, 0), list)):
        return None
    return [item if isinstance(item, list) else _occurrence(item) for item in node]


def _leaf_of(node: Any) -> Any:
    """The word, number or pair that a node without children stands for; None for other nodes."""
    if not isinstance(node, list):
        return node
    if len(node) == 1:
        leaf = _item(node, 0)
        return None if isinstance(leaf, list) else leaf if isinstance(leaf, str) else _occurrence(leaf)
    if not node:
        raise StructureError(f"{node!r} is empty; where a model reads a word, a tree holds one word")
    return None


def _occurrence(leaf: Any) -> Any:
    if isinstance(leaf, str):
        return _Word(leaf)
    if isinstance(leaf, tuple) and len(leaf) == 2:
        return _Tagged(leaf)
    if isinstance(leaf, int):
        return _Number(leaf)
    raise StructureError(
        f"an nltk.Tree holds {leaf!r} (a {type(leaf).__name__}); a leaf is a str, an int or a (word, tag) pair"
    )

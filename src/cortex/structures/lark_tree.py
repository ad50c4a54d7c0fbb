"""Parse trees of Lark, walked as they are: `Tree`s are inner nodes (or leaves, if empty), `Token`s are leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cortex.errors import StructureError
from cortex.frontend.fields import Offered
from cortex.structures.meaning import Given, Meaning
from cortex.structures.vocabulary import Words, word_ids


def lark_trees(
    *, words: Words | None = None, labels: Words | None = None, fields: Mapping[str, Given] | None = None
) -> Meaning:
    """What `node.children`, `node.word` and `node.label` are on Lark's trees and tokens.

    `label` is a tree's rule or a token's terminal, as a str or, with `labels`, an id. `word` is the id that `words`
    gives a token's text (by default a hash), and the empty text for a tree without children; None for other trees.
    Lark's placeholders for what is absent (None) are no children. `fields` are more: attributes or functions of the
    node.
    """
    word_id = word_ids(words)
    label_id = None if labels is None else word_ids(labels)

    def children(node: Any) -> list[Any]:
        return [child for child in getattr(node, "children", ()) if child is not None]

    def word(node: Any) -> int | None:
        if hasattr(node, "data"):
            return None if children(node) else word_id("")
        return word_id(str(_token(node)))

    def label(node: Any) -> str | int:
        name = str(node.data if hasattr(node, "data") else _token(node).type)
        return name if label_id is None else label_id(name)

    return Meaning(children=children, fields=Offered({"word": word, "label": label}, fields))


def _token(node: Any) -> Any:
    if isinstance(node, str) and hasattr(node, "type"):
        return node
    raise StructureError(
        f"a lark tree holds {node!r} (a {type(node).__name__}); its nodes are Trees and Tokens, as Lark.parse makes "
        "them without a transformer"
    )

"""Syntax trees of tree-sitter, walked as they are from a node: `fast(parser.parse(code).root_node)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cortex.errors import StructureError
from cortex.frontend.fields import Offered
from cortex.structures.meaning import Given, Meaning
from cortex.structures.vocabulary import Words, word_ids


def tree_sitter_nodes(
    *,
    named: bool = False,
    words: Words | None = None,
    labels: Words | None = None,
    fields: Mapping[str, Given] | None = None,
) -> Meaning:
    """What `node.children`, `node.word` and `node.label` are on a `tree_sitter.Node`.

    The children are all, or with `named` only those that the grammar names (no brackets and commas). `label` is the
    node's type, as a str or, with `labels`, an id; `word` is the id that `words` gives the text of a node without
    children (by default a hash), None elsewhere. `fields` are more: attributes or functions of the node.
    """
    word_id = word_ids(words)
    label_id = None if labels is None else word_ids(labels)
    children, count = ("named_children", "named_child_count") if named else ("children", "child_count")

    def word(node: Any) -> int | None:
        below = getattr(node, count, None)
        if below is None:
            raise StructureError(f"a {type(node).__name__} is no tree-sitter node; give nodes, as tree.root_node is")
        if below:
            return None
        if node.text is None:
            raise StructureError(
                f"a tree-sitter node of type {node.type!r} has no text, which `word` is made of; parse the code "
                "again after an edit, or say with fields= what `word` is"
            )
        return word_id(node.text.decode("utf-8", "replace"))

    label = "type" if label_id is None else lambda node: label_id(node.type)
    return Meaning(children=children, fields=Offered({"word": word, "label": label}, fields))

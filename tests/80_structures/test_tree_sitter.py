"""tree-sitter's nodes, walked as they are."""

from __future__ import annotations

from typing import Any

import pytest
import tree_sitter_python
from models_of_packages import LABELS, VOCAB, WEIGHTS, close, labelled, labelled_by, words_below
from tree_sitter import Language, Parser

import cortex
from cortex.errors import StructureError
from cortex.structures import hashed, tree_sitter_nodes

CODE = b"def f(x, *rest):\n    # twice\n    return [x + 1, 'caf\xc3\xa9'] if x else f(x)\n"
PARSER = Parser(Language(tree_sitter_python.language()))
word_id, label_id = hashed(VOCAB), hashed(LABELS)


@pytest.mark.parametrize("named", [False, True])
def test_types_and_texts(named: bool) -> None:
    tree = PARSER.parse(CODE)
    meaning = tree_sitter_nodes(named=named, words=word_id, labels=label_id)
    out = cortex.compile(labelled, WEIGHTS, **meaning)(tree.root_node)

    def below(node: Any) -> list[Any]:
        return [child for child in node.children if child.is_named or not named]

    def count(node: Any) -> int:
        return 1 + sum(count(child) for child in below(node))

    close(out.out, labelled_by(below, lambda n: label_id(n.type), lambda n: word_id(n.text.decode()))(tree.root_node))
    assert out.nodes.out.shape[0] == count(tree.root_node)


def test_any_node_is_a_root_and_a_list_is_a_batch() -> None:
    fast = cortex.compile(words_below, WEIGHTS, **tree_sitter_nodes(words=word_id))
    nodes = [child for code in (CODE, b"x = 1") for child in PARSER.parse(code).root_node.children]
    for node, row in zip(nodes, fast(nodes).out, strict=True):
        close(fast(node).out, row)


def test_types_and_other_attributes_by_name() -> None:
    @cortex.model
    def calls(node: Any, w: Any) -> Any:
        below = cortex.sum(calls(k, w) for k in node.children)
        return below + (w.one if node.label == "call" and node.is_named else 0 * w.one)

    fast = cortex.compile(calls, {"one": WEIGHTS["emb"][0] * 0 + 1}, **tree_sitter_nodes())
    assert (fast(PARSER.parse(b"f(g(1), h)(2)").root_node).out == 3).all()


def test_a_tree_is_no_node() -> None:
    fast = cortex.compile(words_below, WEIGHTS, **tree_sitter_nodes(words=word_id))
    with pytest.raises(StructureError, match=r"a Tree is no tree-sitter node; give nodes, as tree\.root_node is"):
        fast(PARSER.parse(CODE))


def test_an_edited_tree_which_has_no_text_is_refused_where_text_is_read() -> None:
    tree = PARSER.parse(CODE)
    tree.edit(0, 0, 1, (0, 0), (0, 0), (0, 1))
    fast = cortex.compile(words_below, WEIGHTS, **tree_sitter_nodes(words=word_id))
    with pytest.raises(StructureError, match="a tree-sitter node of type 'def' has no text"):
        fast(tree.root_node)

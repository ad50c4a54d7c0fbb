"""nltk.Tree: walked as it is, the same nodes as read_ptb makes of the text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nltk
import numpy as np
import pytest
from models_of_packages import VOCAB, WEIGHTS, close, labelled, labelled_by, words_below, words_below_by

import cortex
from cortex.errors import ModelError, StructureError
from cortex.structures import hashed, nltk_trees, read_ptb

TEXT = "(S (NP (D the) (N dog)) (VP (V chases) (NP (D the) (N cat))))"
word_id = hashed(VOCAB)


def compiled(model: Any = words_below, **given: Any) -> Any:
    return cortex.compile(model, WEIGHTS, **nltk_trees(words=word_id, **given))


def nodes_below(tree: Any) -> list[Any]:
    return [] if isinstance(tree, str) or (len(tree) == 1 and isinstance(tree[0], str)) else list(tree)


def word_of(tree: Any) -> int:
    return word_id(tree if isinstance(tree, str) else tree[0])


def test_words_and_children() -> None:
    tree = nltk.Tree.fromstring(TEXT)
    out = compiled()(tree)
    close(out.out, words_below_by(nodes_below, word_of)(tree))
    assert out.nodes.out.shape[0] == len(list(tree.subtrees()))


def test_the_nodes_are_those_of_read_ptb_to_the_bit() -> None:
    own = cortex.compile(words_below, WEIGHTS)(read_ptb(TEXT, words=word_id)[0])
    np.testing.assert_array_equal(compiled()(nltk.Tree.fromstring(TEXT)).nodes.out, own.nodes.out)


def test_words_beside_trees_are_leaves_and_every_occurrence_is_a_node() -> None:
    tree = nltk.Tree.fromstring("(S the (NP the dog) the (X the))")
    out = compiled()(tree)
    close(out.out, words_below_by(nodes_below, word_of)(tree))
    assert out.nodes.out.shape[0] == 7


def test_subclasses_and_batches() -> None:
    trees = [nltk.ParentedTree.fromstring(TEXT), nltk.ImmutableTree.fromstring(TEXT), nltk.Tree("N", ["dog"])]
    fast = compiled()
    close(fast(trees).out, [words_below_by(nodes_below, word_of)(tree) for tree in trees])
    np.testing.assert_array_equal(fast(trees).out[0], fast(trees).out[1])


def test_labels_as_strings_and_as_ids() -> None:
    ids = {"S": 1, "NP": 2, "VP": 3, "D": 4, "N": 5, "V": 6}
    tree = nltk.Tree.fromstring(TEXT)
    close(
        compiled(labelled, labels=ids)(tree).out,
        labelled_by(nodes_below, lambda t: ids[t.label()], word_of)(tree),
    )

    @cortex.model
    def count_phrases(node: Any, w: Any) -> Any:
        below = cortex.sum(count_phrases(k, w) for k in node.children)
        return below + (w.one if node.label == "NP" else 0 * w.one)

    fast = cortex.compile(count_phrases, {"one": np.ones(1, np.float32)}, **nltk_trees())
    assert fast(tree).out == 2


def test_tagged_words_as_chunkers_make_them() -> None:
    tree = nltk.Tree("S", [nltk.Tree("NP", [("the", "D"), ("dog", "N")]), ("barks", "V")])
    ids = {"S": 1, "NP": 2, "D": 4, "N": 5, "V": 6}
    out = compiled(labelled, labels=ids)(tree)
    expected = labelled_by(
        lambda t: [] if isinstance(t, tuple) else list(t),
        lambda t: ids[t[1] if isinstance(t, tuple) else t.label()],
        lambda t: word_id(t[0]),
    )
    close(out.out, expected(tree))


def test_numbers_are_words_already() -> None:
    tree = nltk.Tree.fromstring("(S 3 (A 4) (B 3 7))", read_leaf=int)
    close(
        compiled()(tree).out,
        words_below_by(
            lambda t: [] if isinstance(t, int) or len(t) == 1 else list(t), lambda t: t if isinstance(t, int) else t[0]
        )(tree),
    )


def test_more_fields_of_the_users() -> None:
    @cortex.model
    def spans(node: Any, w: Any) -> Any:
        return w.one * node.width + cortex.sum(spans(k, w) for k in node.children)

    weights = {"one": np.ones(1, np.float32)}
    meaning = nltk_trees(fields={"width": cortex.field((), lambda t: float(len(t.leaves())))})
    tree = nltk.Tree.fromstring(TEXT)
    wanted = sum(len(t.leaves()) for t in tree.subtrees())
    assert cortex.compile(spans, weights, **meaning)(tree).out == wanted
    with pytest.raises(ModelError, match=r"never reads node\.widht"):
        cortex.compile(spans, weights, **nltk_trees(fields={"width": cortex.field(), "widht": len}))


def test_what_is_wrong_says_where() -> None:
    fast = cortex.compile(words_below, WEIGHTS, **nltk_trees(words={"the": 1}))
    message = r"at root\.children\[0\]\.children\[1\], looking up 'dog': it is not in the vocabulary of 1 words"
    for _ in range(2):  # while tracing the kinds of nodes, and when they are known
        with pytest.raises(StructureError, match=message):
            fast(nltk.Tree.fromstring(TEXT))
        fast(nltk.Tree.fromstring("(S (D the) (D the))"))
    with pytest.raises(StructureError, match=r"at root.children\[1\], Tree\('B', \[\]\) is empty"):
        compiled()(nltk.Tree("S", [nltk.Tree("A", ["dog"]), nltk.Tree("B", [])]))
    with pytest.raises(StructureError, match=r"holds 2.5 .a float.; a leaf is a str, an int or a .word, tag. pair"):
        compiled()(nltk.Tree("S", [2.5, "dog"]))


def test_a_cycle_is_refused() -> None:
    tree = nltk.Tree.fromstring(TEXT)
    tree[1].append(tree)
    with pytest.raises(StructureError, match="cycle"):
        compiled()(tree)


def test_the_stanford_trees(data: Path) -> None:
    lines = (data / "sst" / "dev.txt").read_text(encoding="utf-8").splitlines()[:300]
    trees = [nltk.Tree.fromstring(line) for line in lines]
    escaped = {"-LRB-": "(", "-RRB-": ")"}
    fast = cortex.compile(words_below, WEIGHTS, **nltk_trees(words=lambda word: word_id(escaped.get(word, word))))
    own = cortex.compile(words_below, WEIGHTS)(read_ptb("\n".join(lines), words=word_id))
    np.testing.assert_array_equal(fast(trees).nodes.out, own.nodes.out)

"""Dependency trees of the conllu package, walked as they are, and of spaCy, as forests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import conllu
import numpy as np
import pytest
from models_of_packages import SIZE, VOCAB, WEIGHTS, close, words_everywhere, words_everywhere_by

import cortex
from cortex.errors import StructureError
from cortex.structures import conllu_trees, from_spacy, hashed, join, read_conllu

ROWS = [
    ("The", "DET", 2, "det"),
    ("dog", "NOUN", 3, "nsubj"),
    ("chases", "VERB", 0, "root"),
    ("the", "DET", 5, "det"),
    ("cat", "NOUN", 3, "obj"),
    (".", "PUNCT", 3, "punct"),
]
TEXT = "".join(f"{i}\t{f}\t{f.lower()}\t{u}\t_\t_\t{h}\t{d}\t_\t_\n" for i, (f, u, h, d) in enumerate(ROWS, 1)) + "\n"
word_id = hashed(VOCAB)


@cortex.model
def subjects(node: Any, w: Any) -> Any:
    """How many nouns are subjects."""
    below = cortex.sum(subjects(k, w) for k in node.children)
    return below + (w.one if node.deprel == "nsubj" and node.upos == "NOUN" else 0 * w.one)


def test_conllu_token_trees() -> None:
    (tree,) = conllu.parse_tree(TEXT)
    fast = cortex.compile(words_everywhere, WEIGHTS, **conllu_trees(words=word_id))
    close(fast(tree).out, words_everywhere_by(lambda t: t.children, lambda t: word_id(t.token["form"]))(tree))
    own = cortex.compile(words_everywhere, WEIGHTS)(read_conllu(TEXT, words=word_id))
    np.testing.assert_array_equal(fast(conllu.parse_tree(TEXT)).nodes.out, own.nodes.out)
    one = {"one": np.ones(1, np.float32)}
    assert (
        cortex.compile(subjects, one, **conllu_trees())(tree).out
        == cortex.compile(subjects, one)(read_conllu(TEXT)[0]).out
    )


def test_other_columns_by_name() -> None:
    @cortex.model
    def lemmas(node: Any, w: Any) -> Any:
        return w.emb[node.lemma] + cortex.sum(lemmas(k, w) for k in node.children)

    (tree,) = conllu.parse_tree(TEXT)
    meaning = conllu_trees(fields={"lemma": lambda t: word_id(t.token["lemma"])})
    close(
        cortex.compile(lemmas, WEIGHTS, **meaning)(tree).out, sum(WEIGHTS["emb"][word_id(f.lower())] for f, *_ in ROWS)
    )
    with pytest.raises(StructureError, match="has no column 'lemmma'; there are id, form, lemma, "):
        cortex.compile(lemmas, WEIGHTS, **conllu_trees(fields={"lemma": "lemmma"}))(tree)


def test_the_english_web_treebank(data: Path) -> None:
    text = (data / "ud" / "en_ewt-ud-dev.conllu").read_text(encoding="utf-8")
    some = "\n\n".join(text.split("\n\n")[:300]) + "\n\n"
    fast = cortex.compile(words_everywhere, WEIGHTS, **conllu_trees(words=word_id))
    own = cortex.compile(words_everywhere, WEIGHTS)(read_conllu(some, words=word_id))
    np.testing.assert_array_equal(fast(conllu.parse_tree(some)).nodes.out, own.nodes.out)


@pytest.fixture
def spacy() -> Any:
    return pytest.importorskip("spacy", reason="spaCy is 200 MB, and so not among the packages the tests install")


def parsed(spacy: Any, heads: list[int], times: int = 1) -> Any:
    """A Doc as a pipeline with a parser makes it, from annotation instead of a model."""
    forms, upos, _, deprel = zip(*ROWS, strict=True)
    n = len(ROWS)
    return spacy.tokens.Doc(
        spacy.blank("en").vocab,
        words=list(forms) * times,
        pos=list(upos) * times,
        deps=["ROOT" if d == "root" else d for d in deprel] * times,
        heads=[head + n * i for i in range(times) for head in heads],
    )


HEADS = [1, 2, 2, 4, 2, 2]


def test_spacy_docs(spacy: Any) -> None:
    doc = parsed(spacy, HEADS, times=2)
    forest = from_spacy(doc, words=word_id)
    expected = words_everywhere_by(lambda t: t.children, lambda t: word_id(t.text))
    fast = cortex.compile(words_everywhere, WEIGHTS)
    out = fast(forest)
    close(out.out, [expected(sentence.root) for sentence in doc.sents])
    close(out.nodes.out, [expected(token) for token in doc])
    np.testing.assert_array_equal(
        fast(join([from_spacy(s, words=word_id) for s in doc.sents])).nodes.out, out.nodes.out
    )
    one = {"one": np.ones(1, np.float32)}
    assert cortex.compile(subjects, one)(forest).out.tolist() == [[1], [1]]


def test_spacy_spans(spacy: Any) -> None:
    doc = parsed(spacy, HEADS)
    forest = from_spacy(doc[3:6], words=word_id)
    assert forest.fields["form"] == ("the", "cat", ".")
    assert forest.roots.tolist() == [1, 2]
    assert [list(a) for a in forest.lists["children"]] == [[0, 0, 1, 1], [0]]


def test_other_attributes_of_spacys_tokens(spacy: Any) -> None:
    doc = parsed(spacy, HEADS)
    fields = from_spacy(doc, fields={"shape": "shape_", "place": lambda t: np.full(2, t.i, np.float32)}).fields
    assert fields["shape"] == ("Xxx", "xxx", "xxxx", "xxx", "xxx", ".")
    np.testing.assert_array_equal(fields["place"], np.repeat(np.arange(6.0), 2).reshape(6, 2))


def test_what_is_wrong_with_a_doc(spacy: Any) -> None:
    vocab = spacy.blank("en").vocab
    fast = cortex.compile(words_everywhere, WEIGHTS)
    assert fast(from_spacy(spacy.tokens.Doc(vocab, words=[]))).out.shape == (0, SIZE)
    with pytest.raises(StructureError, match=r"from_spacy\(Doc of 2 tokens\): it has no dependency parse"):
        from_spacy(spacy.tokens.Doc(vocab, words=["a", "b"]))
    with pytest.raises(StructureError, match="node The is below itself: The -> dog -> The"):
        from_spacy(parsed(spacy, [1, 0, 2, 4, 2, 2]))
    with pytest.raises(StructureError, match="looking up 'chases': it is not in the vocabulary of 2 words"):
        from_spacy(parsed(spacy, HEADS), words={"The": 1, "dog": 2})

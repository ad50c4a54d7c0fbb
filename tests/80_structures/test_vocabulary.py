"""Ids of words from the words themselves."""

from __future__ import annotations

import pytest

from cortex.errors import StructureError
from cortex.structures import Vocabulary, read_ptb

WORDS = ["the", "cat", "saw", "the", "dog", "and", "the", "cat"]


def test_frequent_words_come_first() -> None:
    vocabulary = Vocabulary(WORDS)
    assert list(vocabulary) == ["<unk>", "the", "cat", "saw", "dog", "and"]
    assert [vocabulary[word] for word in ("the", "cat", "mouse", "<unk>")] == [1, 2, 0, 0]
    assert len(vocabulary) == 6
    assert "mouse" not in vocabulary
    assert "dog" in vocabulary


def test_rare_words_are_left_out() -> None:
    assert list(Vocabulary(WORDS, at_least=2)) == ["<unk>", "the", "cat"]
    assert list(Vocabulary(WORDS, size=2)) == ["<unk>", "the"]


def test_without_an_id_for_unknown_words_looking_one_up_is_an_error() -> None:
    vocabulary = Vocabulary(WORDS, unknown=None)
    assert next(iter(vocabulary)) == "the"
    with pytest.raises(StructureError, match="looking up 'mouse': it is not in the vocabulary of 5 words"):
        read_ptb("(N mouse)", words=vocabulary)
    assert read_ptb("(N mouse)", words=Vocabulary(WORDS))[0].word == 0


def test_a_list_of_its_words_makes_it_again() -> None:
    vocabulary = Vocabulary(WORDS)
    assert dict(Vocabulary(list(vocabulary))) == dict(vocabulary)


def test_what_is_wrong() -> None:
    with pytest.raises(StructureError, match="give a positive size"):
        Vocabulary(WORDS, size=0)
    with pytest.raises(StructureError, match="there are no words"):
        Vocabulary([], unknown=None)

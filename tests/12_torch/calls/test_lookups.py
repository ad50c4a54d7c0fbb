"""Dictionaries that are looked up with fields of nodes: one kind of node for all words."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import dictionaries
import pytest
import torch
from dictionaries import IDS, WORDS, Node, phrase, tree
from torch import nn

import cortex


def kinds(fast: Any) -> int:
    return sum(len(part.model.kinds) for part in fast._parts())


def agree(fast: Any, module: Any, *given: Any) -> None:
    with torch.no_grad():
        torch.testing.assert_close(fast(*given), module(*given), rtol=1e-4, atol=1e-5)


@pytest.fixture(autouse=True)
def seeds() -> None:
    random.seed(3)
    torch.manual_seed(3)


KNOWN = {
    "of_module": (dictionaries.OfModule, 1),
    "global": (dictionaries.Global, 1),
    "of_closure": (dictionaries.of_closure, 1),
    "of_part": (dictionaries.OfPart, 1),
    "floats": (dictionaries.Floats, 1),
    "of_children": (dictionaries.OfChildren, 1),
    "inner": (dictionaries.Inner, 3),
    "calls": (dictionaries.Calls, 6),
}
WITH_UNKNOWN = {
    "default": (dictionaries.Default, 1),
    "of_object": (dictionaries.OfObject, 1),
    "global_object": (dictionaries.GlobalObject, 1),
    "defaults": (dictionaries.Defaults, 1),
    "counted": (dictionaries.Counted, 1),
    "ordered": (dictionaries.Ordered, 1),
    "member": (dictionaries.Member, 2),
    "tried": (dictionaries.Tried, 2),
    "of_none": (dictionaries.OfNone, 2),
    "own_class": (dictionaries.OwnClass, 2),
    "calls": (dictionaries.Calls, 6),
}


@pytest.mark.parametrize("name", KNOWN)
def test_words_share_a_kind(name: str) -> None:
    make, most = KNOWN[name]
    module = make().eval()
    fast = cortex.compile(module, examples=[tree(2, WORDS[:3]), tree(0, WORDS[:3])])
    before = kinds(fast)
    assert before <= most
    for _ in range(10):
        agree(fast, module, tree())
    assert kinds(fast) == before


@pytest.mark.parametrize("name", WITH_UNKNOWN)
def test_words_that_are_not_there(name: str) -> None:
    make, most = WITH_UNKNOWN[name]
    module = make().eval()
    fast = cortex.compile(module, examples=[tree(2, ["w1", "unheard"]), tree(2, ["w1", "w2"]), tree(0, ["unheard"])])
    before = kinds(fast)
    assert before <= most
    for _ in range(10):
        agree(fast, module, tree(2, [*WORDS, "never", "heard"]))
    assert kinds(fast) == before


def test_what_decides_is_asked() -> None:
    module = dictionaries.Chosen().eval()
    fast = cortex.compile(module, examples=[tree() for _ in range(3)])
    for _ in range(10):
        agree(fast, module, tree())
    assert kinds(fast) == 2


def test_argument() -> None:
    module = dictionaries.Argument().eval()
    fast = cortex.compile(module, examples=[(tree(2, WORDS[:3]), IDS)])
    for ids in (IDS, {word: len(WORDS) - 1 - i for word, i in IDS.items()}):
        for _ in range(3):
            agree(fast, module, tree(), ids)
    assert kinds(fast) <= 2


@pytest.mark.parametrize("make", [dictionaries.Phrases, dictionaries.WordsAsNodes])
def test_trees_of_nltk(make: Any) -> None:
    module = make().eval()
    fast = cortex.compile(module, examples=[phrase(4), phrase(3), phrase(1)])
    before = kinds(fast)
    for size in range(1, 9):
        agree(fast, module, phrase(size))
    assert kinds(fast) == before <= 6


def test_a_missing_word_is_refused() -> None:
    fast = cortex.compile(dictionaries.OfModule().eval(), examples=[tree()])
    given = Node("w1", [Node("w2"), Node("unheard")])
    with pytest.raises(cortex.StructureError, match=r"at root\.children\[1\], node\.word is 'unheard'.*'ids'"):
        fast(given)
    with pytest.raises(cortex.StructureError, match=r"node\.word is 'unheard'.*'ids'"):
        cortex.compile(dictionaries.OfModule().eval(), examples=[given])


def test_entries_that_are_added_count() -> None:
    module = dictionaries.OfModule().eval()
    fast = cortex.compile(module, examples=[tree()])
    module.ids["new"], module.ids["w1"] = 7, 8
    before = kinds(fast)
    agree(fast, module, Node("new", [Node("w1")]))
    assert kinds(fast) == before


def test_dictionaries_are_as_before() -> None:
    for make in (dictionaries.OfModule, dictionaries.Global, dictionaries.Counted):
        module = make().eval()
        before = dict(vars(module))
        cortex.compile(module, examples=[tree(1)])
        assert all(vars(module)[name] is held for name, held in before.items())
        assert type(IDS) is dict
        assert type(module.ids) is dict


def test_a_dictionary_that_code_changes_is_refused() -> None:
    module = dictionaries.Growing().eval()
    module.ids.popitem()  # the table has a row for one word more
    with pytest.raises(cortex.ModelError, match=r"self\.ids"):
        cortex.compile(module, examples=[tree(1, ["unheard", "w1"])])


def test_a_default_that_differs_each_time_is_not_taken_for_one() -> None:
    module = dictionaries.Defaults().eval()
    module.ids.default_factory = lambda: len(module.ids)
    fast = cortex.compile(module, examples=[tree(1, WORDS[:2])])
    agree(fast, module, tree(1, WORDS[:2]))
    assert kinds(fast) > 1


def test_what_follows_from_words_is_looked_up() -> None:
    module = dictionaries.Lowered().eval()
    words = [*WORDS, "W1", "W12", "X", "x7", "longer", "w99", "a7", "a19"]
    fast = cortex.compile(module, examples=[tree(1, words), *map(Node, words)])
    before = kinds(fast)
    assert before <= 6
    for _ in range(10):
        agree(fast, module, tree(2, [*words, "Xyz", "w", "W99", "b", "B7"]))
    assert kinds(fast) == before


def test_texts_that_have_to_be_real_are_asked_for() -> None:
    module = dictionaries.Named().eval()
    fast = cortex.compile(module, examples=[tree() for _ in range(3)])
    for _ in range(5):
        agree(fast, module, tree())
    assert kinds(fast) == 2


SAVED = {
    "lowered": dictionaries.Lowered,
    "of_module": dictionaries.OfModule,
    "floats": dictionaries.Floats,
    "member": dictionaries.Member,
    "default": dictionaries.Default,
    "of_part": dictionaries.OfPart,
}


@pytest.mark.parametrize("name", SAVED)
def test_saved(name: str, tmp_path: Path) -> None:
    module = SAVED[name]().eval()
    fast = cortex.compile(module, examples=[tree(2, WORDS[:3]), tree(0, WORDS[:3])])
    if name in ("member", "lowered"):
        fast(tree(2, ["unheard", "w11"]))
    fast.save(tmp_path / "model")
    loaded = cortex.load(tmp_path / "model")
    for _ in range(3):
        given = tree()
        torch.testing.assert_close(torch.as_tensor(loaded(given)), fast(given))
    unheard = Node("w1", [Node("w2"), Node("unheard")])
    if name in ("of_module", "floats"):
        with pytest.raises(cortex.StructureError, match=r"at root\.children\[1\], node\.word is 'unheard'"):
            loaded(unheard)
    else:
        torch.testing.assert_close(torch.as_tensor(loaded(unheard)), fast(unheard))


def test_many_words(tmp_path: Path) -> None:
    module = dictionaries.OfModule().eval()
    module.emb = nn.Embedding(30_000, dictionaries.H)
    module.ids = {f"w{i}": i for i in range(30_000)}
    fast = cortex.compile(module, examples=[tree(2, WORDS[:3])])
    agree(fast, module, tree(2, ["w29999", "w12345"]))
    fast.save(tmp_path / "model")
    assert torch.equal(torch.as_tensor(cortex.load(tmp_path / "model")(tree(0, ["w777"]))), fast(tree(0, ["w777"])))

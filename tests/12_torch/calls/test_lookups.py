"""Dictionaries that are looked up with fields of nodes: one kind of node for all words."""

from __future__ import annotations

import random
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import cortex

H = 4
WORDS = [f"w{i}" for i in range(20)]
UNKNOWN = 5
IDS = {word: i for i, word in enumerate(WORDS)}
WEIGHTS = {word: i / 7 for i, word in enumerate(WORDS)}


class Node:
    """A word at every node."""

    def __init__(self, word: Any, children: Any = ()) -> None:
        self.word, self.children = word, list(children)
        self.kind, self.number = random.choice("ab"), random.randrange(9)


def tree(depth: int = 2, words: list[str] = WORDS) -> Node:
    below = [tree(depth - 1, words) for _ in range(random.randint(1, 3))] if depth else []
    return Node(random.choice(words), below)


class Base(nn.Module):
    """Sums what is below; `index` is what a word is known by."""

    def __init__(self) -> None:
        super().__init__()
        self.emb, self.below = nn.Embedding(len(WORDS), H), nn.Linear(H, H)
        self.ids = dict(IDS)

    def index(self, node: Any) -> Any:
        raise NotImplementedError

    def word(self, node: Any) -> Any:
        return self.emb(torch.tensor([self.index(node)]))

    def forward(self, node: Any) -> Any:
        h = self.word(node)
        for child in node.children:
            h = h + self.below(self(child))
        return torch.tanh(h)


class OfModule(Base):
    def index(self, node):
        return self.ids[node.word]


class Global(Base):
    def index(self, node):
        return IDS[node.word]


def of_closure() -> Base:
    ids = dict(IDS)

    class OfClosure(Base):
        def index(self, node):
            return ids[node.word]

    return OfClosure()


class OfPart(Base):
    """In a part of the module, for integers."""

    class Part(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.numbers = {number: 2 * number for number in range(9)}

        def forward(self, node):
            return self.numbers[node.number]

    def __init__(self) -> None:
        super().__init__()
        self.part = self.Part()

    def index(self, node):
        return self.part(node)


class Floats(Base):
    """Numbers that are computed with."""

    def word(self, node):
        return WEIGHTS[node.word] * self.emb(torch.LongTensor([self.ids[node.word]]))


class OfChildren(Base):
    """What a parent looks up of its children."""

    def index(self, node):
        return self.ids[node.word]

    def forward(self, node):
        h = self.word(node)
        for child in node.children:
            h = h + self.word(child) * self.below(self(child))
        return torch.tanh(h)


class Default(Base):
    def index(self, node):
        return self.ids.get(node.word, UNKNOWN)


class Vocabulary:
    """Written in Python, around a dictionary."""

    def __init__(self) -> None:
        self.ids = dict(IDS)

    def __getitem__(self, word: str) -> int:
        return self.ids.get(word, UNKNOWN)


VOCABULARY = Vocabulary()


class OfObject(Base):
    def __init__(self) -> None:
        super().__init__()
        self.data = SimpleNamespace(vocabulary=Vocabulary())

    def index(self, node):
        return self.data.vocabulary[node.word]


class GlobalObject(Base):
    def index(self, node):
        return VOCABULARY[node.word]


class Defaults(Base):
    """A dictionary with a default for what is not there, which stays as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.ids = defaultdict(lambda: UNKNOWN, IDS)

    def index(self, node):
        return self.ids[node.word]


class Counted(Base):
    def __init__(self) -> None:
        super().__init__()
        self.counts = Counter(IDS)

    def index(self, node):
        return self.counts[node.word]


class Ordered(Base):
    def __init__(self) -> None:
        super().__init__()
        self.ids = OrderedDict(IDS)

    def index(self, node):
        assert next(iter(self.ids)) == WORDS[0]
        return self.ids.get(node.word, UNKNOWN)


class Member(Base):
    def index(self, node):
        if node.word not in self.ids:
            return UNKNOWN
        return self.ids[node.word]


class Tried(Base):
    def index(self, node):
        try:
            return self.ids[node.word]
        except KeyError:
            return UNKNOWN


class OfNone(Base):
    """The default is no number."""

    def index(self, node):
        found = self.ids.get(node.word)
        return UNKNOWN if found is None else found


class OwnClass(Base):
    """A dictionary that says what unknown words are."""

    class Words(dict[str, int]):
        def __missing__(self, word: str) -> int:
            return self["w5"]

    def __init__(self) -> None:
        super().__init__()
        self.ids = self.Words(IDS)

    def index(self, node):
        assert isinstance(self.ids, self.Words)
        assert type(self.ids) is self.Words
        return self.ids[node.word]


class Chosen(Base):
    """What the dictionary says decides what is done."""

    kinds = {"a": 0, "b": 1}  # noqa: RUF012 - of the class

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(H, H), nn.Linear(H, H)])

    def word(self, node):
        x = self.layers[self.kinds[node.kind]](self.emb(torch.tensor([self.ids[node.word]])))
        return x if self.kinds[node.kind] == 1 else torch.relu(x)


class Argument(Base):
    """The dictionary is passed along."""

    def forward(self, node, ids):
        h = self.emb(torch.tensor([ids[node.word]]))
        for child in node.children:
            h = h + self.below(self(child, ids))
        return torch.tanh(h)


class Inner(Base):
    """The dictionary is a variable around a function that recurses."""

    def forward(self, node):
        ids = self.ids

        def encode(node):
            h = self.emb(torch.tensor([ids[node.word]]))
            for child in node.children:
                h = h + self.below(encode(child))
            return torch.tanh(h)

        return encode(node)


class Calls(Base):
    """Calls are the nodes of the model: one passes values down."""

    def down(self, node, above):
        h = torch.tanh(self.below(above) + self.emb(torch.tensor([self.ids.get(node.word, UNKNOWN)])))
        total = h
        for child in node.children:
            total = total + self.down(child, h)
        return total

    def forward(self, node):
        return self.down(node, torch.zeros(1, H))


class Tree(list[Any]):
    """As `nltk.Tree`."""

    def __init__(self, label: str, children: Any) -> None:
        super().__init__(children)
        self._label = label

    def label(self) -> str:
        return self._label


def phrase(size: int = 5) -> Tree:
    label = random.choice(WORDS[:6])
    if size <= 1:
        return Tree(label, [random.choice(WORDS)])
    left = random.randint(1, size - 1)
    return Tree(label, [phrase(left), phrase(size - left)])


class Phrases(Base):
    """Labels of inner nodes are what a method says, words are items."""

    def forward(self, tree):
        h = self.emb(torch.tensor(IDS[tree.label()]))
        if len(tree) == 1 and isinstance(tree[0], str):
            return torch.tanh(h + self.emb(torch.tensor(self.ids[tree[0]])))
        return torch.tanh(h + self.below(self(tree[0]) + self(tree[1])))


class WordsAsNodes(Base):
    """The module is called on words too."""

    def forward(self, node):
        if isinstance(node, str):
            return self.emb(torch.tensor(self.ids[node]))
        return torch.tanh(sum(self.below(self(child)) for child in node))


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
    "of_module": (OfModule, 1),
    "global": (Global, 1),
    "of_closure": (of_closure, 1),
    "of_part": (OfPart, 1),
    "floats": (Floats, 1),
    "of_children": (OfChildren, 1),
    "inner": (Inner, 3),
    "calls": (Calls, 6),
}
WITH_UNKNOWN = {
    "default": (Default, 1),
    "of_object": (OfObject, 1),
    "global_object": (GlobalObject, 1),
    "defaults": (Defaults, 1),
    "counted": (Counted, 1),
    "ordered": (Ordered, 1),
    "member": (Member, 2),
    "tried": (Tried, 2),
    "of_none": (OfNone, 2),
    "own_class": (OwnClass, 2),
    "calls": (Calls, 6),
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
    module = Chosen().eval()
    fast = cortex.compile(module, examples=[tree() for _ in range(3)])
    for _ in range(10):
        agree(fast, module, tree())
    assert kinds(fast) == 2


def test_argument() -> None:
    module = Argument().eval()
    fast = cortex.compile(module, examples=[(tree(2, WORDS[:3]), IDS)])
    for ids in (IDS, {word: len(WORDS) - 1 - i for word, i in IDS.items()}):
        for _ in range(3):
            agree(fast, module, tree(), ids)
    assert kinds(fast) <= 2


@pytest.mark.parametrize("make", [Phrases, WordsAsNodes])
def test_trees_of_nltk(make: Any) -> None:
    module = make().eval()
    fast = cortex.compile(module, examples=[phrase(4), phrase(3), phrase(1)])
    before = kinds(fast)
    for size in range(1, 9):
        agree(fast, module, phrase(size))
    assert kinds(fast) == before <= 6


def test_a_missing_word_is_refused() -> None:
    fast = cortex.compile(OfModule().eval(), examples=[tree()])
    given = Node("w1", [Node("w2"), Node("unheard")])
    with pytest.raises(cortex.StructureError, match=r"at root\.children\[1\], node\.word is 'unheard'.*'ids'"):
        fast(given)
    with pytest.raises(cortex.StructureError, match=r"node\.word is 'unheard'.*'ids'"):
        cortex.compile(OfModule().eval(), examples=[given])


def test_entries_that_are_added_count() -> None:
    module = OfModule().eval()
    fast = cortex.compile(module, examples=[tree()])
    module.ids["new"], module.ids["w1"] = 7, 8
    before = kinds(fast)
    agree(fast, module, Node("new", [Node("w1")]))
    assert kinds(fast) == before


def test_dictionaries_are_as_before() -> None:
    made = OfModule, Global, OfObject, Counted
    for make in made:
        module = make().eval()
        held = [*vars(module).values(), IDS]
        cortex.compile(module, examples=[tree()])
        assert all(type(x) in (dict, Counter) for x in held if isinstance(x, dict))
        assert all(x is y for x, y in zip([*vars(module).values(), IDS], held, strict=True))
    assert type(IDS) is dict
    assert vars(VOCABULARY)["ids"] == IDS


class Growing(Base):
    """Words are numbered as they come."""

    def index(self, node):
        if node.word not in self.ids:
            self.ids[node.word] = len(self.ids)
        return self.ids[node.word]


def test_a_dictionary_that_code_changes_is_refused() -> None:
    with pytest.raises(cortex.ModelError, match=r"self\.ids"):
        cortex.compile(Growing().eval(), examples=[tree(1, ["unheard", "w1"])])


def test_a_default_that_differs_each_time_is_not_taken_for_one() -> None:
    module = Defaults().eval()
    module.ids.default_factory = lambda: len(module.ids)
    fast = cortex.compile(module, examples=[tree(1, WORDS[:2])])
    agree(fast, module, tree(1, WORDS[:2]))
    assert kinds(fast) > 1


class Lowered(Base):
    """What follows from a word is looked up."""

    def index(self, node):
        word = node.word.lower()
        if word.startswith("x") or word.isalpha():
            return 1
        return self.ids.get(word, UNKNOWN) if word[0] == "w" else 2


def test_what_follows_from_words_is_looked_up() -> None:
    module = Lowered().eval()
    words = [*WORDS, "W1", "W12", "X", "x7", "longer", "w99", "a7", "a19"]
    fast = cortex.compile(module, examples=[tree(2, words) for _ in range(4)])
    before = kinds(fast)
    assert before <= 6
    for _ in range(10):
        agree(fast, module, tree(2, [*words, "Xyz", "w", "W99", "b", "B7"]))
    assert kinds(fast) == before


class Named(Base):
    """Python wants a real text."""

    def word(self, node):
        return getattr(self, node.kind.lower() + "_")(self.emb(torch.tensor(self.ids[node.word])))

    def a_(self, x):
        return x * 2

    def b_(self, x):
        return torch.relu(x)


def test_texts_that_have_to_be_real_are_asked_for() -> None:
    module = Named().eval()
    fast = cortex.compile(module, examples=[tree() for _ in range(3)])
    for _ in range(5):
        agree(fast, module, tree())
    assert kinds(fast) == 2


SAVED = {
    "lowered": Lowered,
    "of_module": OfModule,
    "floats": Floats,
    "member": Member,
    "default": Default,
    "of_part": OfPart,
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
    module = OfModule().eval()
    module.emb = nn.Embedding(30_000, H)
    module.ids = {f"w{i}": i for i in range(30_000)}
    fast = cortex.compile(module, examples=[tree(2, WORDS[:3])])
    agree(fast, module, tree(2, ["w29999", "w12345"]))
    fast.save(tmp_path / "model")
    assert torch.equal(torch.as_tensor(cortex.load(tmp_path / "model")(tree(0, ["w777"]))), fast(tree(0, ["w777"])))

"""Modules that look words up in dictionaries, as people write them, and trees for them."""

from __future__ import annotations

import random
from collections import Counter, OrderedDict, defaultdict
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

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


class Growing(Base):
    """Words are numbered as they come."""

    def index(self, node):
        if node.word not in self.ids:
            self.ids[node.word] = len(self.ids)
        return self.ids[node.word]


class Lowered(Base):
    """What follows from a word is looked up."""

    def index(self, node):
        word = node.word.lower()
        if word.startswith("x") or word.isalpha():
            return 1
        return self.ids.get(word, UNKNOWN) if word[0] == "w" else 2


class Named(Base):
    """Python wants a real text."""

    def word(self, node):
        return getattr(self, node.kind.lower() + "_")(self.emb(torch.tensor(self.ids[node.word])))

    def a_(self, x):
        return x * 2

    def b_(self, x):
        return torch.relu(x)

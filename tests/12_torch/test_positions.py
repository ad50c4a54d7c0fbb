"""Folds and recurrent layers over children and over lists of numbers: one kind, whatever the length."""

import random
import warnings
from typing import Any

import pytest

import cortex

torch = pytest.importorskip("torch")
nn = torch.nn

SIZE = 6


class Node:
    def __init__(self, word: int, children: Any = ()) -> None:
        self.word = word
        self.children = list(children)


class Encoder(nn.Module):  # type: ignore[name-defined,misc]
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(9, SIZE)


class Fold(Encoder):
    """The first state is the node's own."""

    def __init__(self) -> None:
        super().__init__()
        self.W = nn.Linear(2 * SIZE, SIZE)

    def forward(self, node: Any) -> Any:
        h = self.emb(torch.tensor(node.word))
        for child in node.children:
            h = torch.tanh(self.W(torch.cat([h, self(child)])))
        return h


class FoldBackwards(Fold):
    def forward(self, node: Any) -> Any:
        h = self.emb(torch.tensor(node.word))
        for child in reversed(node.children):
            h = torch.tanh(self.W(torch.cat([self(child), h])))
        return h


class Lstm(Encoder):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(SIZE, SIZE)

    def forward(self, node: Any) -> Any:
        x = self.emb(torch.tensor(node.word))
        if not node.children:
            return x
        return x + self.lstm(torch.stack([self(child) for child in node.children]))[1][0][0]


class AttentionOverOutputs(Encoder):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(SIZE, SIZE // 2, bidirectional=True)
        self.score = nn.Linear(SIZE, 1)

    def forward(self, node: Any) -> Any:
        x = self.emb(torch.tensor(node.word))
        if not node.children:
            return x
        out, _ = self.gru(torch.stack([self(child) for child in node.children]))
        return x + (torch.softmax(self.score(out), 0) * out).sum(0)


class FirstThree(Fold):
    """What is done for each number of children stays so."""

    def forward(self, node: Any) -> Any:
        h = self.emb(torch.tensor(node.word))
        for child in node.children[:3]:
            h = torch.tanh(self.W(torch.cat([h, self(child)])))
        return h if len(node.children) < 5 else 2 * h


def tree(rng: random.Random, count: int, deep: bool = True) -> Node:
    return Node(rng.randrange(9), [tree(rng, rng.randrange(4), False) if deep else Node(1) for _ in range(count)])


@pytest.mark.parametrize("cls", [Fold, FoldBackwards, Lstm, AttentionOverOutputs, FirstThree])
def test_all_lengths_agree(cls: type[Encoder]) -> None:
    torch.manual_seed(0)
    rng = random.Random(0)
    module = cls().eval()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        fast = cortex.compile(module, examples=[tree(rng, 3), tree(rng, 2)], check=False)
        trees = [tree(rng, n) for n in (1, 2, 3, 4, 5, 6, 9)]
        expected = torch.stack([module(t) for t in trees])
        together = fast(trees)  # new lengths of one request are compiled at once
        torch.testing.assert_close(together, expected, rtol=1e-5, atol=1e-6)
        each = torch.stack([fast(t) for t in trees])
        assert torch.equal(together, each)
        assert torch.equal(fast(trees, threads=2), each)


def test_other_lengths_need_no_other_kinds(tmp_path: Any) -> None:
    torch.manual_seed(0)
    rng = random.Random(1)
    module = Lstm().eval()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        fast = cortex.compile(module, examples=[tree(rng, 3)])
        fast(tree(rng, 2))
        kinds = len(fast.program.traced.kinds)
        longest = tree(rng, 17)
        found = fast(longest)
        assert len(fast.program.traced.kinds) == kinds
        torch.testing.assert_close(found, module(longest), rtol=1e-5, atol=1e-6)
        fast.save(tmp_path / "lstm.cortex")
        assert torch.equal(torch.as_tensor(cortex.load(tmp_path / "lstm.cortex")(longest)), found)


class ByWord(Fold):
    """Owners of two kinds, which begin with different values."""

    def begin(self, node: Any) -> Any:
        x = self.emb(torch.tensor(node.word))
        return x * 2 if node.word == 1 else x

    def forward(self, node: Any) -> Any:
        h = self.begin(node)
        for child in node.children:
            h = torch.tanh(self.W(torch.cat([h, self(child)])))
        return h


class ByRemainder(ByWord):
    def begin(self, node: Any) -> Any:
        x = self.emb(torch.tensor(node.word))
        return x * 2 if len(node.children) % 3 == 1 else x


class OfThree(ByWord):
    def begin(self, node: Any) -> Any:
        x = self.emb(torch.tensor(node.word))
        return x * (node.word - 0.5) if node.word == 1 else x + 1 if node.word > 5 else x


class AlsoBackwards(ByWord):
    def forward(self, node: Any) -> Any:
        h = self.begin(node)
        for child in reversed(node.children) if node.word == 2 else node.children:
            h = torch.tanh(self.W(torch.cat([h, self(child)])))
        return h


@pytest.mark.parametrize("cls", [ByWord, ByRemainder, OfThree, AlsoBackwards])
def test_owners_of_several_kinds_in_one_request(cls: type[Encoder], tmp_path: Any) -> None:
    torch.manual_seed(0)
    module = cls().eval()
    rng = random.Random(1)

    def tree(depth: int) -> Node:
        return Node(rng.randrange(9), [tree(depth - 1) for _ in range(rng.randrange(6) if depth else 0)])

    inner = Node(3, [Node(1), Node(0)])
    examples = [Node(1, [Node(2), inner, Node(2)]), *(tree(3) for _ in range(6))]
    others = [tree(3) for _ in range(10)]
    with torch.no_grad():
        fast = cortex.compile(module, examples=examples, check=False)
        fast.save(tmp_path / "folds.cortex")
        loaded = cortex.load(tmp_path / "folds.cortex")
        for given in examples + others:
            torch.testing.assert_close(fast(given), module(given), atol=1e-5, rtol=1e-4)
        for given in examples:
            assert torch.equal(torch.as_tensor(loaded(given)), fast(given))

"""Attributes that are followed in a loop, and fields of objects in lists: one kind, however many there are."""

import random
import warnings
from pathlib import Path
from typing import Any

import pytest

import cortex

torch = pytest.importorskip("torch")
nn = torch.nn

SIZE = 6


class Token:
    def __init__(self, rng: random.Random) -> None:
        self.id = rng.randrange(9)
        self.weight = rng.random()
        self.next: Token | None = None


class Node:
    def __init__(self, rng: random.Random) -> None:
        self.word = rng.randrange(9)
        self.children: list[Node] = []
        self.parent: Node | None = None
        self.tokens = [Token(rng) for _ in range(rng.randrange(9))]
        for before, after in zip(self.tokens, self.tokens[1:], strict=False):
            before.next = after
        self.first = self.tokens[0] if self.tokens else None

    def add(self, child: "Node") -> "Node":
        child.parent = self
        self.children.append(child)
        return child


def tree(count: int, rng: random.Random) -> Node:
    nodes = [Node(rng)]
    for _ in range(count - 1):
        nodes.append(rng.choice(nodes).add(Node(rng)))
    return nodes[0]


def chain(count: int, rng: random.Random) -> Node:
    root = at = Node(rng)
    for _ in range(count - 1):
        at = at.add(Node(rng))
    return root


def star(count: int, rng: random.Random) -> Node:
    root = Node(rng)
    for _ in range(count):
        root.add(Node(rng))
    return root


class Encoder(nn.Module):  # type: ignore[name-defined,misc]
    def __init__(self) -> None:
        super().__init__()
        self.emb, self.W, self.q = nn.Embedding(9, SIZE), nn.Linear(2 * SIZE, SIZE), nn.Linear(SIZE, SIZE)

    def below(self, node: Any) -> Any:
        return sum((self(child) for child in node.children), torch.zeros(SIZE))


class AttentionOverStates(Encoder):
    """Over what the same method has stored on the ancestors."""

    def down(self, node: Any) -> None:
        x = self.emb(torch.tensor(node.word))
        above = []
        a = node.parent
        while a is not None:
            above.append(a.h)
            a = a.parent
        if above:
            states = torch.stack(above)
            x = torch.tanh(self.W(torch.cat([x, torch.softmax(states @ x, 0) @ states])))
        node.h = x
        for child in node.children:
            self.down(child)

    def up(self, node: Any) -> Any:
        return node.h + sum((self.up(child) for child in node.children), torch.zeros(SIZE))

    def forward(self, node: Any) -> Any:
        self.down(node)
        return self.up(node)


class SumOfStates(AttentionOverStates):
    def down(self, node: Any) -> None:
        a, s = node, torch.zeros(SIZE)
        while a.parent is not None:
            a = a.parent
            s = s + self.q(a.h)
        node.h = torch.tanh(self.W(torch.cat([self.emb(torch.tensor(node.word)), s])))
        for child in node.children:
            self.down(child)


class StateOfParent(AttentionOverStates):
    def down(self, node: Any) -> None:
        x = self.emb(torch.tensor(node.word))
        node.h = x if node.parent is None else torch.tanh(self.W(torch.cat([x, node.parent.h])))
        for child in node.children:
            self.down(child)


class AttentionOverWords(Encoder):
    def forward(self, node: Any) -> Any:
        x, a, above = self.emb(torch.tensor(node.word)), node, []
        while a.parent is not None:
            a = a.parent
            above.append(self.emb(torch.tensor(a.word)))
        if above:
            words = torch.stack(above)
            x = torch.tanh(self.W(torch.cat([x, torch.softmax(words @ x, 0) @ words])))
        return x + self.below(node)


class FoldUp(Encoder):
    def forward(self, node: Any) -> Any:
        s, a = self.emb(torch.tensor(node.word)), node.parent
        while a is not None:
            s = torch.tanh(self.W(torch.cat([s, self.emb(torch.tensor(a.word))])))
            a = a.parent
        return s + self.below(node)


class LinkedTokens(Encoder):
    def forward(self, node: Any) -> Any:
        h, t = torch.zeros(SIZE), node.first
        while t is not None:
            h = torch.tanh(self.W(torch.cat([h, self.emb(torch.tensor(t.id)) * t.weight])))
            t = t.next
        return h + self.below(node)


class ListedTokens(Encoder):
    def forward(self, node: Any) -> Any:
        h = torch.zeros(SIZE)
        for t in node.tokens:
            h = torch.tanh(self.W(torch.cat([h, self.emb(torch.tensor(t.id)) * t.weight])))
        return h + self.below(node)


def judge(cls: Any, most: int, folder: Path | None = None) -> Any:
    """Compare with the uncompiled run; after these requests there are at most so many kinds."""
    torch.manual_seed(0)
    module, rng = cls().eval(), random.Random(1)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        examples = [chain(1, rng), chain(2, rng), star(2, rng), tree(7, rng)]
        fast = cortex.compile(module, examples=examples, check=False)
        for given in (*(star(n, rng) for n in (1, 17)), *(chain(n, rng) for n in (1, 2, 5, 12)), tree(20, rng)):
            torch.testing.assert_close(fast(given), module(given))
        assert len(fast.program.traced.kinds) <= most
        if folder is not None:
            fast.save(folder / "saved.cortex")
            loaded = cortex.load(folder / "saved.cortex")
            for given in (chain(9, rng), star(11, rng), tree(25, rng)):
                torch.testing.assert_close(torch.as_tensor(loaded(given)), module(given))
    return fast


@pytest.mark.parametrize(
    ("cls", "most"),
    [
        (SumOfStates, 12),
        (StateOfParent, 12),
        (AttentionOverWords, 9),
        (LinkedTokens, 10),
        (ListedTokens, 9),
        (FoldUp, 9),
    ],
)
def test_any_number(cls: Any, most: int) -> None:
    judge(cls, most)


def test_any_number_when_saved(tmp_path: Path) -> None:
    judge(AttentionOverStates, 12, tmp_path)


class FewAncestors(Encoder):
    """Three at most: not followed to the end."""

    def forward(self, node: Any) -> Any:
        x, a = self.emb(torch.tensor(node.word)), node
        for _ in range(3):
            if a.parent is None:
                break
            a = a.parent
            x = x + self.q(self.emb(torch.tensor(a.word)))
        return x + self.below(node)


class UpToEven(Encoder):
    def forward(self, node: Any) -> Any:
        x, a = self.emb(torch.tensor(node.word)), node.parent
        while a is not None and a.word % 2:
            a = a.parent
        if a is not None:
            x = x + self.q(self.emb(torch.tensor(a.word)))
        return x + self.below(node)


class OwnRoot(Encoder):
    """The root is its own parent, so that there is no end."""

    def forward(self, node: Any) -> Any:
        x, a = self.emb(torch.tensor(node.word)), node
        while a.parent is not a:
            a = a.parent
            x = x + self.q(self.emb(torch.tensor(a.word)))
        return x + self.below(node)


@pytest.mark.parametrize("cls", [FewAncestors, UpToEven, OwnRoot])
def test_loops_that_end_otherwise(cls: Any) -> None:
    torch.manual_seed(0)
    module, rng = cls().eval(), random.Random(1)
    made = [tree(9, rng), chain(6, rng), star(3, rng)]
    for root in made if cls is OwnRoot else ():
        root.parent = root
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of many kinds
        fast = cortex.compile(module, examples=made[:1], check=False)
        for given in made:
            torch.testing.assert_close(fast(given), module(given))


class UpAndDown(Encoder):
    def forward(self, node: Any) -> Any:
        x = self.emb(torch.tensor(node.word))
        node.h = x if node.parent is None else torch.tanh(self.W(torch.cat([x, node.parent.h])))
        return node.h + self.below(node)


def test_waiting_for_each_other_is_refused() -> None:
    with pytest.raises(cortex.ModelError, match="stores, and that one waits for its result"):
        cortex.compile(UpAndDown().eval(), examples=[tree(5, random.Random(0))], check=False)


def test_a_cycle_is_refused() -> None:
    rng = random.Random(0)
    with torch.no_grad():
        fast = cortex.compile(FoldUp().eval(), examples=[tree(7, rng)], check=False)
        given = chain(3, rng)
        given.parent = given.children[0]
        with pytest.raises(cortex.StructureError, match="leads from one object to the next more than"):
            fast(given)

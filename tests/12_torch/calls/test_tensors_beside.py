"""Tensors that are given beside the structure: rows by any integer of the node, layers before that, latents."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fuzz.interpreted import interpreting
from torch import nn
from torch.nn import functional as F

import cortex

WORDS, D, H = 20, 6, 5


def tree(depth: int = 3, most: int = 3) -> Any:
    count = random.randint(0, most) if depth else 0
    return SimpleNamespace(word=random.randrange(WORDS), children=[tree(depth - 1, most) for _ in range(count)])


def chain(length: int) -> Any:
    root = tree(0)
    for _ in range(length - 1):
        root = SimpleNamespace(word=1, children=[root])
    return root


def star(arity: int) -> Any:
    return SimpleNamespace(word=1, children=[tree(0) for _ in range(arity)])


def numbered(root: Any) -> int:
    """Number the nodes from 0; how many there are."""
    count, todo = 0, [root]
    while todo:
        node = todo.pop()
        node.idx, node.span, node.ids = count, (count, count + 1), [count, 0]
        count += 1
        todo.extend(node.children)
    return count


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.x, self.u = nn.Embedding(WORDS, D), nn.Linear(D, H), nn.Linear(H, H)
        self.norm, self.join, self.of_z = nn.LayerNorm(H), nn.Linear(2 * D + H, H), nn.Linear(4, H)


class Rows(Base):
    """Every way to take a row."""

    def up(self, node, inputs, words):
        i = node.idx
        h = self.x(inputs[i] + inputs[i - 1] + inputs[node.span[0], :] + inputs[i : i + 1].squeeze(0))
        h = h + self.x(inputs[[i]].view(-1) * inputs[torch.tensor(node.ids)].sum(0) + inputs[..., 2][i])
        h = h + self.x(inputs.index_select(0, torch.tensor([i]))[0] - F.embedding(torch.tensor(i), inputs))
        h = h + self.x(inputs.select(0, i) + inputs.narrow(0, i, 1)[0] + inputs[-1] + inputs[i, 1] * inputs[0, 2:3])
        h = h + self.x(self.emb(words[i]) + self.emb(words[i : i + 1]).mean(0) + torch.zeros(inputs.size(1)))
        for child in node.children:
            h = h + self.u(self.up(child, inputs, words))
        return torch.tanh(h)

    def forward(self, node, inputs, words):
        return self.up(node, inputs, words)


class Layers(Base):
    """Layers, arithmetic, views and masks over all rows before nodes take theirs."""

    def up(self, node, x, scaled):
        h = x[node.idx] + scaled[node.idx]
        for child in node.children:
            h = h + self.u(self.up(child, x, scaled))
        return torch.tanh(h)

    def forward(self, node, inputs, words):
        projected = F.relu(self.x(inputs.view(inputs.size(0), -1).float()))
        x = self.join(torch.cat([self.emb(words), 1 - inputs * 2, self.norm(projected)], dim=1))
        mask = (inputs[:, 0:1] > 0).float()
        scaled = torch.where(x > 0, x, torch.zeros_like(x)) * mask - x.mean(1, keepdim=True)
        return self.up(node, x.unsqueeze(1).squeeze(1), torch.softmax(scaled, dim=-1))


class Latent(Base):
    """A latent vector, used at every node and at the root."""

    def up(self, node, z):
        h = self.x(self.emb(torch.tensor([node.word]))) + self.of_z(z)
        for child in node.children:
            h = h + self.u(self.up(child, z))
        return torch.tanh(h)

    def forward(self, node, z):
        return torch.cat([self.up(node, z), z, z[:, :1]], dim=1)


class Decoder(Base):
    """What is computed from a latent is passed down."""

    def down(self, node, h):
        h = torch.tanh(self.u(h) + self.x(self.emb(torch.tensor([node.word]))))
        found = h
        for child in node.children:
            found = found + self.down(child, h)
        return found

    def forward(self, node, z):
        return self.down(node, torch.tanh(self.of_z(z)))


class Pair(Base):
    """Two structures, each with a tensor of its own."""

    def up(self, node, inputs):
        h = self.x(inputs[node.idx])
        for child in node.children:
            h = h + self.u(self.up(child, inputs))
        return torch.tanh(h)

    def forward(self, left, left_inputs, right, right_inputs):
        a, b = self.up(left, left_inputs), self.up(right, right_inputs)
        return self.u(a * b) + self.u((a - b).abs())


def with_rows(root: Any) -> tuple[Any, ...]:
    count = numbered(root)
    return root, torch.randn(count, D), torch.randint(0, WORDS, (count,))


def with_latent(root: Any) -> tuple[Any, ...]:
    return root, torch.randn(1, 4)


def pair(root: Any) -> tuple[Any, ...]:
    return *with_rows(root)[:2], *with_rows(tree())[:2]


CASES: dict[str, tuple[type[nn.Module], Callable[[Any], tuple[Any, ...]]]] = {
    "rows": (Rows, with_rows),
    "layers": (Layers, with_rows),
    "latent": (Latent, with_latent),
    "decoder": (Decoder, with_latent),
    "pair": (Pair, pair),
}


@pytest.fixture(autouse=True)
def seeds() -> None:
    random.seed(7)
    torch.manual_seed(7)


def calls_of(call: Callable[[Any], tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [call(root) for root in (tree(0), chain(12), star(40), *(tree() for _ in range(30)))]


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_module(name: str) -> None:
    kind, call = CASES[name]
    module = kind().eval()
    with interpreting(), torch.no_grad():
        fast = cortex.compile(module, examples=[call(tree()) for _ in range(4)], check=False)
        for each in calls_of(call):
            torch.testing.assert_close(fast(*each), module(*each), rtol=1e-4, atol=1e-5)
        assert len(fast._made) == 1  # no number of rows is compiled for


@pytest.mark.parametrize("name", ["pair", "latent"])
def test_batches_and_saved_modules(name: str, tmp_path: Path) -> None:
    kind, call = CASES[name]
    module = kind().eval()
    fast = cortex.compile(module, examples=[call(tree()) for _ in range(4)])
    calls = calls_of(call)
    with torch.no_grad():
        wanted = torch.stack([module(*each) for each in calls])
        torch.testing.assert_close(torch.stack([fast(*each) for each in calls]), wanted, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(fast(calls[:10]), wanted[:10], rtol=1e-4, atol=1e-5)
        assert fast([]).shape == (0, *wanted[0].shape)
        fast.save(tmp_path / "saved.cortex")
        loaded = cortex.load(tmp_path / "saved.cortex", as_torch=True)
        torch.testing.assert_close(torch.stack([loaded(*each) for each in calls]), wanted, rtol=1e-4, atol=1e-5)


class Refused(Base):
    """What takes all rows together, by `what`."""

    def __init__(self, what):
        super().__init__()
        self.what = what
        self.lstm = nn.LSTM(D, H, batch_first=True)

    def up(self, node, inputs):
        h = inputs[node.idx]
        for child in node.children:
            h = h + self.up(child, inputs)
        return torch.tanh(h)

    def forward(self, node, inputs):
        return self.up(node, self.what(self, inputs))


REFUSED: dict[str, Callable[[Any, torch.Tensor], Any]] = {
    "lstm": lambda self, x: self.lstm(x.unsqueeze(0))[0].squeeze(0),
    "mean": lambda self, x: x - x.mean(0),
    "cumsum": lambda self, x: (x > 9).cumsum(0),
    "flip": lambda self, x: x.flip(0),
    "reshaped": lambda self, x: x.reshape(-1, 2),
    "size": lambda self, x: x / x.size(0),
    "size_compared": lambda self, x: x if x.size(0) == 3 else -x,
    "in_place": lambda self, x: x.add_(1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, golden: Callable[[str, str], None]) -> None:
    examples = [with_rows(tree())[:2] for _ in range(4)]
    with pytest.raises(cortex.ModelError) as raised:
        cortex.compile(Refused(REFUSED[name]).eval(), examples=examples, check=False)
    golden(f"errors/torch_beside/{name}", f"{type(raised.value).__name__}: {raised.value}".partition("\n")[0])


def test_the_remedy_works() -> None:
    """What takes all rows together is computed in torch before the call."""
    module = Refused(lambda self, x: x).eval()
    with interpreting(), torch.no_grad():
        fast = cortex.compile(module, examples=[(root, torch.randn(numbered(root), H)) for root in (tree(), tree())])
        for _ in range(5):
            root, inputs, _ = with_rows(tree())
            inputs = module.lstm(inputs.unsqueeze(0))[0].squeeze(0)
            torch.testing.assert_close(fast(root, inputs), module(root, inputs), rtol=1e-4, atol=1e-5)


def test_a_latent_of_another_shape_is_compiled_separately() -> None:
    module = Latent().eval()
    with interpreting(), torch.no_grad():
        fast = cortex.compile(module, examples=[(tree(), torch.randn(1, 4))])
        for rows in (1, 3, 1):
            each = tree(), torch.randn(rows, 4)
            torch.testing.assert_close(fast(*each), module(*each), rtol=1e-4, atol=1e-5)
        assert len(fast._made) == 2


class Siblings(nn.Module):
    """Messages among the children of a node, along edges that it lists."""

    def __init__(self):
        super().__init__()
        self.emb, self.message = nn.Embedding(WORDS, H), nn.Linear(H, H)

    def forward(self, node):
        h = self.emb(torch.tensor(node.word))
        if not node.children:
            return h
        below = torch.stack([self(child) for child in node.children])
        found = torch.zeros(len(node.children), H)
        for source, target in node.edges:
            found[target] = found[target] + self.message(below[source])
        return torch.tanh(h + (below + found).sum(0))


def with_edges(root: Any) -> Any:
    count = len(root.children)
    root.edges = [(random.randrange(count), random.randrange(count)) for _ in range(min(count, 3))]
    for child in root.children:
        with_edges(child)
    return root


def test_each_kind_has_its_own_limit_of_an_index() -> None:
    """One of two children is no index of the only child of another node, and the other way round it must be taken."""
    module = Siblings().eval()
    with interpreting(), torch.no_grad():
        fast = cortex.compile(module, examples=[with_edges(tree()) for _ in range(5)], check=False)
        for root in (tree(0), chain(5), star(7), *(tree() for _ in range(10))):
            with_edges(root)
            torch.testing.assert_close(fast(root), module(root), rtol=1e-4, atol=1e-5)
        root = with_edges(star(2))
        root.edges = [(0, 2), (0, 0)]
        with pytest.raises(cortex.StructureError, match="must be an integer from 0 to 1"):
            fast(root)

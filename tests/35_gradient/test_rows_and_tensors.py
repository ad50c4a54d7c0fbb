"""Training with results that have a row for each of several nodes, and gradients of tensors that calls are given."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn

from training_modules import Node, assert_same, compiled, gradients, trees  # noqa: E402

from cortex.errors import StructureError  # noqa: E402


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.cell, self.out = nn.Embedding(20, 4), nn.Linear(4, 4), nn.Linear(4, 3)

    def encode(self, node: Any, outs: list[Any]) -> Any:
        kids = [self.encode(k, outs) for k in node.children]
        h = torch.tanh(self.cell(self.embedding(torch.tensor(node.word)) + sum(kids, torch.zeros(4))))
        outs.append(self.out(h))
        return h


class Stacked(Encoder):
    def forward(self, node: Any) -> Any:
        outs: list[Any] = []
        self.encode(node, outs)
        return torch.stack(outs)


class ListAndRoot(Encoder):
    def forward(self, node: Any) -> Any:
        outs: list[Any] = []
        return {"root": self.encode(node, outs), "nodes": outs}


class StoredAndCollected(Encoder):
    def store(self, node: Any) -> Any:
        kids = [self.store(k) for k in node.children]
        node.h = torch.tanh(self.cell(self.embedding(torch.tensor(node.word)) + sum(kids, torch.zeros(4))))
        return node.h

    def collect(self, node: Any) -> Any:
        found = [self.out(node.h)]
        for k in node.children:
            found += self.collect(k)
        return found

    def forward(self, node: Any) -> Any:
        self.store(node)
        return torch.stack(self.collect(node))


class OfChildren(Encoder):
    def words(self, node: Any) -> Any:
        kids = [self.words(k) for k in node.children]
        return torch.tanh(self.cell(self.embedding(torch.tensor(node.word)) + sum(kids, torch.zeros(4))))

    def forward(self, node: Any) -> Any:
        return torch.stack([self.out(self.words(k)) for k in node.children])


def tensors(x: Any) -> list[Any]:
    if isinstance(x, torch.Tensor):
        return [x]
    return [t for each in (x.values() if isinstance(x, dict) else x) for t in tensors(each)]


def weighted(results: Any) -> Any:
    """A loss in which each element has another weight."""
    generator = torch.Generator().manual_seed(0)
    return sum((x * torch.randn(x.shape, generator=generator)).sum() for x in tensors(results))


@pytest.mark.parametrize("made", [Stacked, ListAndRoot, StoredAndCollected, OfChildren])
def test_rows_of_nodes_have_gradients(made: Any) -> None:
    torch.manual_seed(0)
    module = made()
    examples = [t for t in trees(6, 3) if t.children]
    fast = compiled(module, examples)
    chain, star = Node(3, [Node(2, [Node(4, [Node(3)])])]), Node(1, [Node(i % 20) for i in range(9)])
    for batch in (examples, [chain], [star, chain]):
        module.zero_grad()
        weighted([module(t) for t in batch]).backward()
        wanted = gradients(module)
        for single in (True, False):
            module.zero_grad()
            found = [fast(t) for t in batch] if single else fast(batch)
            if isinstance(found, dict):  # of lists: one call after the other, as the module's
                found = [{name: column[i] for name, column in found.items()} for i in range(len(batch))]
            weighted(found).backward()
            assert_same(gradients(module), wanted)


class Given(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight, self.embedding = nn.Linear(4, 4), nn.Embedding(20, 4)

    def encode(self, node: Any, x: Any) -> Any:
        below = sum([self.encode(k, x) for k in node.children], torch.zeros(4))
        return torch.tanh(self.weight(x[node.word] + below))

    def forward(self, node: Any, x: Any) -> Any:
        return self.encode(node, x)


class GivenChanged(Given):
    def forward(self, node: Any, x: Any) -> Any:
        return self.encode(node, x * 2) + self.encode(node, torch.tanh(x))


class Whole(Given):
    def words(self, node: Any) -> Any:
        below = sum([self.words(k) for k in node.children], torch.zeros(4))
        return torch.tanh(self.weight(self.embedding(torch.tensor(node.word)) + below))

    def forward(self, node: Any, x: Any) -> Any:
        return torch.softmax(x @ self.words(node), 0) @ x


class Scalar(Whole):
    def forward(self, node: Any, x: Any) -> Any:
        return (self.words(node) * x[0]).sum()


class PassedDown(Given):
    def encode(self, node: Any, x: Any) -> Any:
        below = sum([self.encode(k, x + 1) for k in node.children], torch.zeros(4))
        return torch.tanh(self.weight(self.embedding(torch.tensor(node.word)) + below) * x)

    def forward(self, node: Any, x: Any) -> Any:
        return self.encode(node, x)


@pytest.mark.parametrize(
    ("made", "shape"),
    [(Given, (20, 4)), (GivenChanged, (20, 4)), (Whole, (7, 4)), (Scalar, (2, 4)), (PassedDown, (4,))],
)
def test_arguments_have_gradients(made: Any, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    module, structures = made(), trees(4)
    given = [torch.randn(shape, requires_grad=True) for _ in structures[1:]]
    fast = compiled(module, [(structures[0], torch.randn(shape))])
    calls = [(t, x * 1.5) for t, x in zip(structures, [given[0], *given], strict=True)]  # one of them in two calls

    def found(results: Any) -> dict[str, Any]:
        module.zero_grad()
        of_given = torch.autograd.grad(loss := weighted([results]), given, retain_graph=True)
        loss.backward(inputs=[*module.parameters()])
        return gradients(module) | {str(i): g for i, g in enumerate(of_given)}

    wanted = found(torch.stack([module(*call) for call in calls]))
    assert_same(found(torch.stack([fast(*call) for call in calls])), wanted)
    assert_same(found(fast(calls)), wanted)


class OnNodes(Given):
    def forward(self, node: Any) -> Any:  # type: ignore[override]
        below = torch.zeros(4)
        for k in node.children:
            below = below + self.forward(k) * k.x
        return torch.tanh(self.weight(node.x[0] * below + node.x)) * node.scale


class OnNodesDown(Given):
    def forward(self, node: Any) -> Any:  # type: ignore[override]
        return self.encode(node, torch.ones(4))

    def encode(self, node: Any, x: Any) -> Any:
        below = [self.encode(k, x * node.x) for k in node.children]
        return torch.tanh(self.weight(node.x * x)) + sum(below, torch.zeros(4))


def every(node: Node) -> list[Node]:
    return [node, *(n for k in node.children for n in every(k))]


def test_tensors_on_nodes_have_gradients() -> None:
    torch.manual_seed(0)
    module, structures = OnNodes(), trees(3)
    nodes = [n for t in structures for n in every(t)]
    for node in nodes:
        node.x, node.scale = torch.randn(4), 0.5
    fast, down = compiled(module, structures), compiled(OnNodesDown(), structures)
    shared = torch.randn(4, requires_grad=True)
    for number, node in enumerate(nodes):
        node.x = shared if number % 4 == 0 else torch.randn(4, requires_grad=number % 3 == 0)
    wanted_of = [node.x for node in nodes if node.x.requires_grad]

    def found(results: Any) -> dict[str, Any]:
        of_nodes = torch.autograd.grad(weighted([results]), wanted_of, allow_unused=True)
        return {str(i): torch.zeros(4) if g is None else g for i, g in enumerate(of_nodes)}

    wanted = found(torch.stack([module(t) for t in structures]))
    assert_same(found(fast(structures)), wanted)
    with pytest.raises(StructureError, match="a tensor of a node requires_grad"):
        down(structures)

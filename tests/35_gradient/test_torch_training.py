"""Training a module by its compiled one: gradients, optimizers and modes, against the module itself."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import cortex
from cortex.cost.choose import ALWAYS
from cortex.errors import ModelError, StructureError
from cortex.schedule.default import DEFAULT

torch = pytest.importorskip("torch")
nn = torch.nn

from training_modules import Node, assert_same, compiled, gradients, trees  # noqa: E402


class TreeLSTM(nn.Module):
    def __init__(self, hidden: int = 10, sparse: bool = True) -> None:
        super().__init__()
        self.hidden = hidden
        self.embedding = nn.Embedding(20, 12, sparse=sparse)
        self.gates = nn.Linear(12, 3 * hidden)
        self.below = nn.Linear(hidden, 3 * hidden, bias=False)
        self.forget = nn.Linear(12, hidden)
        self.forget_below = nn.Linear(hidden, hidden, bias=False)

    def forward(self, node: Any) -> Any:
        x = self.embedding(torch.tensor(node.word))
        kids = [self.forward(k) for k in node.children]
        i, o, u = (self.gates(x) + self.below(sum([h for h, _ in kids], torch.zeros(self.hidden)))).chunk(3)
        c = torch.sigmoid(i) * torch.tanh(u)
        for h, ck in kids:
            c = c + torch.sigmoid(self.forget(x) + self.forget_below(h)) * ck
        return torch.sigmoid(o) * torch.tanh(c), c


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = TreeLSTM(sparse=False)
        self.head = nn.Linear(10, 4)

    def forward(self, node: Any) -> Any:
        return self.head(self.encoder(node)[0])


class UpAndDown(nn.Module):
    """A pass up and a pass down, which is given something; tanh of what they find."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 6)
        self.up_weight = nn.Linear(6, 6)
        self.down_weight = nn.Linear(12, 6)

    def up(self, node: Any) -> Any:
        below = [self.up(k) for k in node.children]
        node.h = torch.tanh(self.up_weight(self.embedding(torch.tensor(node.word)) + sum(below, torch.zeros(6))))
        return node.h

    def down(self, node: Any, above: Any) -> Any:
        here = torch.tanh(self.down_weight(torch.cat([node.h, above])))
        return here + sum([self.down(k, here) for k in node.children], torch.zeros(6))

    def forward(self, node: Any) -> Any:
        self.up(node)
        return self.down(node, torch.zeros(6))


class OverChildren(nn.Module):
    """An LSTM over the children, and attention by the word of the node."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 6)
        self.cell = nn.LSTMCell(6, 6)

    def forward(self, node: Any) -> Any:
        x = self.embedding(torch.tensor(node.word))
        if not node.children:
            return torch.tanh(x)
        kids = [self.forward(k) for k in node.children]
        h, c = x, torch.zeros(6)
        for kid in kids:
            h, c = self.cell(kid, (h, c))
        every = torch.stack(kids)
        return h + torch.softmax(every @ x, 0) @ every


def agrees(module: Any, fast: Any, batch: list[Any], first: Any = lambda x: x) -> None:
    module.zero_grad()
    wanted = sum((first(module(t)) ** 2).sum() for t in batch)
    wanted.backward()
    exact = gradients(module)
    module.zero_grad()
    loss = (first(fast(batch)) ** 2).sum()
    loss.backward()
    assert float(loss.detach()) == pytest.approx(float(wanted.detach()), rel=1e-4)
    assert_same(gradients(module), exact)


@pytest.fixture(scope="module")
def classifier() -> tuple[Any, Any]:
    torch.manual_seed(0)
    module = Classifier()
    return module, compiled(module)


def assert_gradients_at_every_node(module: Any, fast: Any) -> None:
    results = fast.nodes(trees(1, 5)[0])
    module.zero_grad()
    (results.result[0] ** 2).sum().backward()
    found = gradients(module)
    module.zero_grad()
    (torch.stack([module(node)[0] for node in results.nodes]) ** 2).sum().backward()
    assert_same(found, gradients(module))


@pytest.mark.parametrize("made", [TreeLSTM, UpAndDown, OverChildren])
def test_gradients_are_those_of_the_module(made: Any) -> None:
    torch.manual_seed(0)
    module = made()
    fast = compiled(module)
    first = (lambda x: x[0]) if made is TreeLSTM else (lambda x: x)
    agrees(module, fast, trees(), first)
    if made is TreeLSTM:
        assert_gradients_at_every_node(module, fast)
        assert module.embedding.weight.grad.is_sparse
    agrees(module, fast, [trees(1, 3)[0], Node(3), Node(1, [Node(i % 20) for i in range(41)])], first)


def test_a_module_with_a_head_single_calls_and_shared_nodes(classifier: tuple[Any, Any]) -> None:
    module, fast = classifier
    agrees(module, fast, trees(3, 7))
    shared = Node(1, [Node(2), Node(3)])
    agrees(module, fast, [Node(4, [shared, Node(5, [shared])])])
    module.zero_grad()
    fast(trees()[0]).sum().backward()
    found = gradients(module)
    module.zero_grad()
    module(trees()[0]).sum().backward()
    assert_same(found, gradients(module))


def test_training_follows_eager_without_update(classifier: tuple[Any, Any]) -> None:
    module, fast = classifier
    other = copy.deepcopy(module)
    mine, theirs = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (module, other))
    batch = trees(4, 9)
    for _ in range(6):
        mine.zero_grad()
        theirs.zero_grad()
        a = fast(batch).logsumexp(1).sum() + fast(batch[0]).sum()  # two calls in a step
        b = torch.stack([other(t) for t in batch]).logsumexp(1).sum() + other(batch[0]).sum()
        a.backward()
        b.backward()
        mine.step()
        theirs.step()
        assert float(a.detach()) == pytest.approx(float(b.detach()), rel=1e-3)
    with torch.no_grad():
        wanted = torch.stack([other(t) for t in batch])
        in_training = fast(batch)
        assert not in_training.requires_grad
        torch.testing.assert_close(in_training, wanted, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(fast.eval()(batch), wanted, rtol=1e-3, atol=1e-3)
    fast.train()


def test_training_is_asked_for_by_compile() -> None:
    module = TreeLSTM(4)
    fast = cortex.compile(module, examples=trees(), check=False, choices=DEFAULT, recursion=ALWAYS, train=True)
    agrees(module, fast, trees(2, 8), lambda x: x[0])
    with pytest.raises(ModelError, match=r"fast\.vjp"):
        cortex.compile(cortex.model(lambda node, w, f: f), train=True)


def test_a_scalar_of_one_structure() -> None:
    class Scalar(Classifier):
        def forward(self, node: Any) -> Any:
            return super().forward(node).sum()

    module = Scalar()
    fast = compiled(module)
    module.zero_grad()
    module(trees()[0]).backward()
    wanted = gradients(module)
    module.zero_grad()
    fast(trees()[0]).backward()
    assert_same(gradients(module), wanted)


def test_frozen_parameters_get_no_gradient_and_second_derivatives_are_refused(classifier: tuple[Any, Any]) -> None:
    module, fast = classifier
    module.encoder.embedding.weight.requires_grad_(False)
    try:
        agrees(module, fast, trees(2, 4))
    finally:
        module.encoder.embedding.weight.requires_grad_(True)
    with pytest.raises(StructureError, match="no second derivatives"):
        torch.autograd.grad(fast(trees(1))[0].sum(), [module.head.weight], create_graph=True)


def test_changed_weights_between_the_passes_are_refused(classifier: tuple[Any, Any]) -> None:
    module, fast = classifier
    loss = fast(trees(2)).sum()
    with torch.no_grad():
        module.head.weight.mul_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


class Dropping(Classifier):
    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, node: Any) -> Any:
        return self.drop(super().forward(node))


class DroppingByFunction(Classifier):
    def forward(self, node: Any) -> Any:
        return nn.functional.dropout(super().forward(node), 0.5, self.training)


@pytest.mark.parametrize("made", [Dropping, DroppingByFunction])
def test_dropout_in_training_mode_is_refused(made: Any) -> None:
    module = made().eval()
    fast = compiled(module)
    module.train()
    with pytest.raises(ModelError, match=r"training|random"):
        fast(trees(2))

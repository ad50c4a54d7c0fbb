"""`update` of a compiled module: from a state_dict, and from the module, which also has what no state_dict has."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import cortex

SIZE = 4
AROUND = torch.linspace(0.1, 0.4, SIZE)


class Holder:
    def __init__(self) -> None:
        self.bias = torch.linspace(0.4, 0.1, SIZE)


class Tree(torch.nn.Module):
    """Computes with tensors of every home."""

    of_class = torch.linspace(-0.2, 0.2, SIZE)

    def __init__(self) -> None:
        super().__init__()
        self.emb = torch.nn.Embedding(10, SIZE)
        self.U = torch.nn.Linear(SIZE, SIZE)
        self.register_buffer("scale", torch.rand(SIZE), persistent=False)
        self.register_buffer("order", torch.tensor([3, 2, 1, 0]))
        self.register_buffer("steps", torch.tensor(0))  # which nothing reads
        self.plain = torch.rand(SIZE)
        self.uniform = torch.ones(SIZE)
        self.several = [torch.rand(SIZE), {"second": torch.rand(SIZE)}]
        self.holder = Holder()

    def forward(self, node: Any) -> Any:
        below = torch.zeros(SIZE) if node.left is None else self(node.left) + self(node.right)
        own = self.emb(torch.tensor(node.word)) * self.scale + torch.exp(self.plain) + self.of_class
        held = self.several[0] * self.several[1]["second"] + self.holder.bias + AROUND
        return torch.tanh(own + held + self.U(below) * self.uniform)[self.order]


def Node(word: int, left: Any = None, right: Any = None) -> Any:
    return SimpleNamespace(word=word, left=left, right=right)


TREE = Node(1, Node(2), Node(3, Node(4), Node(5)))
CHANGES: dict[str, Callable[[Any], Any]] = {
    "plain": lambda module: setattr(module, "plain", torch.rand(SIZE)),
    "uniform": lambda module: module.uniform.mul_(3),
    "several[0]": lambda module: module.several.__setitem__(0, torch.rand(SIZE)),
    "several[1]['second']": lambda module: module.several[1]["second"].add_(1),
    "holder.bias": lambda module: setattr(module.holder, "bias", torch.rand(SIZE)),
}


@pytest.fixture
def module() -> Tree:
    torch.manual_seed(0)
    return Tree().eval()


@torch.no_grad()
def check(fast: Any, module: Any) -> None:
    torch.testing.assert_close(torch.as_tensor(fast(TREE)), module(TREE), rtol=1e-5, atol=1e-6)


def test_compiling_names_what_a_state_dict_leaves_out(module: Tree, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "cortex"):
        fast = cortex.compile(module, examples=[TREE])
    (record,) = caplog.records
    assert all(name in record.getMessage() for name in fast.not_in_state_dict)


@torch.no_grad()
def test_what_a_state_dict_leaves_out_stays(module: Tree, golden: Callable[[str, str], None]) -> None:
    fast = cortex.compile(module, examples=[TREE])
    assert set(CHANGES) | {"scale", "Tree.of_class", "forward: AROUND"} == set(fast.not_in_state_dict)
    module.U.weight.mul_(2)
    module.steps += 1
    fast.update(module.state_dict())
    check(fast, module)
    module.scale.mul_(3)
    with pytest.warns(UserWarning) as said:
        fast.update(module.state_dict())
    golden("errors/torch/update_leaves_out", f"UserWarning: {said[0].message}")
    program = fast.executable(TREE)
    fast.update(module)
    check(fast, module)
    fast.update(module.state_dict())
    check(fast, module)
    assert fast.executable(TREE) is program  # nothing was compiled


@torch.no_grad()
def test_update_reads_all_of_the_module(module: Tree) -> None:
    fast = cortex.compile(module, examples=[TREE])
    for name, change in CHANGES.items():
        fast.update(module)
        change(module)
        with pytest.warns(UserWarning) as said:
            fast.update(module.state_dict())
        assert f"'{name}'" in str(said[0].message)
    fast.update(module)
    check(fast, module)
    other = copy.deepcopy(module)
    other.plain.mul_(2)
    other.U.weight.mul_(0.5)
    fast.update(other)
    check(fast, other)


@torch.no_grad()
def test_buffers_of_integers(module: Tree, golden: Callable[[str, str], None]) -> None:
    """Code is compiled for their elements: a state_dict with others is refused, and the module is compiled again."""
    fast = cortex.compile(module, examples=[TREE])
    before, want = fast.executable(TREE), fast(TREE)
    module.order.copy_(torch.tensor([0, 1, 2, 3]))
    module.U.weight.mul_(2)
    with pytest.raises(cortex.ModelError) as changed:
        fast.update(module.state_dict())
    assert torch.equal(fast(TREE), want)
    fast.update(module)
    check(fast, module)
    with pytest.raises(cortex.ModelError) as retired:
        before.linearize([])
    golden("errors/torch/update_changes_the_program", f"ModelError: {changed.value}\n\nModelError: {retired.value}")


@torch.no_grad()
def test_loaded_modules(module: Tree, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    cortex.compile(module, examples=[TREE]).save(tmp_path / "tree.cortex")
    loaded = cortex.load(tmp_path / "tree.cortex")
    module.U.weight.mul_(2)
    loaded.update(module.state_dict())
    check(loaded, module)
    module.scale.mul_(2)
    loaded.update(module)
    check(loaded, module)
    want = loaded(TREE)
    messages = []
    for change in (CHANGES["plain"], lambda module: module.order.copy_(torch.tensor([0, 1, 2, 3]))):
        changed = copy.deepcopy(module)
        change(changed)
        with pytest.raises(cortex.ModelError) as caught:
            loaded.update(changed)
        messages.append(f"ModelError: {caught.value}")
    assert (loaded(TREE) == want).all()
    golden("errors/torch/update_of_loaded", "\n\n".join(messages))


def test_wrong_weights_leave_all_as_it_was(module: Tree, golden: Callable[[str, str], None]) -> None:
    fast = cortex.compile(module, examples=[TREE])
    right, want, messages = module.state_dict(), fast(TREE), []
    wrong = [
        torch.nn.Linear(3, 3),
        3,
        {"emb.weight": right["emb.weight"]},
        right | {"U.weight": torch.rand(SIZE, 3)},
        right | {"U.weight": torch.rand(SIZE, SIZE, device="meta")},
        right | {"U.weight": torch.rand(SIZE, SIZE).to_sparse()},
        right | {"U.weight": torch.rand(SIZE, SIZE, dtype=torch.complex64)},
        right | {"U.bias": torch.zeros(SIZE), "U.weight": "text"},
    ]
    for weights in wrong:
        with pytest.raises(cortex.ModelError) as caught:
            fast.update(weights)
        messages.append(f"ModelError: {caught.value}")
        assert torch.equal(fast(TREE), want)
    golden("errors/torch/update", "\n\n".join(messages))
    fast.update({**right, "unknown": torch.zeros(3), "U.weight": right["U.weight"].double()})
    assert torch.equal(fast(TREE), want)


@torch.no_grad()
def test_update_while_other_threads_call(module: Tree) -> None:
    """Every call has the weights of one update, never some of each."""
    fast = cortex.compile(module, examples=[TREE])
    other = copy.deepcopy(module)
    for parameter in other.parameters():
        parameter.mul_(-1)
    possible = {tuple(fast(TREE).tolist())}
    fast.update(other)
    possible.add(tuple(fast(TREE).tolist()))
    seen: list[tuple[float, ...]] = []
    done = False

    def call() -> None:
        while not done:
            seen.append(tuple(fast(TREE).tolist()))

    threads = [Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for weights in (module, other, module.state_dict()) * 4:
        fast.update(weights)
    done = True
    for thread in threads:
        thread.join()
    assert set(seen) <= possible


class Tied(nn.Module):
    """Two names of one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.one, self.two = nn.Embedding(5, 3), nn.Linear(3, 3), nn.Linear(3, 3)
        self.two.weight = self.one.weight

    def forward(self, node: Any) -> torch.Tensor:
        return self.two(self.words(torch.tensor(node.word))) + sum((self.one(self(c)) for c in node.children), 0.0)


def test_weights_that_are_one_tensor_no_longer() -> None:
    tree = SimpleNamespace(word=1, children=[SimpleNamespace(word=2, children=[])])
    module, other = Tied().eval(), Tied().eval()
    fast = cortex.compile(module, examples=[tree])
    fast.update(other.state_dict())
    torch.testing.assert_close(fast(tree), other(tree).detach())
    other.two.weight = nn.Parameter(torch.ones(3, 3))
    with pytest.raises(cortex.ModelError, match=r"'one\.weight' and 'two\.weight' were one tensor"):
        fast.update(other.state_dict())
    fast.update(other)
    torch.testing.assert_close(fast(tree), other(tree).detach())

"""fast.nodes(): the results of recursive routines at every node, in the form of the routine."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import cortex

SIZE = 5


def node(word: int, *children: Any) -> SimpleNamespace:
    return SimpleNamespace(word=word, children=list(children))


def tree() -> SimpleNamespace:
    return node(1, node(2), node(3, node(4), node(5, node(6))))


def below(root: Any) -> list[Any]:
    return [root, *(each for child in root.children for each in below(child))]


class Plain(nn.Module):
    """Forward is all there is: it returns a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, SIZE)
        self.inner = nn.Linear(SIZE, SIZE)

    def forward(self, node: Any) -> dict[str, torch.Tensor]:
        h = self.words(torch.tensor(node.word))
        for child in node.children:
            h = h + self.inner(self(child)["h"])
        return {"h": torch.tanh(h), "size": torch.relu(h)}


class Headed(Plain):
    """A head over a method that keeps one tensor on its node and returns another."""

    def encode(self, node: Any) -> torch.Tensor:
        node.c = self.words(torch.tensor(node.word)) + sum((self.encode(child) for child in node.children), 0.0)
        return torch.tanh(node.c)

    def forward(self, tree: Any) -> torch.Tensor:
        return self.inner(self.encode(tree))


class Silent(Plain):
    """States are on the nodes only."""

    def visit(self, node: Any) -> None:
        for child in node.children:
            self.visit(child)
        node.h = torch.tanh(self.words(torch.tensor(node.word)) + sum((child.h for child in node.children), 0.0))

    def forward(self, tree: Any) -> torch.Tensor:
        self.visit(tree)
        return self.inner(tree.h)


class UpAndDown(Plain):
    """Two routines; what is passed down differs from node to node."""

    def up(self, node: Any) -> torch.Tensor:
        node.h = torch.tanh(self.words(torch.tensor(node.word)) + sum((self.up(child) for child in node.children), 0.0))
        return node.h

    def down(self, node: Any, above: torch.Tensor) -> torch.Tensor:
        node.d = torch.tanh(node.h + self.inner(above))
        return node.d + sum((self.down(child, node.d) for child in node.children), 0.0)

    def forward(self, tree: Any) -> torch.Tensor:
        self.up(tree)
        return self.down(tree, torch.zeros(SIZE))


def compiled(module: nn.Module) -> Any:
    return cortex.compile(module.eval(), examples=[tree()])


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(3)


def test_of_a_module_that_calls_itself() -> None:
    module, root = Plain(), tree()
    fast = compiled(module)
    at = fast.nodes(root)
    assert at.nodes == below(root) and len(at) == 6
    with torch.no_grad():
        for row, each in enumerate(below(root)):
            want = module(each)
            torch.testing.assert_close(at[each], want)
            torch.testing.assert_close({name: rows[row] for name, rows in at.result.items()}, want)
        assert [one for one, _ in at] == below(root)


def test_of_a_method_under_a_head() -> None:
    module, root = Headed(), tree()
    fast = compiled(module)
    at = fast.nodes(root)
    with torch.no_grad():
        module(root)
    for row, each in enumerate(below(root)):
        torch.testing.assert_close(at.stored["c"][row], each.c)
        torch.testing.assert_close(at[each], torch.tanh(each.c))


def test_of_a_method_that_returns_nothing() -> None:
    module, root = Silent(), tree()
    at = compiled(module).nodes(root)
    assert at.result is None
    with torch.no_grad():
        module(root)
    torch.testing.assert_close(at.stored["h"], torch.stack([each.h for each in at.nodes]))


@pytest.mark.parametrize("saved", [False, True])
def test_of_two_routines(saved: bool, tmp_path: Path) -> None:
    module, root = UpAndDown(), tree()
    fast = compiled(module)
    if saved:
        fast.save(tmp_path / "m.cortex")
        fast = cortex.load(tmp_path / "m.cortex", as_torch=True)
    with torch.no_grad():
        module(root)
    for routine, stored in (("up", "h"), ("down", "d")):
        at = fast.nodes(root, routine=routine)
        torch.testing.assert_close(at.stored[stored], torch.stack([getattr(each, stored) for each in at.nodes]))
        assert {id(each) for each in at.nodes} == {id(each) for each in below(root)}
    with pytest.raises(cortex.ModelError, match=r"choose one of its recursive routines by name.*: 'up', 'down'"):
        fast.nodes(root)


def test_of_a_list() -> None:
    fast = compiled(Plain())
    first, second = fast.nodes([tree(), node(7)])
    assert (len(first), len(second)) == (6, 1)
    torch.testing.assert_close(second.result["h"], fast(node(7))["h"][None])


def test_a_node_that_no_call_was_made_on() -> None:
    with pytest.raises(KeyError, match="no call was made on this SimpleNamespace"):
        compiled(Plain()).nodes(tree())[node(1)]


def test_a_node_that_two_calls_were_made_on() -> None:
    shared = node(8)
    root = node(1, node(2, shared), node(3, shared))
    at = cortex.compile(UpAndDown().eval(), examples=[root]).nodes(root, routine="down")
    assert sum(each is shared for each in at.nodes) == 2
    with pytest.raises(KeyError, match="2 calls were made on this SimpleNamespace"):
        at[shared]


def test_schedule_of_a_module() -> None:
    fast = compiled(Plain())
    assert fast.schedule == fast.executable(tree()).schedule
    with pytest.raises(cortex.ModelError, match="has no program yet"):
        _ = cortex.compile(Plain().eval()).schedule

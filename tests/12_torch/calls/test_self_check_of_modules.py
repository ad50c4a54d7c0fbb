"""`cortex.compile` of modules with examples: wrong numbers are told, and the module and its nodes stay as they were."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

import cortex
from cortex.frontend.builder import is_tracing


@pytest.fixture(autouse=True)
def seeds() -> None:
    torch.manual_seed(5)


class Node:
    """A word, children, and a place for a state."""

    def __init__(self, word: int, *children: Any) -> None:
        self.word = word
        self.children = list(children)
        self.h: Any = None


class Slotted:
    """The same with slots."""

    __slots__ = ("children", "h", "seen", "word")

    def __init__(self, word: int, *children: Any) -> None:
        self.word = word
        self.children = list(children)
        self.h: Any = None


def tree(make: Any = Node) -> Any:
    return make(1, make(2), make(3, make(4), make(5)))


def chain(length: int) -> Any:
    node = Node(1)
    for i in range(length):
        node = Node(i % 9, node)
    return node


def defect() -> float:
    """What stands for a defect of the compiler."""
    return 1.01 if is_tracing() else 1.0


class Cell(nn.Module):
    """The layers of all modules here."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(9, 4)
        self.linear = nn.Linear(4, 4)
        self.calls = 0
        self.words: list[int] = []

    def joined(self, node: Any) -> Any:
        x = self.emb(torch.tensor(node.word))
        for child in node.children:
            x = torch.tanh(self.linear(x + self(child)))
        return x


class Right(Cell):
    def forward(self, node: Any) -> Any:
        return self.joined(node)


class AtLeaves(Cell):
    def forward(self, node: Any) -> Any:
        return self.joined(node) * (1 if node.children else defect())


class State(NamedTuple):
    h: Any
    c: Any


class InOnePart(Cell):
    def walk(self, node: Any) -> Any:
        return self.emb(torch.tensor(node.word)) + sum(self.walk(child) for child in node.children)

    def forward(self, node: Any) -> Any:
        h = self.walk(node)
        return {"scores": h, "states": [State(h, h * defect())]}


class WithAFlag(Cell):
    def walk(self, node: Any, inputs: Any) -> Any:
        return inputs[node.word] + sum(self.walk(child, inputs) for child in node.children)

    def forward(self, node: Any, inputs: Any, flag: bool = False) -> Any:
        x = self.walk(node, inputs)
        return x * defect() if flag else x


class WhileTraining(Cell):
    def forward(self, node: Any) -> Any:
        return self.joined(node) * (2 if self.training else 1)


DEFECTS: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "module_at_leaves": (lambda: AtLeaves().eval(), [chain(2000), tree()]),
    "module_in_one_part": (lambda: InOnePart().eval(), [tree()]),
    "module_with_a_flag": (lambda: WithAFlag().eval(), [(tree(), torch.ones(9, 4)), (tree(), torch.ones(9, 4), True)]),
    "module_while_training": (WhileTraining, [tree()]),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_defects_are_told(name: str, golden: Callable[[str, str], None]) -> None:
    module, examples = DEFECTS[name]
    with pytest.raises(cortex.ModelError) as caught:
        cortex.compile(module(), examples=examples)
    golden(f"errors/self_check/{name}", re.sub(r"(\.\d{4})\d+", r"\1", caught.value.message))
    cortex.compile(module(), examples=examples, check=False)


class UpAndDown(Cell):
    wrong = "up"

    def factor(self, routine: str, is_wrong: bool) -> float:
        return defect() if is_wrong and routine == self.wrong else 1.0

    def up(self, node: Any) -> Any:
        x = self.emb(torch.tensor(node.word)) * self.factor("up", node.word == 4)
        for child in node.children:
            x = torch.tanh(self.linear(x + self.up(child)))
        node.h = x
        return x

    def down(self, node: Any, above: Any) -> Any:
        h = torch.tanh(node.h + above) * self.factor("down", not node.children)
        for child in node.children:
            h = h + self.down(child, above * 0.5)
        return h

    def forward(self, top: Any) -> Any:
        return self.up(top) + self.down(top, self.linear.bias)


class Down(UpAndDown):
    wrong = "down"


class OnNodes(Cell):
    def forward(self, node: Any) -> Any:
        return self.joined(node) * (defect() if node.word == 3 else 1)


@pytest.mark.parametrize(
    ("module", "call", "line"),
    [
        (UpAndDown, "up(top.children[1].children[0])", "self.up(child)"),
        (Down, "down(top.children[0])", "self.down(child, above * 0.5)"),
        (OnNodes, "forward(node.children[1])", "self(child)"),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_the_first_call_that_differs_is_named(module: Any, call: str, line: str) -> None:
    with pytest.raises(cortex.ModelError) as caught:
        cortex.compile(module().eval(), examples=[tree()])
    assert f"The first call that differs is {call}: result[" in caught.value.message
    assert caught.value.span is not None and line in caught.value.span.text


def test_a_defect_of_a_function_that_uses_torch() -> None:
    emb = nn.Embedding(9, 4)

    def added(node: Any) -> Any:
        x = emb(torch.tensor(node.word)) * defect()
        for child in node.children:
            x = x + added(child)
        return x

    with pytest.raises(cortex.ModelError, match=r"added gives other numbers .* for examples\[0\], result"):
        cortex.compile(added, examples=[tree()])


def test_narrow_weights_are_checked_as_they_were_traced() -> None:
    cortex.compile(Right().eval(), examples=[tree()], weights_dtype="int8")
    with pytest.raises(cortex.ModelError, match="other numbers"):
        cortex.compile(AtLeaves().eval(), examples=[tree()], weights_dtype="int8")


class Remembers(Cell):
    """States on nodes, where later calls find them, and a count on the module."""

    def forward(self, node: Any) -> Any:
        if node.h is not None:
            return node.h
        self.calls += 1
        self.words.append(node.word)
        node.h = self.joined(node)
        return node.h


@pytest.mark.parametrize("make", [Node, Slotted])
def test_nothing_is_left_behind(make: Any) -> None:
    module, example = Remembers().eval(), tree(make)
    example.children[0].children.append(make(6))
    fast = cortex.compile(module, examples=[example])
    assert example.h is None and all(child.h is None for child in example.children)
    assert not hasattr(example, "seen")
    assert module.calls == 0 and module.words == []
    with torch.no_grad():
        module.emb.weight += 1
        fast.update(module.state_dict())
        torch.testing.assert_close(fast(example), module(example))


def test_a_memo_around_a_function_stays_empty() -> None:
    emb, memo = nn.Embedding(9, 4), {}

    def added(node: Any) -> Any:
        if id(node) in memo:
            return memo[id(node)]
        memo[id(node)] = emb(torch.tensor(node.word)) + sum(added(child) for child in node.children)
        return memo[id(node)]

    cortex.compile(added, examples=[tree()])
    assert memo == {}


class Bracket(list[Any]):
    """A list that iterates over something else."""

    def __init__(self, word: int, *children: Any) -> None:
        super().__init__(children)
        self.word = word
        self.children = children

    def __iter__(self) -> Any:
        return iter(())


def test_nodes_that_are_collections_keep_what_they_hold() -> None:
    example = tree(Bracket)
    cortex.compile(Remembering().eval(), examples=[example])
    assert len(example) == 2 and "last" not in vars(example)


class Remembering(Cell):
    def forward(self, node: Any) -> Any:
        node.last = node.word
        return self.joined(node)


def test_what_nodes_hold_is_restored() -> None:
    class Writes(Cell):
        def forward(self, node: Any) -> Any:
            node.visits = 1
            return self.joined(node)

    example = tree()
    example.children[0].data = {"x": [torch.ones(2)], "y": np.zeros(2)}
    before = {name: list(vars(node)) for name, node in enumerate((example, *example.children))}
    cortex.compile(Writes().eval(), examples=[example])
    assert before == {name: list(vars(node)) for name, node in enumerate((example, *example.children))}


def test_the_state_of_random_numbers_is_restored() -> None:
    module = Right().eval()
    torch.manual_seed(3)
    want = torch.rand(1)
    torch.manual_seed(3)
    cortex.compile(module, examples=[tree()])
    assert torch.rand(1) == want


def test_a_module_in_training_mode_stays_in_it() -> None:
    module = Right()
    cortex.compile(module, examples=[tree()])
    assert all(part.training for part in module.modules())


def test_depth_and_sharing_do_not_matter() -> None:
    shared = Node(1)
    for i in range(60):
        shared = Node(i % 9, shared, shared)  # 2**60 calls of the module itself
    cortex.compile(Right().eval(), examples=[shared])
    cortex.compile(Right().eval(), examples=[chain(3000)])


def test_a_module_that_raises_is_told(golden: Callable[[str, str], None]) -> None:
    class Raises(Cell):
        def forward(self, node: Any) -> Any:
            if not is_tracing() and node.word == 3:
                raise KeyError("three")
            return self.joined(node)

    with pytest.raises(cortex.ModelError) as caught:
        cortex.compile(Raises().eval(), examples=[tree()])
    golden("errors/self_check/module_raises", caught.value.message)


def test_rounding_is_no_difference() -> None:
    class Grows(Cell):
        def forward(self, node: Any) -> Any:
            x = self.emb(torch.tensor(node.word))
            for child in node.children:
                x = 30 * self.linear(x) - self(child) * 1.7
            return x

    class Cancels(Cell):
        def forward(self, node: Any) -> Any:
            x = (self.emb(torch.tensor(node.word)) + 1e5) - 1e5
            for child in node.children:
                x = x + torch.tanh(self(child) * 1e4)
            return x

    for module in (Grows().eval(), Cancels().eval()):
        cortex.compile(module, examples=[chain(30), tree()])


@pytest.mark.parametrize("special", [float("nan"), float("inf")])
def test_special_values_equal_themselves(special: float) -> None:
    module = Right().eval()
    with torch.no_grad():
        module.emb.weight[2, 0] = special
    cortex.compile(module, examples=[Node(2), tree()])


# Gradients.


def test_lost_gradients_are_told_once(golden: Callable[[str, str], None]) -> None:
    fast, head = cortex.compile(Right().eval(), examples=[tree()]), nn.Linear(4, 1)
    with pytest.warns(UserWarning, match="no gradients") as caught:
        head(fast(tree())).backward()
    golden("errors/self_check/no_gradients", str(caught[0].message))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast(tree())


@pytest.mark.parametrize("case", ["no_grad", "inference_mode", "eval", "frozen"])
def test_inference_is_not_warned_of(case: str) -> None:
    module = Right().eval()
    fast = cortex.compile(module.requires_grad_(case != "frozen"), examples=[tree()])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if case == "no_grad":
            with torch.no_grad():
                fast(tree())
        elif case == "inference_mode":
            with torch.inference_mode():
                fast(tree())
        else:
            (fast.eval() if case == "eval" else fast)(tree())

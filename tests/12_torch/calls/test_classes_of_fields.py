"""Questions about what a field is (`isinstance`, `hasattr`, `is True`), and those that torch's C code asks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import asking
import numpy as np
import pytest
import torch
from torch import nn

import cortex


class Node:
    """A value and children."""

    def __init__(self, x: Any, *children: Any) -> None:
        self.x, self.children = x, list(children)

    def is_tensor(self) -> bool:
        return isinstance(self.x, torch.Tensor)


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))

    def forward(self, node):
        return self.own(node) + sum(self(child) for child in node.children)


class Asking(Base):
    def own(self, node):
        return self.p * 2 if self.ask(node) else self.p


@functools.singledispatch
def dispatched(x: Any) -> bool:
    return False


@dispatched.register
def _(x: torch.Tensor) -> bool:
    return True


class IsInstance(Asking):
    def ask(self, node):
        return isinstance(node.x, int | torch.Tensor)


class OfElements(Asking):
    def ask(self, node):
        return isinstance(node.x, torch.FloatTensor)


class PassedOn(Asking):
    def ask(self, node):
        return any(map(isinstance, [node.x], [torch.Tensor]))


class InLambda(Asking):
    def ask(self, node):
        return (lambda x: isinstance(x, torch.Tensor))(node.x)


class OfTheNode(Asking):
    def ask(self, node):
        return node.is_tensor()


class Elsewhere(Asking):
    def ask(self, node):
        return asking.is_tensor(node.x)


class Matched(Asking):
    def ask(self, node):
        match node.x:
            case torch.Tensor():
                return True
        return False


class Dispatched(Asking):
    def ask(self, node):
        return dispatched(node.x)


class Attribute(Asking):
    def ask(self, node):
        return node.x.__class__ is torch.Tensor


class IsTensor(Asking):
    def ask(self, node):
        return torch.is_tensor(node.x)


class IsScalar(Asking):
    def ask(self, node):
        return np.isscalar(node.x)


class IsCallable(Asking):
    def ask(self, node):
        return callable(node.x) or callable(node)


class HasLength(Asking):
    def ask(self, node):
        return hasattr(node.x, "__len__") or hasattr(node, "__len__")


class HasShape(Asking):
    def ask(self, node):
        return hasattr(node.x, "shape")


class IsTrue(Asking):
    def ask(self, node):
        return node.x is True


class IsNotFalse(Asking):
    def ask(self, node):
        return node.x is not False


class TrueIs(Asking):
    def ask(self, node):
        return is_true(node.x)


def is_true(x):
    return True is x


VALUES = [torch.tensor([1.0, -1.0, 0.5]), torch.ones(3, dtype=torch.int64), 1, 0.5, "a", [1.0, 2.0]]
TRUTHS = [1, 0, True, False, np.bool_(True)]
OF_VALUES = [
    IsInstance, OfElements, PassedOn, InLambda, OfTheNode, Elsewhere, Matched, Dispatched, Attribute, IsTensor,
    IsScalar, IsCallable, HasLength, HasShape,
]  # fmt: skip
CASES = [*((kind, VALUES) for kind in OF_VALUES), *((kind, TRUTHS) for kind in (IsTrue, IsNotFalse, TrueIs))]


@pytest.mark.parametrize(("kind", "values"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_a_question_about_a_field_has_the_answer_of_each_node(kind: type[nn.Module], values: list[Any]) -> None:
    module = kind().eval()
    for example in (values[0], values[2]):
        fast = cortex.compile(module, examples=[Node(example)], check=False)
        for value in values:
            with torch.no_grad():
                torch.testing.assert_close(fast(Node(value)), module(Node(value)), msg=repr((example, value)))


class Where(Base):
    def own(self, node):
        return torch.where(node.x > 0, node.x, 0)


class Filled(Base):
    def own(self, node):
        return self.p + torch.full((3,), node.x[0])


class WhereElsewhere(Base):
    def own(self, node):
        return asking.positive(node.x)


class Clamped(Base):
    def own(self, node):
        return torch.clamp(self.p, min=node.x) + (self.p - node.x)


@pytest.mark.parametrize("kind", [Where, Filled, WhereElsewhere, Clamped])
def test_torch_does_not_take_what_stands_for_a_tensor_for_one(kind: type[nn.Module]) -> None:
    module = kind().eval()
    tree = Node(torch.tensor([1.0, -2.0, 0.0]), Node(torch.tensor([-1.0, 2.0, 0.5])))
    with torch.no_grad():
        torch.testing.assert_close(cortex.compile(module, examples=[tree])(tree), module(tree))


class PassedOnElsewhere(Asking):
    def ask(self, node):
        return asking.passed_on(node.x)


def test_a_question_that_cannot_be_seen_is_refused(golden: Callable[[str, str], None]) -> None:
    with pytest.raises(cortex.ModelError) as raised:
        cortex.compile(PassedOnElsewhere().eval(), examples=[Node(torch.ones(3))], check=False)
    golden("errors/torch_calls/class_asked_elsewhere", str(raised.value).partition("\n")[0])

"""Objects that forward makes anew and passes along: they are told apart by what they hold."""

from __future__ import annotations

import functools
import itertools
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import cortex


@dataclass
class Settings:
    scale: float
    names: tuple[str, ...] = ("a",)


class Held:
    def __init__(self, scale: float) -> None:
        self.scale = scale
        self.inner = {"by": [1.0, 2.0]}


Pair = namedtuple("Pair", "scale other")


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor([0.5, -1.0, 2.0]))
        self.same, self.equal = Settings(2.0), Settings(2.0)

    def act(self, x):
        return torch.tanh(x)

    def made(self) -> Any:
        raise NotImplementedError

    def own(self, settings):
        return self.w * settings.scale

    def forward(self, node):
        return self.go(node, self.made())

    def go(self, node, settings):
        return self.own(settings) + sum((self.go(child, settings) for child in node.children), torch.zeros(3))


class OfDataclass(Base):
    def made(self):
        return Settings(2.0)


class OfClass(Base):
    def made(self):
        return Held(3.0)

    def own(self, settings):
        return self.w * settings.scale * settings.inner["by"][1]


class OfNamespace(Base):
    def made(self):
        return SimpleNamespace(scale=4.0)


class OfTuple(Base):
    def made(self):
        return Pair(4.0, None)


class OfClosure(Base):
    def made(self):
        scale = 3.0
        return lambda x: x * scale

    def own(self, settings):
        return settings(self.w)


class OfMethod(OfClosure):
    def made(self):
        return self.act


class OfPartial(OfClosure):
    def made(self):
        return functools.partial(torch.mul, other=2.0)


class AnewForEachCall(OfDataclass):
    """Each depth has settings of its own."""

    def go(self, node, settings):
        below = [self.go(child, Settings(settings.scale * 0.5)) for child in node.children]
        return self.own(settings) + sum(below, torch.zeros(3))


class ByIdentity(Base):
    """Equal objects that the module holds are two."""

    def own(self, settings):
        return self.w * (1.0 if settings is self.same else 7.0)

    def forward(self, node):
        return self.go(node, self.same) + self.go(node, self.equal)


def tree() -> SimpleNamespace:
    leaf = SimpleNamespace(children=[])
    return SimpleNamespace(children=[leaf, SimpleNamespace(children=[leaf, leaf])])


@pytest.mark.parametrize(
    "made",
    [OfDataclass, OfClass, OfNamespace, OfTuple, OfClosure, OfMethod, OfPartial, AnewForEachCall, ByIdentity],
)
def test_compared_by_what_they_hold(made: type[Base]) -> None:
    module = made().eval()
    compiled = cortex.compile(module, examples=[tree()])
    with torch.no_grad():
        torch.testing.assert_close(compiled(tree()), module(tree()))


class Changed(OfDataclass):
    def own(self, settings):
        settings.scale += 1
        return self.w * settings.scale


class OfTensor(Base):
    def made(self):
        return Held(self.w * 2)


class OfIterator(Base):
    def made(self):
        return itertools.count()

    def own(self, settings):
        return self.w * next(settings)


@pytest.mark.parametrize(("name", "made"), [("changed", Changed), ("tensor", OfTensor), ("iterator", OfIterator)])
def test_refused(name: str, made: type[Base], golden: Callable[[str, str], None]) -> None:
    with pytest.raises(cortex.ModelError) as raised:
        cortex.compile(made().eval(), examples=[tree()])
    golden(f"errors/torch_calls/object_passed_{name}", f"{type(raised.value).__name__}: {raised.value}")

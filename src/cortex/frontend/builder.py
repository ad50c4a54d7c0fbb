"""The graph of one kind while it is being traced: values, and the lets that name them."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, assert_never

from cortex.frontend.facts import Facts
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.signals import OneByOne
from cortex.frontend.spans import DISPATCHERS, fail, is_library, user_span
from cortex.ir.source import Span
from cortex.ra.ir import Collect, DType, Each, Field, Hop, Item, Let, Op, OverChildren, Param, Slot, State, TensorType
from cortex.ra.shapes import operand_names

OTHER_NODE = (
    "this tensor was computed for another node: each call of the model computes its own tensors. Do not keep tensors "
    "in variables that outlive the call; return them as states."
)


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """One let of the kind that is being traced: per node, or (`over`) one per child in a list relation."""

    builder: Builder
    let: Let

    @property
    def name(self) -> str:
        """The name of the let."""
        return self.let.name

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, for one node or one edge."""
        return self.let.type.shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.let.type.dtype

    @property
    def over(self) -> str | None:
        """The list relation a per-edge value belongs to."""
        return self.let.over

    def text(self) -> str:
        """For messages: what the user knows this value as, with its shape."""
        match self.let.op:
            case Param(name) if not name.startswith("const_"):
                return f"weight '{name}' of shape {self.shape}"
            case Field(name):
                return f"field '{name}' of shape {self.shape}"
            case State(name):
                return f"state '{name}' of shape {self.shape}"
            case _:
                return f"a tensor of shape {self.shape}"


@dataclass(eq=False)
class Builder:
    """Collects the lets of one kind. Equal operations share one let."""

    knowledge: Knowledge
    facts: Facts
    lets: list[Let] = field(default_factory=list)
    collects: tuple[Collect, ...] = ()
    rows: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Results that have a row for each item of lists, and the lets of these."""
    overwritten: dict[int, Any] = field(default_factory=dict)
    """Arrays of the code to which it has added a tensor in place, by identity."""
    iterating: Counter[str] = field(default_factory=Counter)
    """How many iterations are running over all children of each list relation at once."""
    shapes_asked: dict[str, Span | None] = field(default_factory=dict)
    """The lets whose shapes the model's code has asked for, and where."""
    _shared: dict[tuple[Op, str | None], Value] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)
    _numbers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.knowledge.clock.tick()

    def emit(
        self, op: Op, shape: tuple[int, ...], *operands: Value, dtype: DType = "f32", over: str | None = None
    ) -> Value:
        """Add a let; it is per edge when an operand is, or when `over` says so."""
        self.knowledge.clock.tick()
        for x in operands:
            if x.builder is not self:
                raise fail(OTHER_NODE)
            if x.over is not None and over is not None and x.over != over:
                raise OneByOne
            over = x.over or over
        if isinstance(op, OverChildren):
            over = None
        key = (op, over)
        if key not in self._shared:
            let = Let(self._fresh(op), op, TensorType(shape, dtype), over, user_span())
            self.lets.append(let)
            self._shared[key] = Value(self, let)
            if self.knowledge.guess is not None and not isinstance(op, State):
                self.knowledge.guess.steps += 1
        return self._shared[key]

    def _fresh(self, op: Op) -> str:
        stem = re.sub(r"\W+", "_", stem_of(op))
        number = self._numbers.get(stem, 0)
        name = ""
        while not name or name in self._names:
            name = stem if number == 0 else f"{stem}_{number}" if stem else f"t{number}"
            number += 1
        self._numbers[stem] = number
        self._names.add(name)
        return name

    def reachable(self, results: tuple[str, ...]) -> tuple[Let, ...]:
        """The lets that `results` depend on, in order."""
        needed = set(results)
        kept: list[Let] = []
        for let in reversed(self.lets):
            if let.name in needed:
                kept.append(let)
                needed.update(operand_names(let.op))
        return tuple(reversed(kept))


def stem_of(op: Op) -> str:
    """A readable beginning of a let's name; empty for operations without one of their own."""
    match op:
        case Param(name):
            return name
        case Field(name, path) | State(name, path):
            return "_".join([*(hop_text(hop) for hop in path), name])
        case _:
            return ""


def hop_text(hop: Hop) -> str:
    """A hop as part of a name."""
    match hop:
        case Slot(name) | Each(name):
            return name
        case Item(name, index):
            return f"{name}_{index}"
        case _:
            assert_never(hop)


_current: ContextVar[Builder | None] = ContextVar("cortex_builder", default=None)


def is_tracing() -> bool:
    """Is a kind being traced in this context?"""
    return _current.get() is not None


def builder() -> Builder:
    """The builder of the kind that is being traced."""
    current = _current.get()
    if current is None:
        raise fail("tensor functions of Cortex work only inside a @cortex.model function that is being compiled.")
    return current


NODE_LISTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch", "node_lists.py")
"""Methods of lists of nodes run those of lists for the user."""


def asked_by_user() -> bool:
    """Was the special method that calls this function invoked by the user's code, rather than by some library?"""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename in (*DISPATCHERS, NODE_LISTS):
        frame = frame.f_back
    b = _current.get()
    if frame is None or b is None:
        return False
    file = frame.f_code.co_filename
    return file == b.knowledge.model.function.__code__.co_filename or not is_library(file)


@contextmanager
def building(b: Builder) -> Iterator[None]:
    """Trace into `b`."""
    token = _current.set(b)
    try:
        yield
    finally:
        _current.reset(token)

"""Random straight-line tensor programs: the body of one branch of a random model.

A program is a list of instructions over named values, each of which prints as the Python a user would write. The
writer knows the shape of every value and a bound on its usual size, and squashes what grows, so that float32 results
can be compared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

Shape = tuple[int, ...]
Reduction = Literal["sum", "mean", "max", "min", "softmax"]
LARGE = 4.0
MOST_ELEMENTS = 1200


@dataclass(frozen=True)
class Let:
    """`names = text`; several names take the parts of a split."""

    names: tuple[str, ...]
    text: str
    shapes: tuple[Shape, ...]

    def lines(self, over_none: bool) -> list[str]:
        """The statement."""
        del over_none
        return [f"{', '.join(self.names)} = {self.text}"]


@dataclass(frozen=True)
class Over:
    """A reduction over `node.children` of what `body` computes per child `k`; softmax weighs it by `scores`."""

    name: str
    fn: Reduction
    body: tuple[Let, ...]
    result: str
    shape: Shape
    scores: tuple[Let, ...] = ()
    score: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """What it defines."""
        return (self.name,)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of what it defines."""
        return (self.shape,)

    def lines(self, over_none: bool) -> list[str]:
        """The statements; with `over_none`, a reduction is told what it gives where there are no children."""
        none = f", none={self.shape}" if over_none else ""
        if self.fn != "softmax":
            per_child, value = _per_child(f"f_{self.name}", self.body, self.result)
            return [*per_child, f"{self.name} = cortex.{self.fn}(({value} for k in node.children){none})"]
        per_score, score = _per_child(f"s_{self.name}", self.scores, self.score)
        per_child, value = _per_child(f"f_{self.name}", self.body, self.result)
        return [
            *per_score,
            *per_child,
            f"a_{self.name} = cortex.softmax({score} for k in node.children)",
            f"{self.name} = cortex.sum((a * {value} for a, k in zip(a_{self.name}, node.children)){none})",
        ]


Instruction = Let | Over


def _per_child(function: str, body: tuple[Let, ...], result: str) -> tuple[list[str], str]:
    """The definition of a function of a child, and its call; nothing but an expression where that is enough."""
    if not body:
        return [], result
    lines = [f"def {function}(k):", *(f"    {line}" for let in body for line in let.lines(False))]
    return [*lines, f"    return {result}"], f"{function}(k)"


@dataclass(frozen=True)
class Program:
    """Instructions, and the names of the values that are the node's states."""

    body: tuple[Instruction, ...]
    results: tuple[str, ...]

    def without_unused(self) -> Program:
        """The program without instructions that no result needs."""
        needed = {name for text in self.results for name in _names(text)}
        kept: list[Instruction] = []
        for each in reversed(self.body):
            if needed.isdisjoint(each.names):
                continue
            kept.append(each)
            needed |= _names(each.text) if isinstance(each, Let) else _names("\n".join(each.lines(False)))
        return Program(tuple(reversed(kept)), self.results)


def _names(text: str) -> set[str]:
    return set(re.findall(r"\bt\d+\b", text))


@dataclass(frozen=True)
class Weight:
    """A parameter: `scale` is the standard deviation of its elements."""

    name: str
    shape: Shape
    scale: float


@dataclass
class Weights:
    """The parameters that the programs of a model have used so far; `prefix` is how the model writes them."""

    rng: Random
    prefix: str
    made: list[Weight] = field(default_factory=list)

    def draw(self, shape: Shape, fan_in: int = 1, reuse: float = 0.25) -> str:
        """The text of a parameter of this shape, an old one with probability `reuse`."""
        scale = 1.0 / math.sqrt(max(fan_in, 1))
        old = [w for w in self.made if w.shape == shape and w.scale == scale]
        if old and self.rng.random() < reuse:
            return self.prefix + self.rng.choice(old).name
        self.made.append(Weight(f"{'bvWVX'[len(shape)]}{len(self.made)}", shape, scale))
        return self.prefix + self.made[-1].name


@dataclass(frozen=True)
class Value:
    """An operand: its text, shape, and a rough bound on its elements."""

    text: str
    shape: Shape
    size: float = 1.0


@dataclass
class Writer:
    """Writes a program: `pool` holds the operands to choose from, the latest last."""

    rng: Random
    weights: Weights
    dims: tuple[int, ...]
    pool: list[Value]
    count: list[int]
    lets: list[Instruction] = field(default_factory=list)

    def let(self, text: str, shape: Shape, size: float) -> Value:
        """Name a new value; one that may be large is squashed."""
        if size > LARGE:
            text = f"cortex.tanh({text})" if self.rng.random() < 0.6 else f"{round(2 / size, 3)} * ({text})"
            size = 2.0
        return self.several((text,), (shape,), size)[0]

    def several(self, text: tuple[str], shapes: Sequence[Shape], size: float) -> list[Value]:
        """Name the parts that an expression gives."""
        names = tuple(self.fresh() for _ in shapes)
        self.lets.append(Let(names, text[0], tuple(shapes)))
        values = [Value(name, shape, size) for name, shape in zip(names, shapes, strict=True)]
        self.pool += values
        return values

    def fresh(self) -> str:
        """A name no other value of the model has."""
        self.count[0] += 1
        return f"t{self.count[0]}"

    def pick(self, *ranks: int) -> Value | None:
        """An operand of one of the ranks, later ones more often; None where there is none."""
        fitting = [v for v in self.pool if len(v.shape) in ranks] if ranks else self.pool
        if not fitting:
            return None
        return fitting[max(self.rng.randrange(len(fitting)), self.rng.randrange(len(fitting)))]

    def pick_shape(self, shape: Shape) -> Value | None:
        """An operand of this shape."""
        fitting = [v for v in self.pool if v.shape == shape]
        return self.rng.choice(fitting) if fitting else None

    def dim(self) -> int:
        """A size."""
        return self.rng.choice(self.dims)

    def matrix(self) -> tuple[int, int]:
        """The sizes of a matrix that is not too large."""
        a, b = self.dim(), self.dim()
        return (a, b) if a * b <= MOST_ELEMENTS else (min(a, 8), min(b, 8))

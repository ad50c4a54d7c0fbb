"""The limit of any model, by the formula of `limit`, from what is counted in its program.

Nothing here knows a model by name. The program is the recursive model with only the steps that never cost anything:
leaves specialized, what depends on no node computed when weights are loaded; so all work is done, without tables and
without sharing. Counted are its products (contractions with a sum), by kind of node:

    multiply-adds    the product of the extents of all letters, per node, or per edge where a let is per edge
    weights          elements of the parameters that the products read, rows of tables chosen by the request excepted

Products that read no child's state form one group ahead of the recursion, as in `limit`; all others are in the group of
their node. Groups of one height run at the same time on the same weights if they can, so they count as one: a
weight that two kinds read is read once. A program that runs nodes of different heights together, where kinds alternate,
reads weights less often than that, and may go below.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from cortex.bench.limit import BYTES, Machine, read_ns
from cortex.cost.choose import ALWAYS
from cortex.ir.step import apply
from cortex.lower.linear_form import LinearForm
from cortex.lower.stages import before_recursion
from cortex.ra import ir as ra
from cortex.ra.shapes import operand_names
from cortex.ra.simplify import simplify

Box = tuple[str, tuple[tuple[int, int], ...]]
"""A part of a parameter: its name, and where the part starts and stops along each axis; () is all of it."""


@dataclass(frozen=True)
class Product:
    """One contraction of a kind: multiply-adds per node or edge, and the weights it reads with their elements."""

    macs: int
    weights: tuple[tuple[Box, int], ...]
    over: str | None
    is_ahead: bool


def counted_model(traced: ra.Model) -> ra.Model:
    """The model whose work is counted, and whose linear forms are."""
    return apply(simplify(traced), ALWAYS)


def limit_of_program_us(m: ra.Model, form: LinearForm, machine: Machine, threads: int) -> float:
    """Lower bound, in microseconds, for a request in the linear form of `m` (see `counted_model`)."""
    kinds = [tuple(products(kind)) for kind in m.kinds]
    ahead = _Group()
    levels: dict[int, _Group] = {}
    heights = _heights(m, form)
    start, length, kind_of = (form.arrays[name] for name in ("group_start", "group_len", "group_kind"))
    for first, n, number in zip(start.tolist(), length.tolist(), kind_of.tolist(), strict=True):
        level = levels.setdefault(int(heights[first]), _Group())
        for product in kinds[number]:
            (ahead if product.is_ahead else level).add(product, _times(product, form, first, n))
    return sum(group.ns(machine, threads) for group in (ahead, *levels.values())) / 1e3


def work_in_recursion(m: ra.Model, form: LinearForm) -> tuple[int, int]:
    """Multiply-adds that wait for children, and the nodes that have children."""
    macs = 0
    start, length, kind_of = (form.arrays[name] for name in ("group_start", "group_len", "group_kind"))
    for first, n, number in zip(start.tolist(), length.tolist(), kind_of.tolist(), strict=True):
        waiting = (p for p in products(m.kinds[number]) if not p.is_ahead)
        macs += sum(p.macs * _times(p, form, first, n) for p in waiting)
    return macs, int((_heights(m, form) > 0).sum())


def products(kind: ra.Kind) -> Iterator[Product]:
    """The contractions of a kind that sum over something."""
    lets = {let.name: let for let in kind.lets}
    ahead = before_recursion(kind)
    for let in kind.lets:
        if not isinstance(let.op, ra.Contract):
            continue
        operands, result = let.op.spec.split("->")
        if not set(operands) - set(result) - {","}:
            continue
        extents: dict[str, int] = {}
        weights: list[tuple[Box, int]] = []
        for letters, name in zip(operands.split(","), (let.op.x, let.op.y), strict=True):
            extents |= dict(zip(letters, lets[name].type.shape, strict=True))
            weights += _weights(lets, name)
        yield Product(prod(extents.values()), tuple(weights), let.over, let.name in ahead)


def _weights(lets: dict[str, ra.Let], name: str) -> Iterator[tuple[Box, int]]:
    """The parts of parameters that a value is, or is made of by moving data alone."""
    let = lets[name]
    match let.op:
        case ra.Param(parameter):
            yield (parameter, ()), prod(let.type.shape)
        case ra.Slice(x, ranges) if isinstance(source := lets[x].op, ra.Param):
            part = tuple((start, stop) for start, stop, _ in ranges)
            yield (source.name, part), prod(let.type.shape)
        case ra.Reshape() | ra.Transpose() | ra.Concat() | ra.Slice() | ra.Broadcast():
            for operand in operand_names(let.op):
                yield from _weights(lets, operand)
        case _:
            pass


class _Group:
    """What runs together: multiply-adds, and every part of the weights once."""

    def __init__(self) -> None:
        self.macs = 0
        self.weights: dict[Box, int] = {}

    def add(self, product: Product, times: int) -> None:
        if times:
            self.macs += product.macs * times
            self.weights.update(product.weights)

    def ns(self, machine: Machine, threads: int) -> float:
        compute = 2 * self.macs / (threads * machine.peak)
        whole = {name for name, part in self.weights if not part}
        elements = sum(n for (name, part), n in self.weights.items() if not part or name not in whole)
        return max(compute, read_ns(BYTES * elements / threads, machine))


def _times(product: Product, form: LinearForm, first: int, n: int) -> int:
    """How often a product runs for the nodes first .. first + n - 1."""
    if product.over is None:
        return n
    ptr = form.arrays[f"{product.over}_ptr"]
    return int(ptr[first + n] - ptr[first])


def _heights(m: ra.Model, form: LinearForm) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The height of every node: 0 without children. Children have greater ids than their parents."""
    heights = np.zeros(form.sizes["num_nodes"], np.int64)
    slots = [form.arrays[f"child_{slot}"] for slot in m.slots]
    lists = [(form.arrays[f"{r}_ptr"], form.arrays[f"{r}_child"]) for r in m.lists]
    for node in range(len(heights) - 1, -1, -1):
        below = [int(child[node]) for child in slots if child[node] >= 0]
        for ptr, child in lists:
            below += child[ptr[node] : ptr[node + 1]].tolist()
        heights[node] = 1 + max((int(heights[b]) for b in below), default=-1)
    return heights

"""Sum products of integers as integers, and multiply the sums with their scales."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cortex.ilir.ir import Accumulate, Case, For, Func, If, Let, Scope, Stmt, Store, Switch
from cortex.ir.node import Node, rewrite, walk
from cortex.ir.scalar import Binary, Expr, Float, Load, Var
from cortex.ir.simplify import free_vars, substitute
from cortex.schedule.locate import Block

_PLACE = ("place_0", "place_1", "place_2", "place_3")


def sum_integers(f: Func, scales: Mapping[str, str]) -> tuple[Func, set[str]]:
    """Take scales out of the sums in registers whose weights and inputs are integers; gives those weights too.

    before:  acc[r, l] = 0; for k: acc[r, l] += packed[k, l] * scale[l] * (x[n + r, k] * x_scale[n + r]); t = acc[r, l]
    after:   acc[r, l] = 0; for k: acc[r, l] += packed[k, l] * x[n + r, k]                             (acc of i32)
             t = acc[r, l] * (scale[l] * x_scale[n + r])

    `scales` are the buffers of scales of packed integers. What is summed in any other way stays as it is.
    """
    sums = _Sums.of(f, scales)
    while sums.accumulators:
        try:
            body = sums.block(f.body, {})
        except _Unknown as unknown:
            sums = sums.without(unknown.accumulator)
            continue
        types = {b.name: replace(b, dtype="i32") if b.name in sums.accumulators else b for b in f.buffers}
        return replace(f, body=body, buffers=tuple(types.values())), sums.weights()
    return f, set()


class _Unknown(Exception):
    """An accumulator is read where it is not known which scales its sum is to be multiplied with."""

    def __init__(self, accumulator: str) -> None:
        self.accumulator = accumulator


@dataclass(frozen=True)
class _Product:
    """The value of a sum of integers: a weight times an input, and the scales of both."""

    weight: Load
    input: Load
    scale: Expr


@dataclass(frozen=True)
class _Sums:
    """The accumulators that may sum integers: for each, the packed weights that are added to it."""

    products: Mapping[Accumulate, _Product]
    accumulators: Mapping[str, frozenset[str]]

    @staticmethod
    def of(f: Func, scales: Mapping[str, str]) -> _Sums:
        registers = {b.name for b in f.buffers if b.scope is Scope.REGISTER and len(b.shape) <= len(_PLACE)}
        inputs = {b.name for b in f.buffers if b.scope is Scope.SCRATCH and b.dtype == "i16"}
        products: dict[Accumulate, _Product] = {}
        added: dict[str, set[str]] = {}
        others: set[str] = set()  # accumulators of something else, and weights that something else reads
        for n in (n for s in f.body for n in walk(s)):
            match n:
                case Accumulate(buffer, index, fn, value) if buffer in registers:
                    product = _product(value, scales, inputs)
                    if product is None or fn != "add" or not all(isinstance(i, Var) for i in index):
                        others.add(buffer)
                        others |= {x.buffer for x in walk(value) if isinstance(x, Load) and x.buffer in scales}
                    else:
                        products[n] = product
                        added.setdefault(buffer, set()).add(product.weight.buffer)
                case Store(buffer, _, value) if buffer in registers and value != Float(0.0):
                    others.add(buffer)
                case Accumulate(value=value) | Store(value=value) | Let(value=value):
                    others |= {x.buffer for x in walk(value) if isinstance(x, Load) and x.buffer in scales}
                case _:
                    pass
        return _closed(products, {name: frozenset(weights) for name, weights in added.items()}, others)

    def without(self, accumulator: str) -> _Sums:
        """The same but for one accumulator, and all that share weights with it."""
        return _closed(self.products, self.accumulators, {accumulator})

    def weights(self) -> set[str]:
        """The weights that are summed as integers."""
        return {name for weights in self.accumulators.values() for name in weights}

    def block(self, body: Block, known: Mapping[str, Expr]) -> Block:
        """Statements of a list, in order: `known` are the scales of the accumulators, by the place in them."""
        scales = dict(known)
        new: list[Stmt] = []
        for s in body:
            added = {n.buffer for n in walk(s) if isinstance(n, Accumulate)} & set(self.accumulators)
            read = {n.buffer for n in walk(s) if isinstance(n, Load)} & set(self.accumulators)
            for started in {n.buffer for n in walk(s) if isinstance(n, Store)} & set(scales):
                del scales[started]
            if added and not read:
                for name, scale in self.scales_of(s).items():
                    if scales.setdefault(name, scale) != scale:  # two products of different scales in one sum
                        raise _Unknown(name)
                new.append(rewrite(s, self.unscaled))
            elif not added:
                new.append(_scaled(s, scales, read))
            else:
                new.append(self.inside(s, scales))
        return tuple(new)

    def inside(self, s: Stmt, scales: Mapping[str, Expr]) -> Stmt:
        match s:
            case For(body=body):
                return replace(s, body=self.block(body, scales))
            case If(then=then, orelse=orelse):
                return replace(s, then=self.block(then, scales), orelse=self.block(orelse, scales))
            case Switch(cases=cases):
                return replace(s, cases=tuple(Case(c.value, self.block(c.body, scales)) for c in cases))
            case _:
                raise _Unknown(next(n.buffer for n in walk(s) if isinstance(n, Accumulate)))

    def scales_of(self, s: Stmt) -> dict[str, Expr]:
        """The scales of the sums that a statement adds to."""
        found: dict[str, Expr] = {}
        bound = {n.var for n in walk(s) if isinstance(n, For)}
        for a in (n for n in walk(s) if isinstance(n, Accumulate) and n.buffer in self.accumulators):
            places: dict[str, Expr] = {
                i.name: Var(place) for i, place in zip(a.index, _PLACE, strict=False) if isinstance(i, Var)
            }
            scale = substitute(self.products[a].scale, places)
            if found.setdefault(a.buffer, scale) != scale or free_vars(scale) & bound:
                raise _Unknown(a.buffer)
        return found

    def unscaled(self, n: Node) -> Node:
        if isinstance(n, Accumulate) and n.buffer in self.accumulators:
            product = self.products[n]
            return replace(n, value=Binary("mul", product.weight, product.input))
        return n


def _closed(products: Mapping[Accumulate, _Product], added: Mapping[str, frozenset[str]], others: set[str]) -> _Sums:
    """Without accumulators and weights in `others`, and what they are used with: a weight is stored in one way."""
    kept = dict(added)
    left = set(others)
    while gone := [name for name, weights in kept.items() if name in left or weights & left]:
        for name in gone:
            left |= kept.pop(name)
    return _Sums(products, kept)


def _product(value: Expr, scales: Mapping[str, str], inputs: set[str]) -> _Product | None:
    match value:
        case Binary("mul", Binary("mul", Load() as weight, Load() as one), Binary("mul", Load() as x, Load() as other)):
            if scales.get(weight.buffer) == one.buffer and x.buffer in inputs:
                return _Product(weight, x, Binary("mul", one, other))
    return None


def _scaled(s: Stmt, scales: Mapping[str, Expr], read: set[str]) -> Stmt:
    """A statement that reads sums, with their scales."""
    for name in read - set(scales):
        raise _Unknown(name)

    def visit(n: Node) -> Node:
        if not isinstance(n, Load) or n.buffer not in read:
            return n
        places = dict(zip(_PLACE, n.index, strict=False))
        return Binary("mul", n, substitute(scales[n.buffer], places))

    new: Stmt = rewrite(s, visit)
    return new

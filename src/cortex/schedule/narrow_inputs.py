"""NarrowInputs: round what weights are multiplied with, once per row, before the product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from cortex.ilir.ir import ROUNDING, Accumulate, Buffer, For, Func, LoopKind, Scope, Stmt, Store
from cortex.ilir.storage_types import LONGEST_INPUTS, longest_rounded
from cortex.ir.node import Node, rewrite
from cortex.ir.scalar import Binary, Expr, Float, Index, Int, Load, Select, Unary, Var
from cortex.ir.simplify import affine, free_vars, substitute
from cortex.ir.step import Step, step
from cortex.poly.quick import QuickRules
from cortex.schedule.locate import Block, Names, constant_extent, find_loop, refuse, replace_loop

ALIGN = 16
"""Elements that rows of rounded inputs are padded to: a vector of them starts where a vector may start."""


@step
class NarrowInputs(Step[Func]):
    """Let the sum over `reduction` in `nest`, and those with the same inputs, read their inputs rounded to `dtype`.

    before:  for n: for j: { t[n, j] = 0; for k: t[n, j] += W[j, k] * h[child(n), k] }
    after:   for x_n: for x_k: x[x_n, x_k] = h[child(x_n), x_k]           (into="x", of bf16)
             for n: for j: { t[n, j] = 0; for k: t[n, j] += W[j, k] * x[n, k] }
             or, of i16, with x = h[child(x_n), x_k] / x_scale[x_n]:  t[n, j] += W[j, k] * (x[n, k] * x_scale[n])
    legal:   the sum is one of products of a weight with inputs that do not depend on the column, over one loop of
             constant extent; each iteration of `nest` has a row of its own in the buffer of the sum, and the nest does
             not write the inputs. Inputs are rounded, so results change: by how much, a report says.
    """

    nest: str
    reduction: str
    into: str
    dtype: Literal["bf16", "i16"] = "bf16"

    def apply(self, f: Func) -> Func:
        """`f` with rounded inputs."""
        nest, reduction = find_loop(f, self.nest, self), find_loop(f, self.reduction, self)
        if self.dtype not in ROUNDING:
            refuse(self, f"inputs are not rounded to {self.dtype!r}. Use 'bf16' or 'i16'.", f, self.nest)
        made = {self.into, f"{self.into}_scale", *(f"{self.into}_{loop}" for loop in "nkms")}
        if taken := sorted(Names(f).used & made):
            refuse(self, f"there is a {taken[0]!r} already.", f, self.nest)
        found = inputs_of(f, nest, reduction)
        if isinstance(found, str):
            refuse(self, found, f, self.reduction)
        before = found.rounding(self.into, self.dtype)
        if not all(QuickRules.of(f).commute(s, nest) for s in before):
            refuse(self, f"{self.nest!r} writes what {self.reduction!r} reads.", f, self.nest)
        new = replace_loop(f, self.nest, (*before, found.rounded(self.into, self.dtype)))
        return replace(new, buffers=(*f.buffers, *found.buffers(self.into, self.dtype)))


@dataclass(frozen=True)
class Inputs:
    """What sums in `nest` multiply weights with: `value`, a function of the row, of loops `between` and of `step`.

    `row` is where a row lies in buffers that have `rows` of them; `extents` are those of `between` and of `step`.
    """

    nest: For
    column: str
    value: Expr
    row: Expr
    rows: Expr
    between: tuple[str, ...]
    step: str
    extents: tuple[int, ...]

    def buffers(self, into: str, dtype: Literal["bf16", "i16"]) -> tuple[Buffer, ...]:
        """The buffers of rounded inputs, and of the scales of integers."""
        shape = (self.rows, *(Int(e) for e in self.extents))
        inputs = Buffer(into, dtype, shape, Scope.SCRATCH, ALIGN)
        return (inputs,) if dtype == "bf16" else (inputs, Buffer(f"{into}_scale", "f32", shape[:-1], Scope.SCRATCH))

    def rounding(self, into: str, dtype: Literal["bf16", "i16"]) -> Block:
        """The loops that round all inputs."""
        value, place, around = self._copy(f"{into}_n", f"{into}_k")
        if dtype == "bf16":
            return (around((For(f"{into}_k", Int(0), Int(self.extents[-1]), (Store(into, place, value),)),)),)
        scale = Load(f"{into}_scale", place[:-1])
        quotient = Select(Binary("gt", scale, Float(0.0)), Binary("div", value, scale), Float(0.0))
        fill = around((For(f"{into}_k", Int(0), Int(self.extents[-1]), (Store(into, place, quotient),)),))
        return (self._scales(into), fill)

    def _scales(self, into: str) -> For:
        """The loops that compute what an integer stands for: rows of integers are vectors of limited length."""
        value, place, around = self._copy(f"{into}_m", f"{into}_s")
        scale = Load(f"{into}_scale", place[:-1])
        steps = self.extents[-1]
        squares = Accumulate(scale.buffer, scale.index, "add", Binary("mul", value, value))
        one = Float(1.0 / longest_rounded(LONGEST_INPUTS, steps))
        return around(
            (
                Store(scale.buffer, scale.index, Float(0.0)),
                For(f"{into}_s", Int(0), Int(steps), (squares,)),
                Store(scale.buffer, scale.index, Binary("mul", Unary("sqrt", scale), one)),
            )
        )

    def _copy(self, rows: str, steps: str) -> tuple[Expr, tuple[Expr, ...], Callable[[Block], For]]:
        """An input in loops of other names, its place, and these loops around what is done in all steps."""
        inner = [f"{rows}{i}" for i in range(len(self.between))]
        renamed: dict[str, Expr] = {self.nest.var: Var(rows), self.step: Var(steps)}
        renamed |= {old: Var(new) for old, new in zip(self.between, inner, strict=True)}

        def around(body: Block) -> For:
            for var, extent in zip(reversed(inner), reversed(self.extents[:-1]), strict=True):
                body = (For(var, Int(0), Int(extent), body),)
            return For(rows, self.nest.lo, self.nest.hi, body)

        return substitute(self.value, renamed), self._place(renamed), around

    def _place(self, renamed: dict[str, Expr]) -> tuple[Expr, ...]:
        return substitute((self.row, *map(Var, self.between), Var(self.step)), renamed)

    def rounded(self, into: str, dtype: Literal["bf16", "i16"]) -> For:
        """The nest with every sum of these inputs reading the rounded ones."""

        def visit(n: Node) -> Node:
            if not isinstance(n, For) or constant_extent(n) != self.extents[-1]:
                return n
            renamed: dict[str, Expr] = {self.step: Var(n.var)}
            product = product_of(n, self.column)
            if product is None or product.value != substitute(self.value, renamed):
                return n
            place = self._place(renamed)
            number: Expr = Load(into, place)
            if dtype == "i16":
                number = Binary("mul", number, Load(f"{into}_scale", place[:-1]))
            return replace(n, body=(replace(product.sum, value=Binary("mul", product.weight, number)),))

        new: Stmt = rewrite(self.nest, visit)
        assert isinstance(new, For)
        return new


@dataclass(frozen=True)
class Product:
    """A sum of `weight`, which depends on the column, times `value`, which does not."""

    sum: Accumulate
    weight: Load
    value: Expr


def product_of(reduction: For, column: str) -> Product | None:
    """What a loop sums, if that is products of a weight and something that is the same for all columns."""
    match reduction.body:
        case (Accumulate(fn="add", value=Binary("mul", x, y)) as s,):
            weight, value = (x, y) if column in free_vars(x) else (y, x)
            if isinstance(weight, Load) and column in free_vars(weight.index) and column not in free_vars(value):
                return Product(s, weight, value)
    return None


def inputs_of(f: Func, nest: For, reduction: For) -> Inputs | str:
    """The inputs of the sum over `reduction` in `nest`, or why they cannot be rounded before it."""
    extent, path = constant_extent(reduction), _path(nest, reduction)
    if extent is None or path is None or nest.kind is not LoopKind.SERIAL:
        return f"{reduction.var!r} is no loop of constant extent in perfectly nested serial loops from {nest.var!r} on."
    *between, columns = path[1:]
    product = product_of(reduction, columns.var)
    params = {b.name for b in f.buffers if b.scope is Scope.PARAM}
    if product is None or product.weight.buffer not in params:
        return f"{reduction.var!r} does not sum products of a weight and what is the same for all {columns.var!r}."
    uses, index = free_vars(product.value), product.sum.index
    if not {nest.var, reduction.var} <= uses:
        return f"what the weights are multiplied with is not another for each {nest.var!r} and {reduction.var!r}."
    if not _tells_apart(f, index[0], nest.var) or free_vars(index[0]) & {loop.var for loop in (*between, columns)}:
        return f"the sums have no row of {product.sum.buffer!r} of their own for each {nest.var!r}."
    inner = [loop for loop in between if loop.var in uses]
    extents = [e for loop in inner if (e := constant_extent(loop)) is not None]
    if len(extents) < len(inner):
        return f"a loop between {nest.var!r} and {columns.var!r} has an extent that is not constant."
    row, rows = index[0], f.buffer(product.sum.buffer).shape[0]
    names = tuple(loop.var for loop in inner)
    return Inputs(nest, columns.var, product.value, row, rows, names, reduction.var, (*extents, extent))


def _tells_apart(f: Func, row: Expr, var: str) -> bool:
    """Is `row` another one for each value of `var`?"""
    if isinstance(row, Index):
        injective = any(i.name == row.fn and "injective" in i.facts for i in f.index_functions)
        return injective and _tells_apart(f, row.args[0], var)
    form = affine(row, var)
    return form is not None and form[0] != 0


def _path(nest: For, reduction: For) -> tuple[For, ...] | None:
    """The perfectly nested loops from `nest` to the one that holds `reduction`, at least two."""
    path = [nest]
    while not any(s is reduction for s in path[-1].body):
        match path[-1].body:
            case (For() as inner,):
                path.append(inner)
            case _:
                return None
    return tuple(path) if len(path) > 1 else None

"""NarrowInputs: round what weights are multiplied with, once per row, before the product."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from cortex.ilir.ir import Accumulate, Buffer, For, Func, LoopKind, Scope, Stmt, Store
from cortex.ir.node import Node, rewrite, walk
from cortex.ir.scalar import Binary, Expr, Index, Int, Load, Var
from cortex.ir.simplify import affine, free_vars, substitute
from cortex.ir.step import Step, step
from cortex.schedule.locate import Block, Names, constant_extent, find_loop, refuse, replace_loop

ALIGN = 16
"""Elements that rows of rounded inputs are padded to: a vector of them starts where a vector may start."""


@step
class NarrowInputs(Step[Func]):
    """Let the sum over `reduction` in `nest`, and those with the same inputs, read their inputs rounded to bf16.

    before:  for n: for j: { t[n, j] = 0; for k: t[n, j] += W[j, k] * h[child(n), k] }
    after:   for x_n: for x_k: x[x_n, x_k] = h[child(x_n), x_k]                              (into="x", of bf16)
             for n: for j: { t[n, j] = 0; for k: t[n, j] += W[j, k] * x[n, k] }
    with parts=2, what rounding loses is kept too:
             for x_n: for x_k: { x[x_n, x_k] = h[child(x_n), x_k]; x_low[x_n, x_k] = h[child(x_n), x_k] - x[x_n, x_k] }
             for n: for j: { t[n, j] = 0; for k: t[n, j] += W[j, k] * x[n, k] + W[j, k] * x_low[n, k] }
    legal:   the sum is one of products of a weight with inputs that do not depend on the column, over one loop of
             constant extent; each iteration of `nest` has a row of its own in the buffer of the sum, and the nest does
             not write the inputs. Inputs are rounded, so results change: by how much, a report says.

    After `Narrow("bf16")`, both operands of the products are narrow, for which machines have instructions.
    """

    nest: str
    reduction: str
    into: str
    parts: Literal[1, 2] = 1

    def apply(self, f: Func) -> Func:
        """`f` with rounded inputs."""
        nest, reduction = find_loop(f, self.nest, self), find_loop(f, self.reduction, self)
        if self.parts not in (1, 2):
            refuse(self, f"inputs are rounded to 1 number or 2, not {self.parts}.", f, self.nest)
        names = (self.into, f"{self.into}_low")[: self.parts]
        rows, steps = f"{self.into}_n", f"{self.into}_k"
        if taken := sorted(Names(f).used & {*names, rows, steps}):
            refuse(self, f"there is a {taken[0]!r} already.", f, self.nest)
        found = inputs_of(f, nest, reduction)
        if isinstance(found, str):
            refuse(self, found, f, self.reduction)
        shape = (found.rows, *(Int(e) for e in found.extents))
        buffers = tuple(Buffer(name, "bf16", shape, Scope.SCRATCH, ALIGN) for name in names)
        new = (found.rounding(names, rows, steps), found.rounded(names))
        return replace(replace_loop(f, self.nest, new), buffers=(*f.buffers, *buffers))


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

    def place(self, renamed: dict[str, Expr]) -> tuple[Expr, ...]:
        """The index of an input, with loops of other names."""
        return substitute((self.row, *map(Var, self.between), Var(self.step)), renamed)

    def rounding(self, names: tuple[str, ...], rows: str, steps: str) -> For:
        """The loops that store all inputs in the buffers `names`: each rounds what those before it have lost."""
        inner = [*(f"{steps}{i}" for i in range(len(self.between))), steps]
        renamed: dict[str, Expr] = {self.nest.var: Var(rows)}
        renamed |= {old: Var(new) for old, new in zip((*self.between, self.step), inner, strict=True)}
        value, place = substitute(self.value, renamed), self.place(renamed)
        body: Block = ()
        for name in names:
            body = (*body, Store(name, place, value))
            value = Binary("sub", value, Load(name, place))
        for var, extent in zip(reversed(inner), reversed(self.extents), strict=True):
            body = (For(var, Int(0), Int(extent), body),)
        return For(rows, self.nest.lo, self.nest.hi, body)

    def rounded(self, names: tuple[str, ...]) -> For:
        """The nest with every sum of these inputs reading the buffers `names`."""

        def visit(n: Node) -> Node:
            if not isinstance(n, For) or constant_extent(n) != self.extents[-1]:
                return n
            renamed: dict[str, Expr] = {self.step: Var(n.var)}
            product = product_of(n, self.column)
            if product is None or product.value != substitute(self.value, renamed):
                return n
            terms = [Binary("mul", product.weight, Load(name, self.place(renamed))) for name in names]
            total: Expr = terms[0]
            for each in terms[1:]:
                total = Binary("add", total, each)
            return replace(n, body=(replace(product.sum, value=total),))

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
    written = {n.buffer for n in walk(nest) if isinstance(n, Store | Accumulate)}
    if written & {n.buffer for n in walk(product.value) if isinstance(n, Load)}:
        return "the nest writes what the sum reads."
    inner = [loop for loop in between if loop.var in uses]
    extents = [e for loop in inner if (e := constant_extent(loop)) is not None]
    if len(extents) < len(inner):
        return f"a loop between {nest.var!r} and {columns.var!r} has an extent that is not constant."
    row, rows = index[0], f.buffer(product.sum.buffer).shape[0]
    between_vars = tuple(loop.var for loop in inner)
    return Inputs(nest, columns.var, product.value, row, rows, between_vars, reduction.var, (*extents, extent))


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

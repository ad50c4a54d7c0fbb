"""Matrix products as programs of ILIR, before any step.

    for b, m, k:  sum = 0
                  for c:  sum += x[b, m, c] * w[b, k, c]
                  y[b, m, k] = activation(sum + bias[k] + residual[b, m, k])

The weights lie as the program wants them, columns first; they are packed once anyhow. One product has no loop b. With
the weights first, vectors are along the columns of x, and the bias is one number per row:

    for b, m, k:  sum over c of w[m, c] * x[b, c, k]
"""

from __future__ import annotations

from dataclasses import dataclass

from cortex.ilir.ir import Accumulate, Buffer, For, Func, Scope, Stmt, Store
from cortex.ir.scalar import Binary, Expr, Float, Int, Load, Var
from cortex.primitives.epilogue import PLAIN, Epilogue


@dataclass(frozen=True)
class Product:
    """A product of (rows, depth) and (depth, columns), `batch` times with weights of their own unless it is None.

    With `transposed`, the first matrix is given as (depth, rows). With `weights_first` the weights are the first
    matrix, and the same for all.
    """

    rows: int
    columns: int
    depth: int
    batch: int | None = None
    transposed: bool = False
    weights_first: bool = False
    epilogue: Epilogue = PLAIN

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * (1 if self.batch is None else self.batch) * self.rows * self.columns * self.depth


def lower(a: Product) -> Func:
    """The program of a product."""
    b, m, k, i = Var("b"), Var("m"), Var("k"), Var("c")
    which: tuple[Expr, ...] = () if a.batch is None else (b,)
    times: tuple[Expr, ...] = () if a.batch is None else (Int(a.batch),)
    read: tuple[Expr, ...] = (i, k) if a.weights_first else (i, m) if a.transposed else (m, i)
    extents = {"m": a.rows, "k": a.columns, "c": a.depth}
    given = tuple(Int(extents[v.name]) for v in read if isinstance(v, Var))
    weight: tuple[Expr, ...] = (m, i) if a.weights_first else (*which, k, i)
    weights = (Int(a.rows), Int(a.depth)) if a.weights_first else (*times, Int(a.columns), Int(a.depth))
    column, columns = (m, a.rows) if a.weights_first else (k, a.columns)
    place = (*which, m, k)
    product = Binary("mul", Load("x", (*which, *read)), Load("w", weight))
    body = (
        Store("sum", place, Float(0.0)),
        *nest(((i, a.depth),), (Accumulate("sum", place, "add", product),)),
        Store("y", place, a.epilogue.value(Load("sum", place), column, place)),
    )
    shape: tuple[Expr, ...] = (*times, Int(a.rows), Int(a.columns))
    outer = () if a.batch is None else ((b, a.batch),)
    return Func(
        "product",
        (),
        (),
        (
            Buffer("x", "f32", (*times, *given), Scope.FIELD),
            Buffer("w", "f32", weights, Scope.PARAM),
            *a.epilogue.buffers(Int(columns), shape),
            Buffer("y", "f32", shape, Scope.STATE),
            Buffer("sum", "f32", shape, Scope.SCRATCH),
        ),
        nest((*outer, (m, a.rows), (k, a.columns)), body),
    )


def nest(loops: tuple[tuple[Var, int], ...], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """`body` inside loops from 0, outermost first."""
    for var, extent in reversed(loops):
        body = (For(var.name, Int(0), Int(extent), body),)
    return body

"""`cortex.matmul`: a matrix product with fixed weights, compiled for the shapes it meets; symbolic inside a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from cortex.codegen.target import Target
from cortex.errors import ModelError, StructureError
from cortex.frontend import functions
from cortex.frontend.tensor import Tensor
from cortex.primitives.choose import Cost
from cortex.primitives.epilogue import Epilogue, activation_of
from cortex.primitives.given import weight_of
from cortex.primitives.primitive import Lowered, Plan, Primitive
from cortex.primitives.product import Product, lower
from cortex.runtime.storage import Array

WHO = "cortex.matmul"


def matmul(
    weight: Any,
    other: Any = None,
    *,
    bias: Any = None,
    transpose_weight: bool = False,
    transpose_x: bool = False,
    activation: str | None = None,
    threads: int = 1,
    tune: int = 0,
    cost: Cost = "movement",
    target: Target | None = None,
) -> Any:
    """Products with a matrix: `y = matmul(weight, bias=b, activation="relu")(x)` is relu(x @ weight + b).

    `weight` has shape (depth, columns), or (columns, depth) with `transpose_weight`, or is a torch.nn.Linear, whose
    parameters are then taken. With one more axis in front it stands for so many products, each x with its own weight.
    `transpose_x` takes x as (depth, rows). With `tune`, so many of the ways to run a shape are timed when it is first
    met, and the fastest is kept; without, none is. They are ranked by `cost`, where "working sets" is that of
    PolyScientist as published. In the text of a model, `matmul(x, y)` is `x @ y`.
    """
    if isinstance(weight, Tensor) or isinstance(other, Tensor):
        return functions.matmul(weight, other)
    if other is not None:
        raise ModelError(
            f"{WHO}: two arrays were given; weights are compiled for many products: matmul(weight)(x) is x @ weight"
        )
    if hasattr(weight, "in_features") and hasattr(weight, "weight"):
        if bias is not None or transpose_weight:
            raise ModelError(f"{WHO}: a module was given, which has its own bias and order of axes")
        weight, bias, transpose_weight = weight.weight, weight.bias, True
    matrix = weight_of(weight, WHO, "weight")
    if matrix.ndim not in (2, 3) or 0 in matrix.shape:
        wanted = "(columns, depth)" if transpose_weight else "(depth, columns)"
        raise ModelError(f"{WHO}: weight has shape {matrix.shape}; give {wanted}, or one more axis in front; none 0")
    matrix = matrix if transpose_weight else matrix.swapaxes(-1, -2)
    added = None if bias is None else weight_of(bias, WHO, "bias")
    if added is not None and added.shape != (matrix.shape[-2],):
        raise ModelError(f"{WHO}: bias has shape {added.shape}; give one number per column, ({matrix.shape[-2]},)")
    epilogue = Epilogue(added is not None, False, activation_of(activation, WHO))
    return MatMul(matrix, added, transpose_x, epilogue, threads, tune, cost, target or Target.host())


class MatMul(Primitive[Product]):
    """Products with fixed weights; call it with matrices. Every number of rows is compiled when it is first met."""

    def __init__(
        self,
        weight: Array,
        bias: Array | None,
        transposed: bool,
        epilogue: Epilogue,
        threads: int,
        tune: int,
        cost: Cost,
        target: Target,
    ) -> None:
        super().__init__(WHO, threads, tune, cost, target)
        self._weight, self._bias, self._transposed, self._epilogue = weight, bias, transposed, epilogue

    def __call__(self, x: Any, *, residual: Any = None, out: Any = None, threads: int | None = None) -> Any:
        """x @ weight, with everything else that was asked for.

        x is (rows, depth), or has any axes before its last; one before the two of a product for weights of three
        axes. `residual`, of the shape of the result, is added before the activation function; the result is written
        to `out` if that is given. A NumPy array gives a NumPy array, a tensor a tensor.
        """
        return self._call(x, residual, out, threads)

    def _plan(self, x: Array, residual: bool) -> Plan[Product]:
        product, shape = self.shape_of(x, residual)
        return Plan(product, None, shape, None)

    def _lowered(self, problem: Product) -> Lowered:
        params = {"w": self._weight} if self._bias is None else {"w": self._weight, "bias": self._bias}
        return Lowered(lower(problem), params, problem.epilogue.is_long)

    def shape_of(self, x: Array, residual: bool = False) -> tuple[Product, tuple[int, ...]]:
        """The product for an x, as it is compiled, and the shape of its result."""
        *batch, columns, depth = self._weight.shape
        least = 3 if batch else 2 if self._transposed else 1
        inner = x.shape[-2:-1] if self._transposed else x.shape[-1:]
        if x.ndim < least or inner != (depth,) or (batch and (x.ndim != 3 or x.shape[0] != batch[0])):
            rows = f"{depth}, rows" if self._transposed else f"rows, {depth}"
            wanted = f"({batch[0]}, {rows})" if batch else f"({rows})"
            raise StructureError(f"{WHO}: x has shape {x.shape}; the weights take {wanted}")
        if self._transposed and not batch and x.ndim != 2:
            raise StructureError(f"{WHO}: x has shape {x.shape}; with transpose_x the weights take ({depth}, rows)")
        shape = (*x.shape[:-2], x.shape[-1], columns) if self._transposed else (*x.shape[:-1], columns)
        rows_of_all = int(np.prod(shape[:-1], dtype=np.int64)) // (batch[0] if batch else 1)
        epilogue = Epilogue(self._epilogue.bias, residual, self._epilogue.activation)
        times = batch[0] if batch else None
        return Product(rows_of_all, columns, depth, times, self._transposed, epilogue=epilogue), shape

"""Distances that models compute on the way: the error of a reconstruction, of a prediction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cortex.frontend.builder import Value
from cortex.frontend.pointwise import arithmetic, unary
from cortex.frontend.tensor import value_of
from cortex.frontend.torch.operators.reductions import mean, reduced
from cortex.frontend.torch.refusals import Unsupported
from cortex.frontend.torch.tensor import TorchTensor


def _loss(of_difference: Callable[[Value], Value]) -> Callable[..., Value]:
    def run(
        input: Any,
        target: Any,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        weight: Any = None,
    ) -> Value:
        if size_average is not None or reduce is not None or weight is not None:
            raise Unsupported("size_average, reduce and weight are not known. Give reduction='mean', 'sum' or 'none'.")
        found = of_difference(arithmetic("sub", value_of(input), value_of(target)))
        axes = tuple(range(len(found.shape)))
        match reduction:
            case "mean":
                return mean(TorchTensor(found))
            case "sum":
                return reduced("add", found, axes, False)
        return found

    return run


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "F.mse_loss": _loss(lambda x: arithmetic("mul", x, x)),
    "F.l1_loss": _loss(lambda x: unary("abs", x)),
}

"""Every operator, as users write it."""

from __future__ import annotations

from case import Case
from fact_cases import FACTS
from movement_cases import INDEXING, MOVEMENT, PRODUCTS
from pointwise_cases import ACTIVATIONS, POINTWISE
from rare_cases import RARE
from reduction_cases import NORMALIZATION, REDUCTIONS

CASES: dict[str, Case] = {
    **POINTWISE,
    **ACTIVATIONS,
    **PRODUCTS,
    **MOVEMENT,
    **INDEXING,
    **REDUCTIONS,
    **NORMALIZATION,
    **FACTS,
    **RARE,
}

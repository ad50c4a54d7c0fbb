"""Between which numbers a computed value lies, as far as its expression tells: positions that argmax finds, counts."""

from __future__ import annotations

import math

from cortex.frontend.builder import Value
from cortex.ra.ir import Binary, Broadcast, Cast, Concat, Fill, Param, Reduce, Reshape, Slice, Transpose, Where

Bounds = tuple[float, float]


def bounds_of(value: Value) -> Bounds | None:
    """The least and the largest number that `value` can be, never infinite or NaN; None if that is not known."""
    found: dict[str, Bounds | None] = {}
    truths: set[str] = set()
    weights = value.builder.knowledge.weights
    for let in value.builder.reachable((value.name,)):
        if let.type.dtype == "bool":
            truths.add(let.name)
            continue
        bounds: Bounds | None = None
        match let.op:
            case Fill(number):
                bounds = (number, number)
            case Param(name) if weights.is_constant(name):
                array = weights.arrays((name,))[name]
                bounds = (float(array.min()), float(array.max())) if array.size else None
            case Cast(x) if x in truths:
                bounds = (0.0, 1.0)
            case Reshape(x) | Slice(x) | Transpose(x) | Broadcast(x):
                bounds = found.get(x)
            case Reduce("max" | "min", x):
                bounds = found.get(x)
            case Concat(xs):
                bounds = _hull([found.get(x) for x in xs])
            case Where(_, x, y):
                bounds = _hull([found.get(x), found.get(y)])
            case Binary(fn, x, y):
                bounds = _combined(fn, found.get(x), found.get(y))
        found[let.name] = bounds if bounds is not None and all(map(math.isfinite, bounds)) else None
    return found.get(value.name)


def _hull(all_bounds: list[Bounds | None]) -> Bounds | None:
    known = [each for each in all_bounds if each is not None]
    if len(known) < len(all_bounds):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _combined(fn: str, x: Bounds | None, y: Bounds | None) -> Bounds | None:
    if x is None or y is None:
        return None
    match fn:
        case "add":
            return x[0] + y[0], x[1] + y[1]
        case "sub":
            return x[0] - y[1], x[1] - y[0]
        case "mul":
            products = [a * b for a in x for b in y]
            return min(products), max(products)
        case "min" | "max":
            pick = min if fn == "min" else max
            return pick(x[0], y[0]), pick(x[1], y[1])
    return None

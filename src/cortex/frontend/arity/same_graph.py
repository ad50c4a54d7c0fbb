"""Do two kinds compute the same, up to the names of lets and the order of terms?"""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeGuard

from cortex.ra import ir
from cortex.ra.shapes import operand_names, rename_operands


def same_graph(a: ir.Kind, b: ir.Kind) -> bool:
    """Are the results of `a` and `b` the same expressions?

    The order and nesting of sums, products, maxima and minima does not count, a - b is a + (-b), and 3 * a is
    a + a + a. Constants may differ by the rounding of a float32.
    """
    numbers: dict[Any, int] = {}
    return _numbered(a, numbers) == _numbered(b, numbers)


MOST = 1 << 20
"""Numbers above this are factors and no counts of anything."""

CHAINS = ("add", "mul", "max", "min")


def _numbered(kind: ir.Kind, numbers: dict[Any, int]) -> list[int]:
    """A number for each result; equal expressions have equal numbers."""
    number: dict[str, int] = {}
    chains: dict[tuple[str, str], Counter[int]] = {}
    counts = {let.name: int(let.op.value) for let in kind.lets if _is_count(let.op)}

    def intern(key: Any) -> int:
        return numbers.setdefault(key, len(numbers))

    def terms(fn: str, x: str) -> Counter[int]:
        return chains.get((fn, x), Counter({number[x]: 1}))

    for let in kind.lets:
        match let.op:
            case ir.Binary("sub", x, y):
                negative = Counter({intern(("neg", n)): times for n, times in terms("add", y).items()})
                chain, fn = terms("add", x) + negative, "add"
            case ir.Unary("neg", x):
                chain, fn = Counter({intern(("neg", n)): times for n, times in terms("add", x).items()}), "add"
            case ir.Binary("mul", x, y) if x in counts or y in counts:
                times, x = (counts[x], y) if x in counts else (counts[y], x)
                chain, fn = Counter({n: times * each for n, each in terms("add", x).items()}), "add"
            case ir.Binary(fn, x, y) if fn in CHAINS:
                chain = terms(fn, x) + terms(fn, y)
            case op:
                form = _form(op)
                number[let.name] = intern((form, tuple(number[x] for x in operand_names(op)), let.type))
                continue
        chains[fn, let.name] = chain
        single = len(chain) == 1 and next(iter(chain.values())) == 1
        number[let.name] = next(iter(chain)) if single else intern((fn, frozenset(chain.items()), let.type))
    return [number[result] for result in kind.results]


def _form(op: ir.Op) -> ir.Op:
    if isinstance(op, ir.Fill):
        return ir.Fill(float(f"{op.value:.6g}"), op.shape)
    return rename_operands(op, dict.fromkeys(operand_names(op), ""))


def _is_count(op: ir.Op) -> TypeGuard[ir.Fill]:
    """Is this a number that says how often a term is added?"""
    return isinstance(op, ir.Fill) and not op.shape and op.value.is_integer() and 1 < op.value <= MOST

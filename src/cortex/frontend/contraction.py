"""Sums of products: matrix products, dot and outer products, einsum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cortex.frontend.builder import Value, builder
from cortex.frontend.movement import transpose
from cortex.frontend.pointwise import arithmetic, as_float
from cortex.frontend.reduction import reduce
from cortex.frontend.spans import fail
from cortex.ra.ir import Contract

PRODUCTS = {(2, 1): "jk,k->j", (2, 2): "ik,kj->ij", (1, 2): "k,kj->j", (1, 1): "k,k->"}


def matmul(x: Value, y: Value) -> Value:
    """`x @ y` for vectors and matrices."""
    spec = PRODUCTS.get((len(x.shape), len(y.shape)))
    if spec is None:
        raise fail(
            f"`@` of {x.text()} and {y.text()}: both operands must be vectors or matrices. For other ranks say which "
            'axes are summed: cortex.einsum("iab,b->ia", V, x).'
        )
    if x.shape[-1] != y.shape[0]:
        remedy = " Transpose the matrix with .T?" if _would_fit(x, y) else ""
        raise fail(
            f"`@` of {x.text()} and {y.text()}: the last axis of the left operand ({x.shape[-1]}) must be as long as "
            f"the first axis of the right operand ({y.shape[0]}).{remedy}"
        )
    return contract(spec, x, y)


def _would_fit(x: Value, y: Value) -> bool:
    return (len(x.shape) == 2 and x.shape[0] == y.shape[0]) or (len(y.shape) == 2 and x.shape[-1] == y.shape[-1])


def outer(x: Value, y: Value) -> Value:
    """All products of an element of vector `x` and one of vector `y`."""
    if len(x.shape) != 1 or len(y.shape) != 1:
        raise fail(f"outer() of {x.text()} and {y.text()}: both must be vectors.")
    return contract("i,j->ij", x, y)


def contract(spec: str, x: Value, y: Value) -> Value:
    """One pairwise contraction, whose operands fit."""
    x, y = as_float(x), as_float(y)
    terms, output = spec.split("->")
    sizes: dict[str, int] = {}
    for term, value in zip(terms.split(","), (x, y), strict=True):
        sizes.update(zip(term, value.shape, strict=True))
    return builder().emit(Contract(spec, x.name, y.name), tuple(sizes[c] for c in output), x, y)


def einsum(spec: object, operands: Sequence[Value]) -> Value:
    """NumPy's einsum, as pairwise contractions from left to right.

    An intermediate keeps the letters that the output or a later operand still needs.
    """
    terms, output = _parse(spec, operands)
    term, result = terms[0], operands[0]
    for i in range(1, len(terms)):
        needed = set(output).union(*terms[i + 1 :])
        kept = "".join(c for c in dict.fromkeys(term + terms[i]) if c in needed)
        if i == len(terms) - 1:
            kept = output
        result = contract(f"{term},{terms[i]}->{kept}", result, operands[i])
        term = kept
    summed = tuple(i for i, c in enumerate(term) if c not in output)
    if summed:
        result = reduce("add", result, summed)
        term = "".join(c for c in term if c in output)
    return result if term == output else transpose(result, tuple(term.index(c) for c in output))


def _parse(spec: object, operands: Sequence[Value]) -> tuple[list[str], str]:
    if not isinstance(spec, str):
        raise fail(f'einsum(): the first argument is the notation, such as "jk,k->j", not a {type(spec).__name__}.')
    what = f'einsum("{spec}")'
    compact = spec.replace(" ", "")
    if "." in compact:
        raise fail(f"{what}: ellipses are not supported. Every axis needs a letter: shapes are known here.")
    left, arrow, output = compact.partition("->")
    terms = left.split(",")
    if not all(c.isalpha() for c in left.replace(",", "") + output):
        raise fail(f'{what}: axes are named by letters, operands are separated by commas, as in "jk,k->j".')
    if len(terms) != len(operands):
        raise fail(f"{what}: the notation has {len(terms)} operand(s), but {len(operands)} were given.")
    if not arrow:
        output = "".join(sorted(c for c, n in Counter(left.replace(",", "")).items() if n == 1))
    sizes: dict[str, tuple[int, Value]] = {}
    for term, value in zip(terms, operands, strict=True):
        if len(term) != len(value.shape):
            raise fail(f"{what}: '{term}' names {len(term)} axes, but its operand is {value.text()}.")
        if len(set(term)) != len(term):
            raise fail(
                f"{what}: '{term}' repeats a letter: diagonals are not supported. Multiply by an identity "
                "matrix instead."
            )
        for letter, size in zip(term, value.shape, strict=True):
            known, first = sizes.setdefault(letter, (size, value))
            if known != size:
                raise fail(
                    f"{what}: axis '{letter}' has size {known} in {first.text()} and {size} in {value.text()}; "
                    "a letter stands for one size."
                )
    if unknown := [c for c in output if c not in sizes]:
        raise fail(f"{what}: '{unknown[0]}' in the output is no axis of any operand.")
    if len(set(output)) != len(output):
        raise fail(f"{what}: the output '{output}' repeats a letter.")
    return terms, output


def dot(x: Value, y: Value) -> Value:
    """The sum of the products of two vectors' elements; a product where one of them is a scalar."""
    return matmul(x, y) if x.shape and y.shape else arithmetic("mul", x, y)

"""How many integer points a set has, exactly, without a library for counting polytopes.

A set is taken apart into disjoint pieces, and each piece into groups of dimensions that share no constraint (nor a
quotient): those are independent, so their counts multiply. What is left is small, and isl enumerates it.

    { [i, j, k] : 0 <= i < 256 and 0 <= j <= k < 20 }      256 * 210
"""

from __future__ import annotations

from math import prod

import islpy as isl

from cortex.errors import InternalError


def count(s: isl.Set) -> int:
    """The number of points of a set without parameters."""
    if s.dim(isl.dim_type.param):
        raise InternalError("a set with parameters cannot be counted; fix them first")
    if not s.is_bounded():
        raise InternalError(f"the set {s} has infinitely many points")
    return sum(_count_piece(piece) for piece in s.make_disjoint().compute_divs().get_basic_sets())


def _count_piece(piece: isl.BasicSet) -> int:
    if piece.is_empty():
        return 0
    whole = isl.Set.from_basic_set(piece)
    return prod(_points(whole, group) for group in independent(piece))


def _points(whole: isl.Set, group: list[int]) -> int:
    """The number of points of a set seen along some of its dimensions."""
    for dim in reversed(range(whole.dim(isl.dim_type.set))):
        if dim not in group:
            whole = whole.project_out(isl.dim_type.set, dim, 1)
    number = whole.count_val()
    assert number.is_int()
    return int(number.to_python())


def independent(piece: isl.BasicSet) -> list[list[int]]:
    """The dimensions of a basic set in groups that share no constraint."""
    dims, divs = piece.dim(isl.dim_type.set), piece.dim(isl.dim_type.div)
    leader = list(range(dims + divs))

    def find(x: int) -> int:
        while leader[x] != x:
            x = leader[x]
        return x

    for constraint in piece.get_constraints():
        together = [d for d in range(dims) if constraint.involves_dims(isl.dim_type.set, d, 1)]
        together += [dims + d for d in range(divs) if constraint.involves_dims(isl.dim_type.div, d, 1)]
        for other in together[1:]:
            leader[find(other)] = find(together[0])
    groups: dict[int, list[int]] = {}
    for d in range(dims):
        groups.setdefault(find(d), []).append(d)
    return list(groups.values())

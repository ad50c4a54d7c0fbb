"""Gradients of parameters, from what the forward and the backward pass have stored at every node.

Sums over nodes are taken in the order of ids by NumPy's matrix product; rows of tables in the order of ids too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from cortex.gradient.backward import Gradient, Rows, Sum
from cortex.gradient.constants import SUM, ConstantGraph
from cortex.lower.linear_form import LinearForm
from cortex.ra import interp
from cortex.ra import ir as ra
from cortex.runtime.backward_form import nodes_of, targets
from cortex.runtime.storage import Array


def parameter_gradients(
    g: Gradient,
    form: LinearForm,
    values: Callable[[str], Array],
    adjoints: Callable[[str], Array],
    params: Mapping[str, Array],
) -> dict[str, Array]:
    """The gradients of all parameters but tables, as far as there are any.

    `values` gives the forward states and fields of all nodes by name, `adjoints` the backward states, each in its own
    pass's order of nodes.
    """
    found: dict[str, Array] = {}
    for graph in g.constants:
        rows = _RowsOfKind(form, graph.kind, values, adjoints)
        sums: dict[str, Array] = {}
        for s in g.sums:
            if s.kind == graph.kind:
                total = np.broadcast_to(rows.sum(s), s.shape)
                sums[s.let] = total if s.let not in sums else sums[s.let] + total
        given = [(param, sums[let]) for let, param in graph.direct]
        given += _through_constants(graph, sums, params)
        for param, total in given:
            found[param] = total if param not in found else found[param] + total
    return found


class _RowsOfKind:
    """Values and adjoints at the nodes of a kind; each is gathered once, as several sums are of the same."""

    def __init__(
        self, form: LinearForm, kind: int, values: Callable[[str], Array], adjoints: Callable[[str], Array]
    ) -> None:
        self._form, self._values, self._adjoints = form, values, adjoints
        self._nodes = nodes_of(form, kind)
        self._mirrored = form.sizes["num_nodes"] - 1 - self._nodes
        self._of_adjoint: dict[str, Array] = {}
        self._of_value: dict[Rows, Array] = {}

    def sum(self, s: Sum) -> Array:
        """A sum over the nodes of the kind."""
        if s.g not in self._of_adjoint:
            self._of_adjoint[s.g] = self._adjoints(s.g)[self._mirrored]
        rows = self._of_adjoint[s.g]
        if s.x is None:
            total: Array = rows.sum(axis=0)
            return total
        if s.x not in self._of_value:
            self._of_value[s.x] = self._values(s.x.name)[targets(self._form, self._nodes, s.x.path)]
        return _product(s.spec, rows, self._of_value[s.x])


def _product(spec: str, left: Array, right: Array) -> Array:
    """Contract both with each other and over their rows; letters of the result that neither has are repeated."""
    operands, out = spec.split("->")
    a, b = operands.split(",")
    shared = [c for c in a if c in b]
    if any(c in out for c in shared) or any(c not in a + b for c in out):
        return _general_product(a, b, out, left, right)
    alone_left = tuple(1 + i for i, c in enumerate(a) if c not in b and c not in out)
    alone_right = tuple(1 + i for i, c in enumerate(b) if c not in a and c not in out)
    left = left.sum(axis=alone_left) if alone_left else left
    right = right.sum(axis=alone_right) if alone_right else right
    a = "".join(c for c in a if c in b or c in out)
    b = "".join(c for c in b if c in a or c in out)
    axes = [0, *(1 + a.index(c) for c in shared)], [0, *(1 + b.index(c) for c in shared)]
    product = np.tensordot(left, right, axes)
    letters = [c for c in a if c not in shared] + [c for c in b if c not in shared]
    return product.transpose([letters.index(c) for c in out])


def _general_product(a: str, b: str, out: str, left: Array, right: Array) -> Array:
    there = "".join(c for c in out if c in a + b)
    product: Array = np.einsum(f"...{a},...{b}->...{there}", left, right).sum(axis=0)
    return product if there == out else _repeated(product, there, out)


def _repeated(product: Array, there: str, out: str) -> Array:
    ones = [product.shape[there.index(c)] if c in there else 1 for c in out]
    return product.reshape(ones)


def _through_constants(
    graph: ConstantGraph, sums: Mapping[str, Array], params: Mapping[str, Array]
) -> list[tuple[str, Array]]:
    if not graph.results:
        return []
    given = {**params, **{SUM + let: np.array(total, order="C") for let, total in sums.items()}}
    decls = tuple(ra.ParamDecl(n, ra.TensorType(x.shape)) for n, x in given.items())
    derived = tuple(ra.Derived(f"gradient:{param}", graph.lets, let) for param, let in graph.results)
    m = ra.Model("constants", decls, (), (), (), (), (), derived)
    dtype = next(iter(sums.values())).dtype
    made = interp.derived(m, given, dtype)
    return [(param, made[f"gradient:{param}"]) for param, _ in graph.results]


def scattered(index: Array, rows: Array) -> tuple[Array, Array]:
    """The rows of a table that were read, ascending, and the sum of the adjoints of each, in the order of `rows`."""
    if not len(index):
        return index, rows
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return ordered[first], np.add.reduceat(rows[order], first, axis=0)


def dense(shape: tuple[int, ...], found: tuple[Array, Array]) -> Array:
    """The gradient of a whole table from that of some of its rows."""
    whole: Array = np.zeros(shape, found[1].dtype)
    whole[found[0]] = found[1]
    return whole

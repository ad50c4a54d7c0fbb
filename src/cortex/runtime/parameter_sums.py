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
        sums: dict[str, Array] = {}
        for s in g.sums:
            if s.kind == graph.kind:
                total = _sum(s, graph, g, form, values, adjoints)
                sums[s.let] = total if s.let not in sums else sums[s.let] + total
        given = [(param, sums[let]) for let, param in graph.direct]
        given += _through_constants(graph, sums, params)
        for param, total in given:
            found[param] = total if param not in found else found[param] + total
    return found


def _sum(
    s: Sum,
    graph: ConstantGraph,
    g: Gradient,
    form: LinearForm,
    values: Callable[[str], Array],
    adjoints: Callable[[str], Array],
) -> Array:
    nodes = nodes_of(form, s.kind)
    rows = adjoints(s.g)[form.sizes["num_nodes"] - 1 - nodes]
    if s.x is None:
        total: Array = rows.sum(axis=0)
        return total
    return _product(s.spec, rows, _read(s.x, form, values, nodes))


def _read(x: Rows, form: LinearForm, values: Callable[[str], Array], nodes: Array) -> Array:
    found: Array = values(x.name)[targets(form, nodes, x.path)]
    return found


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
    given = {**params, **{SUM + let: np.ascontiguousarray(total) for let, total in sums.items()}}
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

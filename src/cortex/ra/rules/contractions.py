"""Contractions: one normal form, views absorbed into the letters, concatenated operands taken apart."""

from __future__ import annotations

from string import ascii_letters

from cortex.ra import ir
from cortex.ra.rules.graph import Graph, full_range
from cortex.ra.shapes import terms

KEPT = "ij" + "lmnopqrstuvwxyz" + ascii_letters[26:]
SUMMED = "k" + "abcdefgh" + ascii_letters[26:][::-1]


def normalize_contractions(g: Graph, op: ir.Op) -> ir.Op | None:
    """The operand that depends on parameters only comes first; letters are i, j, l, ... kept and k, a, b, ... summed.

    before:  einsum("n,mn->m", s, U)
    after:   einsum("ik,k->i", U, s)
    """
    if not isinstance(op, ir.Contract):
        return None
    tx, ty, out = terms(op.spec)
    x, y = op.x, op.y
    if y in g.constants and x not in g.constants:
        x, y, tx, ty = y, x, ty, tx
    new = dict(zip(out, KEPT, strict=False))
    summed = [c for c in dict.fromkeys(tx + ty) if c not in out]
    new |= dict(zip(summed, SUMMED, strict=False))
    spec = _spec(*("".join(new[c] for c in term) for term in (tx, ty, out)))
    normal = ir.Contract(spec, x, y)
    return normal if normal != op else None


def multiply_without_sum(g: Graph, op: ir.Op) -> ir.Op | None:
    """A contraction that sums nothing and only broadcasts is a product.

    before:  einsum("i,i->i", a, b)
    after:   a * b
    """
    if not isinstance(op, ir.Contract):
        return None
    tx, ty, out = terms(op.spec)
    return ir.Binary("mul", op.x, op.y) if out in (tx, ty) and out.endswith(tx) and out.endswith(ty) else None


def absorb_transposes(g: Graph, op: ir.Op) -> ir.Op | None:
    """A transposed operand, or a result read only transposed, is another order of letters.

    before:  V = transpose(W); y = einsum("ik,k->i", V, x)
    after:   y = einsum("ki,k->i", W, x)
    """
    match op:
        case ir.Contract(spec, x, y):
            tx, ty, out = terms(spec)
            x_op, y_op = g.op(x), g.op(y)
            if isinstance(x_op, ir.Transpose):
                return ir.Contract(_spec(_untransposed(tx, x_op.perm), ty, out), x_op.x, y)
            if isinstance(y_op, ir.Transpose):
                return ir.Contract(_spec(tx, _untransposed(ty, y_op.perm), out), x, y_op.x)
        case ir.Transpose(x, perm):
            inner = g.op(x)
            if isinstance(inner, ir.Contract) and g.used_once(x):
                tx, ty, out = terms(inner.spec)
                return ir.Contract(_spec(tx, ty, "".join(out[p] for p in perm)), inner.x, inner.y)
    return None


def absorb_unit_axes(g: Graph, op: ir.Op) -> ir.Op | None:
    """An operand reshaped only by axes of size 1 is read as it was.

    before:  v = reshape(x, (H, 1)); y = einsum("ik,kj->ij", W, v)
    after:   t = einsum("ik,k->i", W, x); y = reshape(t, (H, 1))
    """
    if not isinstance(op, ir.Contract):
        return None
    tx, ty, out = terms(op.spec)
    for position, (name, own, other) in enumerate(((op.x, tx, ty), (op.y, ty, tx))):
        inner = g.op(name)
        if not isinstance(inner, ir.Reshape):
            continue
        source = g.shape(inner.x)
        if [n for n in source if n != 1] != [n for n in inner.shape if n != 1]:
            continue
        letters = iter([c for c, n in zip(own, inner.shape, strict=True) if n != 1])
        dropped = {c for c, n in zip(own, inner.shape, strict=True) if n == 1}
        spare = iter(c for c in ascii_letters if c not in tx + ty)
        term = "".join(next(spare) if n == 1 else next(letters) for n in source)
        kept = "".join(c for c in out if c not in dropped or c in other)
        if position == 0:
            contract = ir.Contract(_spec(term, ty, kept), inner.x, op.y)
        else:
            contract = ir.Contract(_spec(tx, term, kept), op.x, inner.x)
        if kept == out:
            return contract
        extent = dict(zip(tx + ty, g.shape(op.x) + g.shape(op.y), strict=True))
        return ir.Reshape(g.emit(contract), tuple(extent[c] for c in out))
    return None


def split_concats(g: Graph, op: ir.Op) -> ir.Op | None:
    """A contraction with concatenated parts is computed part by part.

    Along a summed letter the parts' products are added:

    before:  y = W @ concat(l, r)
    after:   y = W[:, 0:H] @ l + W[:, H:2H] @ r

    Along a kept letter they are concatenated, so that a slice of the result can take the one it needs.
    """
    if not isinstance(op, ir.Contract) or (op.x in g.constants and op.y in g.constants):
        return None
    tx, ty, out = terms(op.spec)
    x_op, y_op = g.op(op.x), g.op(op.y)
    if isinstance(y_op, ir.Concat):
        concat, letter, other, other_term = y_op, ty[y_op.axis], op.x, tx
    elif isinstance(x_op, ir.Concat):
        concat, letter, other, other_term = x_op, tx[x_op.axis], op.y, ty
    else:
        return None
    products = []
    offset = 0
    for part in concat.xs:
        n = g.shape(part)[concat.axis]
        piece = g.slice(
            other,
            tuple(
                (offset, offset + n, 1) if c == letter else full_range(size)
                for c, size in zip(other_term, g.shape(other), strict=True)
            ),
        )
        x, y = (piece, part) if concat is y_op else (part, piece)
        products.append(g.emit(ir.Contract(op.spec, x, y)))
        offset += n
    if letter in out:
        return ir.Concat(tuple(products), out.index(letter))
    total = products[0]
    for product in products[1:-1]:
        total = g.emit(ir.Binary("add", total, product))
    return ir.Binary("add", total, products[-1])


def _spec(x: str, y: str, out: str) -> str:
    return f"{x},{y}->{out}"


def _untransposed(term: str, perm: tuple[int, ...]) -> str:
    """The letters of the value before a transpose, given those after it."""
    return "".join(term[perm.index(a)] for a in range(len(perm)))

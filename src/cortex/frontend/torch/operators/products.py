"""Sums of products: linear and bilinear layers, matrix products with torch's batch axes, einsum."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

from cortex.frontend import contraction, movement
from cortex.frontend.builder import Value
from cortex.frontend.elementary import scaled
from cortex.frontend.pointwise import arithmetic
from cortex.frontend.tensor import value_of
from cortex.frontend.torch.refusals import Unsupported
from cortex.frontend.torch.tensor import TorchTensor


def linear(input: TorchTensor, weight: Any, bias: Any = None) -> Value:
    """input @ weight.T + bias along the last axis."""
    x, w = value_of(input), value_of(weight)
    result = _rows(x, "jk,k->j", "jk,ik->ij", w) if len(w.shape) == 2 else contraction.contract("k,k->", w, x)
    return result if bias is None else arithmetic("add", result, value_of(bias))


def _rows(x: Value, one: str, many: str, w: Value) -> Value:
    """A product of `w` with each vector along the last axis of `x`."""
    lead, size = x.shape[:-1], x.shape[-1]
    if all(n == 1 for n in lead):
        result = contraction.contract(one, w, movement.reshape(x, (size,)))
    else:
        rows = movement.reshape(x, (-1, size)) if size else movement.reshape(x, (_count(lead), 0))
        result = contraction.contract(many, w, rows)
        return movement.reshape(result, (*lead, result.shape[-1]))
    return movement.reshape(result, (*lead, *result.shape))


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for n in shape:
        count *= n
    return count


def _bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Value:
    x, y, w = value_of(input1), value_of(input2), value_of(weight)
    lead = x.shape[:-1]
    rows_x = movement.reshape(x, (_count(lead), x.shape[-1]))
    rows_y = movement.reshape(y, (_count(lead), y.shape[-1]))
    if _count(lead) == 1:
        vector_x, vector_y = movement.reshape(x, (x.shape[-1],)), movement.reshape(y, (y.shape[-1],))
        result = contraction.einsum("iab,b,a->i", [w, vector_y, vector_x])
    else:
        result = contraction.einsum("iab,nb,na->ni", [w, rows_y, rows_x])
    result = movement.reshape(result, (*lead, w.shape[0]))
    return result if bias is None else arithmetic("add", result, value_of(bias))


def matmul(input: TorchTensor, other: Any) -> Value:
    """torch.matmul: vectors, matrices, and batches of matrices whose batch axes broadcast."""
    x, y = value_of(input), value_of(other)
    if len(x.shape) <= 2 and len(y.shape) <= 2:
        return _small(x, y)
    row, column = len(x.shape) == 1, len(y.shape) == 1
    lead_x, lead_y = x.shape[:-2], y.shape[:-2]
    rank = max(len(lead_x), len(lead_y))
    letters = string.ascii_lowercase[:rank]
    x, terms_x = _batch(x, letters, "K" if row else "IK")
    y, terms_y = _batch(y, letters, "K" if column else "KJ")
    shared = [c for c in letters if c in terms_x + terms_y]
    result = contraction.contract(
        f"{terms_x},{terms_y}->{''.join(shared)}{'' if row else 'I'}{'' if column else 'J'}", x, y
    )
    shape = [max(_size(lead_x, rank, i), _size(lead_y, rank, i)) for i in range(rank)]
    empty = [min(_size(lead_x, rank, i), _size(lead_y, rank, i)) for i in range(rank)]
    sizes = [0 if 0 in pair else pair[0] for pair in zip(shape, empty, strict=True)]
    return movement.reshape(result, (*sizes, *result.shape[len(shared) :]))


def _size(lead: tuple[int, ...], rank: int, i: int) -> int:
    """The size of batch axis `i` of `rank`."""
    missing = rank - len(lead)
    return 1 if i < missing else lead[i - missing]


def _batch(x: Value, letters: str, inner: str) -> tuple[Value, str]:
    """`x` without the batch axes of size 1, which broadcast, and the letters of its axes."""
    lead = x.shape[: len(x.shape) - len(inner)]
    names = letters[len(letters) - len(lead) :]
    kept = [i for i, n in enumerate(lead) if n != 1]
    shape = (*(lead[i] for i in kept), *x.shape[len(lead) :])
    return movement.reshape(x, shape), "".join(names[i] for i in kept) + inner


def _small(x: Value, y: Value) -> Value:
    """A product with a matrix of one row is one with a vector, which is how parameters are used best."""
    if len(x.shape) == 2 and x.shape[0] == 1:
        product = contraction.matmul(movement.reshape(x, x.shape[1:]), y)
        return movement.reshape(product, (1, *product.shape))
    return contraction.matmul(x, y)


def _addmm(input: TorchTensor, mat1: Any, mat2: Any, beta: float = 1, alpha: float = 1) -> Value:
    product = scaled(matmul(mat1, mat2), alpha)
    return product if beta == 0 else arithmetic("add", scaled(value_of(input), beta), product)


def _addbmm(input: TorchTensor, batch1: Any, batch2: Any, beta: float = 1, alpha: float = 1) -> Value:
    product = scaled(contraction.contract("nik,nkj->ij", value_of(batch1), value_of(batch2)), alpha)
    return product if beta == 0 else arithmetic("add", scaled(value_of(input), beta), product)


def _outer(input: TorchTensor, vec2: TorchTensor) -> Value:
    return contraction.outer(value_of(input), value_of(vec2))


def _einsum(equation: str, tensors: Any, path: Any = None) -> Value:
    values = [value_of(x) for x in tensors]
    terms, arrow, output = _without_ellipsis(equation, values).partition("->")
    pairs = [_diagonals(term, value) for term, value in zip(terms.split(","), values, strict=True)]
    if not arrow:
        output = "".join(sorted(c for c in set(terms) - {","} if terms.count(c) == 1))
    return contraction.einsum(f"{','.join(term for term, _ in pairs)}->{output}", [value for _, value in pairs])


def _diagonals(term: str, x: Value) -> tuple[str, Value]:
    """`x` without letters that stand twice: of such axes, equal positions are taken."""
    for letter in term:
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            rest = [i for i in range(len(term)) if i not in (first, second)]
            size = x.shape[first]
            turned = movement.transpose(x, (*rest, first, second))
            flat = movement.reshape(turned, (*turned.shape[:-2], size * size))
            x = movement.slice_axes(flat, (*((0, n, 1) for n in flat.shape[:-1]), (0, size * size, size + 1)))
            term = "".join(term[i] for i in rest) + letter
    return term, x


def _without_ellipsis(spec: str, values: list[Value]) -> str:
    """The axes that `...` stands for, by letters; they must not broadcast."""
    compact = spec.replace(" ", "")
    if "..." not in compact:
        return compact
    left, arrow, output = compact.partition("->")
    terms = left.split(",")
    hidden = [len(v.shape) - len(term.replace("...", "")) for term, v in zip(terms, values, strict=True)]
    most = max(n for n, term in zip(hidden, terms, strict=True) if "..." in term)
    free = [c for c in string.ascii_letters if c not in compact][:most]
    sizes: dict[str, int] = {}
    written = []
    for term, n, v in zip(terms, hidden, values, strict=True):
        own = free[most - n :] if n else []
        at = term.find("...")
        for letter, size in zip(own, v.shape[at : at + n], strict=True):
            if sizes.setdefault(letter, size) != size:
                raise Unsupported("the axes that `...` stands for broadcast. Give each axis a letter.")
        written.append(term.replace("...", "".join(own)))
    if not arrow:
        once = sorted(c for c in set(left) if c.isalpha() and left.count(c) == 1)
        output = "..." + "".join(once)
    return f"{','.join(written)}->{output.replace('...', ''.join(free))}"


def _tensordot(input: TorchTensor, other: Any, dims_self: list[int], dims_other: list[int]) -> Value:
    x, y = value_of(input), value_of(other)
    axes_x, axes_y = ([d % len(v.shape) for d in given] for v, given in ((x, dims_self), (y, dims_other)))
    terms_x = list(string.ascii_lowercase[: len(x.shape)])
    terms_y = list(string.ascii_uppercase[: len(y.shape)])
    for i, j in zip(axes_x, axes_y, strict=True):
        terms_y[j] = terms_x[i]
    kept = [c for i, c in enumerate(terms_x) if i not in axes_x] + [c for j, c in enumerate(terms_y) if j not in axes_y]
    return contraction.contract(f"{''.join(terms_x)},{''.join(terms_y)}->{''.join(kept)}", x, y)


def _inner(input: TorchTensor, other: Any) -> Value:
    x, y = value_of(input), value_of(other)
    if not x.shape or not y.shape:
        return arithmetic("mul", x, y)
    return _tensordot(input, other, [-1], [-1])


RULES: dict[str, Callable[..., Any]] = {
    "linear": linear, "bilinear": _bilinear,
    **dict.fromkeys(("matmul", "mm.default", "bmm.default", "mv", "dot", "vdot"), matmul), "inner": _inner,
    **dict.fromkeys(("addmm.default", "addmv.default", "baddbmm.default"), _addmm), "addbmm": _addbmm,
    "outer": _outer, "einsum.default": _einsum, "tensordot": _tensordot,
}  # fmt: skip

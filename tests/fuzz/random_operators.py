"""The operators a random program may use: each takes operands from a writer's pool and names one more value."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

from random_programs import MOST_ELEMENTS, Shape, Value, Writer

VOCAB = 11
"""Rows of every embedding table."""

Operator = Callable[[Writer], Value | None]


def product(w: Writer) -> Value | None:
    """W @ x or x @ W, with or without a bias."""
    x = w.pick(1)
    if x is None:
        return None
    (n,), m = x.shape, w.dim()
    left = w.rng.random() < 0.7
    text = f"{w.weights.draw((m, n), n)} @ {x.text}" if left else f"{x.text} @ {w.weights.draw((n, m), n)}"
    if w.rng.random() < 0.6:
        text += f" + {w.weights.draw((m,), 4)}"
    return w.let(text, (m,), 1.5 * x.size + 0.5)


def gates(w: Writer) -> Value | None:
    """Several gates from one product, split."""
    x = w.pick(1)
    if x is None:
        return None
    (n,), m, parts = x.shape, w.dim(), w.rng.choice((2, 3, 4))
    bias = w.weights.draw((parts * m,), 4)
    text = f"cortex.split({w.weights.draw((parts * m, n), n)} @ {x.text} + {bias}, {parts})"
    values = w.several((text,), [(m,)] * parts, min(1.5 * x.size + 0.5, 4))
    a, b = values[:2]
    return w.let(f"cortex.sigmoid({a.text}) * cortex.tanh({b.text})", (m,), 1)


def matrix_product(w: Writer) -> Value | None:
    """A matrix by a matrix or a vector, of the pool or a weight."""
    a = w.pick(2)
    if a is None:
        return None
    rows, n = a.shape
    other = w.pick_shape((n,)) or w.pick_shape((n, n))
    if other is not None and w.rng.random() < 0.6:
        shape = (rows, *other.shape[1:])
        text = f"{a.text} @ {other.text}" if w.rng.random() < 0.5 else f"cortex.matmul({a.text}, {other.text})"
        return w.let(f"{1 / n:.3g} * ({text})", shape, a.size * other.size)
    m = min(w.dim(), 16)
    if w.rng.random() < 0.5:
        return w.let(f"{a.text} @ {w.weights.draw((n, m), n)}", (rows, m), 1.5 * a.size)
    return w.let(f"{w.weights.draw((m, rows), rows)} @ {a.text}", (m, n), 1.5 * a.size)


def bilinear(w: Writer) -> Value | None:
    """Einstein sums with a weight of rank 3, or of operands only."""
    x, y = w.pick(1), w.pick(1)
    if x is None or y is None:
        return None
    (a,), (b,), i = x.shape, y.shape, min(w.dim(), 9)
    if a * b * i > 12_000:
        return w.let(f'cortex.einsum("i,i->", {x.text}, {x.text}) * {1 / a:.3g}', (), x.size**2)
    v = w.weights.draw((i, a, b), a * b)
    match w.rng.randrange(4):
        case 0:
            return w.let(f'cortex.einsum("a,iab,b->i", {x.text}, {v}, {y.text})', (i,), 1.5 * x.size * y.size)
        case 1 if i * a <= MOST_ELEMENTS:
            return w.let(f'cortex.einsum("iab,b->ia", {v}, {y.text})', (i, a), 1.5 * y.size)
        case 2:
            text = f'cortex.einsum("iab,a->ib", {v}, {x.text}) @ {y.text}'
            return w.let(text, (i,), 1.5 * x.size * y.size)
        case _:
            return w.let(f'cortex.einsum("a,iab,b->i", {x.text}, {v}, {x.text if a == b else y.text})', (i,), 3)


def einsum_of_matrices(w: Writer) -> Value | None:
    """Transposed products, traces of products, sums of rows."""
    m = w.pick(2)
    if m is None:
        return None
    a, b = m.shape
    other = w.pick_shape(m.shape) or m
    spec, shape, scale = w.rng.choice(
        [
            ('"ij,ij->"', (), 1 / (a * b)),
            ('"ij,kj->ik"', (a, a), 1 / b),
            ('"ij,ik->jk"', (b, b), 1 / a),
            ('"ij,ij->j"', (b,), 1 / a),
            ('"ij,ij->ij"', (a, b), 1.0),
        ]
    )
    return w.let(f"cortex.einsum({spec}, {m.text}, {other.text}) * {scale:.3g}", shape, m.size * other.size)


def pointwise(w: Writer) -> Value | None:
    """A function of one operand, made safe where it has to be."""
    x = w.pick()
    if x is None:
        return None
    t, s = x.text, x.size
    text, size = w.rng.choice(
        [
            (f"cortex.sigmoid({t})", 1.0),
            (f"cortex.tanh({t})", 1.0),
            (f"cortex.relu({t})", s),
            (f"cortex.elu({t})", s),
            (f"cortex.elu({t}, 0.5)", s),
            (f"cortex.leaky_relu({t})", s),
            (f"cortex.leaky_relu({t}, 0.2)", s),
            (f"cortex.exp(-cortex.abs({t}))", 1.0),
            (f"cortex.exp(cortex.tanh({t}))", 2.7),
            (f"cortex.log(1.5 + cortex.abs({t}))", 2.0),
            (f"cortex.log({t} * {t} + 0.5)", 3.0),
            (f"cortex.sqrt({t} * {t} + 0.25)", s + 0.5),
            (f"cortex.abs({t} - 0.3)", s),
            (f"1.0 - {t}", s + 1),
            (f"-{t}", s),
            (f"({t}) ** 2", s * s),
            (f"({t}) ** 3", s**3),
            (f"{t} * 0.5 + 0.125", s),
            (f"1.0 / (1.25 + {t} * {t})", 0.8),
        ]
    )
    return w.let(text, x.shape, size)


def arithmetic(w: Writer) -> Value | None:
    """A function of two operands of one shape, or of shapes that broadcast."""
    x = w.pick()
    if x is None:
        return None
    fitting = [v for v in w.pool if v.shape in (x.shape, x.shape[1:], ())]
    y = w.rng.choice(fitting)
    a, b = (x.text, y.text) if w.rng.random() < 0.5 else (y.text, x.text)
    s = x.size + y.size
    choices = [
        (f"{a} + {b}", s),
        (f"{a} - {b}", s),
        (f"{a} * {b}", x.size * y.size),
        (f"{a} / (1.5 + cortex.abs({b}))", max(x.size, y.size)),
        (f"cortex.maximum({a}, {b})", max(x.size, y.size)),
        (f"cortex.minimum({a}, {b})", max(x.size, y.size)),
        (f"cortex.maximum({a}, 0.2) * {b}", x.size * y.size),
        (f"cortex.where({a} > {b} + 0.0137, {a}, 0.5 * {b})", s),
        (f"cortex.where(({a} > 0.137) & ({b} <= 0.51), {a}, {b})", s),
        (f"cortex.where(({a} < 0.211) | ~({b} > -0.37), 0.25, {a}) + 0.0 * {b}", s),
        (f"({a} >= 0.0613) * {b}", y.size + x.size),
        (f"cortex.sigmoid({a}) * {b} + (1.0 - cortex.sigmoid({a})) * {a}", s),
    ]
    if len(x.shape) == 2 and (column := w.pick_shape(x.shape[:1])) is not None:
        choices.append((f"{x.text} * {column.text}[:, None]", x.size * column.size))
    text, size = w.rng.choice(choices)
    return w.let(text, x.shape, size)


def movement(w: Writer) -> Value | None:
    """Data movement: concat, stack, slices, reshape, transpose."""
    x = w.pick(1, 2)
    if x is None:
        return None
    if len(x.shape) == 2:
        return _move_matrix(w, x)
    (n,) = x.shape
    other = w.pick(1) or x
    cut = w.rng.randint(0, n - 1)
    choices: list[tuple[str, Shape]] = [
        (f"cortex.concat([{x.text}, {other.text}])", (n + other.shape[0],)),
        (f"cortex.concat([{other.text}, {x.text}, {x.text}], axis=0)", (2 * n + other.shape[0],)),
        (f"cortex.stack([{x.text}, {x.text} * 0.5])", (2, n)),
        (f"cortex.stack([{x.text}, -{x.text}], axis=1)", (n, 2)),
        (f"{x.text}[{cut}:]", (n - cut,)),
        (f"{x.text}[::2]", (len(range(0, n, 2)),)),
        (f"{x.text}[{cut}]", ()),
        (f"{x.text}[-1] * {x.text}", (n,)),
        (f"{x.text}[None, :]", (1, n)),
        (f"{x.text}[..., None]", (n, 1)),
        (f"cortex.reshape({x.text}, 1, {n})", (1, n)),
    ]
    divisor = next((d for d in (2, 3, 4, 5) if n % d == 0 and n > d), None)
    if divisor:
        choices.append((f"cortex.reshape({x.text}, {divisor}, {n // divisor})", (divisor, n // divisor)))
        choices.append((f"{x.text}.reshape({n // divisor}, -1)", (n // divisor, divisor)))
    if n > 1:
        choices.append((f"cortex.split({x.text}, [{n - 1}, 1])[0]", (n - 1,)))
    text, shape = w.rng.choice(choices)
    if math.prod(shape) > MOST_ELEMENTS:
        return None
    return w.let(text, shape, x.size + other.size)


def _move_matrix(w: Writer, x: Value) -> Value | None:
    a, b = x.shape
    i, j = w.rng.randrange(a), w.rng.randrange(b)
    text, shape = w.rng.choice(
        [
            (f"cortex.transpose({x.text})", (b, a)),
            (f"{x.text}.T", (b, a)),
            (f"cortex.reshape({x.text}, {a * b})", (a * b,)),
            (f"{x.text}.reshape({b}, {a})", (b, a)),
            (f"{x.text}[{i}]", (b,)),
            (f"{x.text}[:, {j}]", (a,)),
            (f"{x.text}[..., {j}:]", (a, b - j)),
            (f"{x.text}[{i}:, ::2]", (a - i, len(range(0, b, 2)))),
            (f"{x.text}[{i}, {j}]", ()),
            (f"cortex.concat([{x.text}, {x.text} * 0.5], axis=1)", (a, 2 * b)),
            (f"cortex.concat([{x.text}, {x.text} - 0.5], axis=0)", (2 * a, b)),
            (f"cortex.split({x.text}, {b}, axis=1)[{j}]", (a, 1)),
        ]
    )
    return None if math.prod(shape) > MOST_ELEMENTS else w.let(text, shape, x.size + 0.5)


def reduction(w: Writer) -> Value | None:
    """Softmax, layer norm, and reductions over axes."""
    x = w.pick(1, 2)
    if x is None:
        return None
    n, t = x.shape[-1], x.text
    axis = w.rng.randrange(len(x.shape))
    rest = tuple(s for i, s in enumerate(x.shape) if i != axis)
    kept = tuple(1 if i == axis else s for i, s in enumerate(x.shape))
    scale = f"{1 / x.shape[axis]:.3g}"
    scale_bias = f"{w.weights.draw((n,))}, {w.weights.draw((n,), 4)}"
    text, shape, size = w.rng.choice(
        [
            (f"cortex.softmax({t})", x.shape, 1.0),
            (f"cortex.softmax({t}, axis={axis})", x.shape, 1.0),
            (f"cortex.layer_norm({t}, eps=0.1)", x.shape, 2.0),
            (f"cortex.layer_norm({t}, {scale_bias}, eps=0.1)", x.shape, 3.0),
            (f"cortex.sum({t}, axis={axis}) * {scale}", rest, x.size),
            (f"{t}.sum(axis={axis}, keepdims=True) * {scale}", kept, x.size),
            (f"cortex.mean({t}, axis={axis})", rest, x.size),
            (f"cortex.mean({t})", (), x.size),
            (f"{t}.mean(axis=-1)", x.shape[:-1], x.size),
            (f"cortex.max({t}, axis={axis})", rest, x.size),
            (f"cortex.min({t}, axis={axis}, keepdims=True)", kept, x.size),
            (f"cortex.max({t})", (), x.size),
        ]
    )
    return w.let(text, shape, size)


def dot_and_outer(w: Writer) -> Value | None:
    """Dot and outer products of vectors."""
    x = w.pick(1)
    if x is None:
        return None
    y = w.pick_shape(x.shape) or x
    other = w.pick(1) or x
    if w.rng.random() < 0.5:
        return w.let(f"cortex.dot({x.text}, {y.text}) * {1 / x.shape[0]:.3g}", (), x.size * y.size)
    shape = (*x.shape, *other.shape)
    if math.prod(shape) > MOST_ELEMENTS:
        return None
    return w.let(f"cortex.outer({x.text}, {other.text})", shape, x.size * other.size)


def lookup(w: Writer) -> Value | None:
    """A row of a table: a scalar, a vector or a matrix."""
    shape: Shape = w.rng.choice([(), (w.dim(),), (w.dim(),), (w.dim(),), w.matrix()])
    return w.let(table_row(w, "node", shape), shape, 2.0)


def table_row(w: Writer, owner: str, shape: Shape) -> str:
    """The text of a look-up in a table whose rows have this shape."""
    name = w.rng.choice(("word", "word", "tag"))
    table = w.weights.draw((VOCAB, *shape), reuse=0.5)
    return f"cortex.embedding({table}, {owner}.{name})" if not w.weights.prefix else f"{table}[{owner}.{name}]"


def field_of_node(w: Writer) -> Value | None:
    """A float field: a vector or a scalar; or an integer as a number."""
    text, shape = w.rng.choice([("node.x * 1.0", (w.dims[-1],)), ("cortex.tanh(node.s)", ()), ("node.rank * 0.2", ())])
    return w.let(text, shape, 1.5)


def constant(w: Writer) -> Value | None:
    """A constant, a weight by itself, or something computed from weights only."""
    n = w.dim()
    text = w.rng.choice(
        [
            f"cortex.zeros({n}) + {w.weights.draw((n,))}",
            f"cortex.ones({n}) * 0.5",
            f"cortex.full(({n},), 0.3)",
            f"cortex.tanh({w.weights.draw((n,))} * {w.weights.draw((n,))})",
            f"cortex.tanh({w.weights.draw((n, 5), 5)} @ {w.weights.draw((5,))})",
        ]
    )
    return w.let(text, (n,), 1.5)


OPERATORS: tuple[tuple[Operator, int], ...] = (
    (product, 6),
    (gates, 2),
    (matrix_product, 4),
    (bilinear, 2),
    (einsum_of_matrices, 1),
    (pointwise, 6),
    (arithmetic, 7),
    (movement, 4),
    (reduction, 4),
    (dot_and_outer, 2),
    (lookup, 1),
    (field_of_node, 1),
    (constant, 1),
)


def grow(w: Writer, steps: int, leave_out: tuple[Operator, ...] = ()) -> None:
    """Apply `steps` random operators."""
    choices = [(op, n) for op, n in OPERATORS if op not in leave_out]
    for _ in range(steps):
        operator = w.rng.choices([op for op, _ in choices], [n for _, n in choices])[0]
        operator(w)


def squash(rng: Random, text: str, shape: Shape) -> str:
    """A bounded function of a value: what a state ends with."""
    choices = [f"cortex.tanh({text})", f"cortex.sigmoid({text})", f"0.8 * cortex.tanh({text})"]
    if shape:
        choices.append(f"0.5 * cortex.layer_norm({text}, eps=0.1)")
        choices.append(f"cortex.softmax({text})")
    return rng.choice(choices)

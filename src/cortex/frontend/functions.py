"""The tensor functions of the public interface. Each takes tensors, numbers, NumPy arrays and fields of nodes.

While a model is traced they make the graph of its kind; else they compute, as numpy_meanings.py says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, ParamSpec

from cortex.frontend import children, contraction, indexing, movement, numpy_meanings, pointwise, reduction
from cortex.frontend.builder import Value, builder, is_tracing
from cortex.frontend.elementary import exp_minus_1_below_0
from cortex.frontend.pointwise import arithmetic, comparison, fill
from cortex.frontend.spans import fail
from cortex.frontend.tensor import Operand, Tensor, row_of, value_of

P = ParamSpec("P")


def computes_untraced(traced: Callable[P, Any]) -> Callable[P, Any]:
    """Let a function compute with NumPy where nothing is being traced."""
    computed: Callable[P, Any] = getattr(numpy_meanings, traced.__name__)

    @wraps(traced)
    def either(*args: P.args, **kwargs: P.kwargs) -> Any:
        if is_tracing():
            return traced(*args, **kwargs)
        return numpy_meanings.in_a_run(computed(*args, **kwargs))

    return either


@computes_untraced
def sigmoid(x: Any) -> Tensor:
    """1 / (1 + exp(-x))."""
    return Tensor(pointwise.unary("sigmoid", value_of(x)))


@computes_untraced
def tanh(x: Any) -> Tensor:
    """The hyperbolic tangent."""
    return Tensor(pointwise.unary("tanh", value_of(x)))


@computes_untraced
def exp(x: Any) -> Tensor:
    """e to the power of x."""
    return Tensor(pointwise.unary("exp", value_of(x)))


@computes_untraced
def log(x: Any) -> Tensor:
    """The natural logarithm."""
    return Tensor(pointwise.unary("log", value_of(x)))


@computes_untraced
def sqrt(x: Any) -> Tensor:
    """The square root."""
    return Tensor(pointwise.unary("sqrt", value_of(x)))


@computes_untraced
def abs(x: Any) -> Tensor:
    """The absolute value."""
    return Tensor(pointwise.unary("abs", value_of(x)))


@computes_untraced
def relu(x: Any) -> Tensor:
    """max(x, 0)."""
    return Tensor(arithmetic("max", value_of(x), fill(0.0)))


@computes_untraced
def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """x where x > 0, else alpha * (exp(x) - 1)."""
    v = value_of(x)
    negative = exp_minus_1_below_0(arithmetic("min", v, fill(0.0)))
    return Tensor(pointwise.where(comparison("gt", v, fill(0.0)), v, arithmetic("mul", fill(alpha), negative)))


@computes_untraced
def leaky_relu(x: Any, slope: float = 0.01) -> Tensor:
    """x where x > 0, else slope * x."""
    v = value_of(x)
    return Tensor(pointwise.where(comparison("gt", v, fill(0.0)), v, arithmetic("mul", fill(slope), v)))


@computes_untraced
def maximum(x: Any, y: Any) -> Tensor:
    """The larger of two elements."""
    return Tensor(arithmetic("max", value_of(x), value_of(y)))


@computes_untraced
def minimum(x: Any, y: Any) -> Tensor:
    """The smaller of two elements."""
    return Tensor(arithmetic("min", value_of(x), value_of(y)))


@computes_untraced
def where(cond: Any, x: Any, y: Any) -> Tensor:
    """`x` where `cond`, else `y`: how a model chooses by a computed value. Both are computed."""
    if isinstance(cond, Operand):
        cond = cond._cortex_condition()
    if isinstance(cond, bool):
        a, b = value_of(x), value_of(y)
        return Tensor(pointwise.broadcast_to(a if cond else b, pointwise.broadcast_shapes("where()", a, b)))
    return Tensor(pointwise.where(value_of(cond), value_of(x), value_of(y)))


@computes_untraced
def concat(xs: Iterable[Any], axis: int = 0) -> Tensor:
    """Join tensors along an axis."""
    values = _several("concat", xs)
    if not values[0].shape:
        raise fail("concat() of scalars: use cortex.stack to make a vector of them.")
    return Tensor(movement.concat(values, reduction.normalize_axis("concat", values[0], axis)))


@computes_untraced
def stack(xs: Iterable[Any], axis: int = 0) -> Tensor:
    """Join tensors of one shape along a new axis."""
    values = _several("stack", xs)
    at = reduction.normalize_axis("stack", values[0], axis, extra=1)
    for v in values:
        if v.shape != values[0].shape:
            raise fail(f"stack() of {values[0].text()} and {v.text()}: all parts must have the same shape.")
    return Tensor(movement.concat([movement.reshape(v, (*v.shape[:at], 1, *v.shape[at:])) for v in values], at))


@computes_untraced
def split(x: Any, parts: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Cut into `parts` equal parts along an axis, or into parts of the given sizes."""
    value = value_of(x)
    return [Tensor(v) for v in movement.split(value, parts, reduction.normalize_axis("split", value, axis))]


@computes_untraced
def reshape(x: Any, *shape: Any) -> Tensor:
    """The same elements in another shape."""
    return Tensor(movement.reshape(value_of(x), _sizes(shape, least=-1)))


@computes_untraced
def transpose(x: Any, axes: Sequence[int] | None = None) -> Tensor:
    """The axes reversed, or permuted."""
    return Tensor(movement.transpose(value_of(x), axes))


@computes_untraced
def embedding(table: Any, index: Any) -> Tensor:
    """Row `index` of a table, which may be a NumPy array: `cortex.embedding(emb, node.word)`."""
    if isinstance(index, int):
        return Tensor(indexing.index_value(value_of(table), (index,)))
    if not isinstance(index, Operand):
        raise fail(f"embedding(): the index is a {type(index).__name__}; it must be an integer field: node.word.")
    return Tensor(row_of(value_of(table), index))


@computes_untraced
def softmax(x: Any, axis: int = -1) -> Any:
    """Along an axis of a tensor; or over children, as in `a = softmax(score(k) for k in node.children)`.

    Over children it gives one value per child: `cortex.sum(a_k * f(k).h for a_k, k in zip(a, node.children))`.
    """
    return children.softmax_items(x) if _is_items(x) else Tensor(reduction.softmax(value_of(x), axis))


@computes_untraced
def layer_norm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Normalize along the last axis to mean 0 and variance 1, then scale and shift."""
    scale = None if weight is None else value_of(weight)
    shift = None if bias is None else value_of(bias)
    return Tensor(reduction.layer_norm(value_of(x), scale, shift, eps))


@computes_untraced
def sum(x: Any, axis: reduction.Axis = None, keepdims: bool = False) -> Tensor:
    """Over axes of a tensor; or over children: `cortex.sum(f(k).h for k in node.children)`, 0 over none."""
    if _is_items(x, axis):
        return _over_items(children.reduce_items("sum", "add", x))
    return Tensor(reduction.axis_reduction("sum", "add", value_of(x), axis, keepdims))


@computes_untraced
def mean(x: Any, axis: reduction.Axis = None, keepdims: bool = False) -> Tensor:
    """Over axes of a tensor; or over children: `cortex.mean(f(k).h for k in node.children)`, 0 over none."""
    if _is_items(x, axis):
        return _over_items(children.mean_items(x))
    return Tensor(reduction.mean(value_of(x), axis, keepdims))


@computes_untraced
def max(x: Any, axis: reduction.Axis = None, keepdims: bool = False) -> Tensor:
    """Over axes of a tensor; or over children, 0 over none."""
    if _is_items(x, axis):
        return _over_items(children.reduce_items("max", "max", x))
    return Tensor(reduction.axis_reduction("max", "max", value_of(x), axis, keepdims))


@computes_untraced
def min(x: Any, axis: reduction.Axis = None, keepdims: bool = False) -> Tensor:
    """Over axes of a tensor; or over children, 0 over none."""
    if _is_items(x, axis):
        return _over_items(children.reduce_items("min", "min", x))
    return Tensor(reduction.axis_reduction("min", "min", value_of(x), axis, keepdims))


@computes_untraced
def matmul(x: Any, y: Any) -> Tensor:
    """`x @ y` of vectors and matrices."""
    return Tensor(contraction.matmul(value_of(x), value_of(y)))


@computes_untraced
def dot(x: Any, y: Any) -> Tensor:
    """The dot product of vectors; as `x @ y` for matrices."""
    return Tensor(contraction.dot(value_of(x), value_of(y)))


@computes_untraced
def outer(x: Any, y: Any) -> Tensor:
    """All products of an element of one vector and one of another."""
    return Tensor(contraction.outer(value_of(x), value_of(y)))


@computes_untraced
def einsum(spec: str, *operands: Any) -> Tensor:
    """Sums of products in Einstein's notation: `cortex.einsum("a,iab,b->i", x, V, y)`."""
    return Tensor(contraction.einsum(spec, [value_of(x) for x in operands]))


@computes_untraced
def zeros(*shape: Any) -> Tensor:
    """A tensor of zeros."""
    return Tensor(fill(0.0, _sizes(shape)))


@computes_untraced
def ones(*shape: Any) -> Tensor:
    """A tensor of ones."""
    return Tensor(fill(1.0, _sizes(shape)))


@computes_untraced
def full(shape: int | Sequence[int], value: float) -> Tensor:
    """A tensor with `value` everywhere."""
    if not isinstance(value, int | float):
        raise fail(f"full(): the value is a {type(value).__name__}; it must be a number. For tensors, add zeros(...).")
    return Tensor(fill(value, _sizes((shape,))))


def _is_items(x: Any, axis: reduction.Axis = None) -> bool:
    """Is `x` a collection of tensors rather than one? Then the reduction is over its items, and has no axis."""
    items = children.is_list(x) if isinstance(x, Operand) else isinstance(x, Iterable) and not hasattr(x, "__array__")
    if items and axis is not None:
        raise fail("a reduction over several tensors or over children has no axis; reduce each of them first.")
    return items


def _over_items(value: Value) -> Tensor:
    """What a reduction over items gave. Its shape is kept: a computation over no items cannot tell it."""
    site, k = numpy_meanings.call_site(), builder().knowledge
    if site is not None and k.guess is None:
        k.reduced.setdefault(site, set()).add(value.shape)
    return Tensor(value)


def _several(what: str, xs: Iterable[Any]) -> list[Value]:
    if not isinstance(xs, Iterable) or isinstance(xs, Operand):
        raise fail(f"{what}() takes a list of tensors: cortex.{what}([x, y]).")
    values = [value_of(x) for x in xs]
    if not values:
        raise fail(f"{what}() of nothing: give at least one tensor.")
    return values


def _sizes(shape: tuple[Any, ...], least: int = 0) -> tuple[int, ...]:
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    if not all(isinstance(n, int) and n >= least for n in sizes):
        raise fail(
            f"a shape consists of non-negative integers, not {sizes!r}. Sizes are constants, such as x.shape[0]."
        )
    return sizes

"""Two-dimensional convolutions as programs of ILIR, before any step: what is computed, not how.

    for n, p, q, k:  sum = 0
                     for r, s, c:  sum += source[n, p*stride + r*dilation, q*stride + s*dilation, c] * w[k, r, s, c]
                     y[n, p, q, k] = activation(sum + bias[k] + residual[n, p, q, k])

Rows that lie above or below the image are left out of the loop over r. Columns beside it, and images with their
channels first, are read from a copy with zeros beside it and channels last, which the program makes first. What a
filter of `dilation` 1 reads in one row of the image lies together, so s and c are then one loop. A filter of one point
makes no difference between rows and columns of the image: it is a matrix product, for channels first as well, if the
points of an image fill vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cortex.ilir.ir import Accumulate, Buffer, For, Func, Scope, Stmt, Store
from cortex.ir.scalar import Binary, Expr, Float, Int, Load, Var
from cortex.ir.simplify import add, ceildiv, floordiv, mul, simplify, sub
from cortex.primitives.epilogue import PLAIN, Epilogue
from cortex.primitives.product import Product, nest
from cortex.primitives.product import lower as lower_product

Layout = Literal["NCHW", "NHWC"]
Pair = tuple[int, int]

VECTOR, FILL = 16, 0.9
"""Vectors along the points of an image are of use if so much of them is filled; else channels are moved last."""


@dataclass(frozen=True)
class Convolution:
    """A convolution of known shape. `padding` is ((above, below), (left, right)); pairs are (vertical, horizontal)."""

    batch: int
    image: Pair
    channels: int
    filters: int
    kernel: Pair
    stride: Pair = (1, 1)
    padding: tuple[Pair, Pair] = ((0, 0), (0, 0))
    dilation: Pair = (1, 1)
    groups: int = 1
    layout: Layout = "NHWC"
    epilogue: Epilogue = PLAIN

    @property
    def out(self) -> Pair:
        """Height and width of the result; not positive where the filter does not fit."""
        height, width = (
            (size + sum(pad) - d * (k - 1) - 1) // st + 1
            for size, pad, d, k, st in zip(
                self.image, self.padding, self.dilation, self.kernel, self.stride, strict=True
            )
        )
        return height, width

    @property
    def flops(self) -> int:
        """Multiplications and additions, those with the zeros of the padding included."""
        points = self.batch * self.out[0] * self.out[1]
        return 2 * points * self.filters * self.kernel[0] * self.kernel[1] * (self.channels // self.groups)

    @property
    def is_pointwise(self) -> bool:
        """Does every point of the result read exactly the same point of the image?"""
        simple = self.kernel == self.stride == (1, 1) and self.padding == ((0, 0), (0, 0))
        points = self.image[0] * self.image[1]
        fills = points >= FILL * -(-points // VECTOR) * VECTOR
        return simple and self.groups == 1 and (self.layout == "NHWC" or fills)

    @property
    def is_depthwise(self) -> bool:
        """Has every channel a filter of its own?"""
        return self.groups == self.channels == self.filters

    @property
    def copies(self) -> bool:
        """Is the image copied first?"""
        return self.layout == "NCHW" or self.padding[1] != (0, 0)

    @property
    def joins_columns(self) -> bool:
        """Are the columns and channels that a filter reads in one row of the image one loop?"""
        return self.groups == 1 and not self.is_depthwise and (self.dilation[1] == 1 or self.kernel[1] == 1)


def lower(c: Convolution) -> Func:
    """The program of a convolution."""
    return lower_product(as_product(c)) if c.is_pointwise else _general(c)


def as_product(c: Convolution) -> Product:
    """A convolution by filters of one point is a matrix product: points of the image by channels by filters."""
    points = c.image[0] * c.image[1]
    if c.layout == "NCHW":
        return Product(c.filters, points, c.channels, c.batch, weights_first=True, epilogue=c.epilogue)
    return Product(c.batch * points, c.filters, c.channels, epilogue=c.epilogue)


def _general(c: Convolution) -> Func:
    """Loops n, g, p, q, k around r, s, c (or r, sc); the copy of the image before them, that of the result after."""
    height, width = c.image
    high, wide = c.out
    columns = sum(c.padding[1]) + width if c.copies else width
    image = (c.batch, c.channels, height * width) if c.layout == "NCHW" else (c.batch, height, width * c.channels)
    shape: tuple[Expr, ...] = (Int(c.batch), Int(high), Int(wide), Int(c.filters))
    buffers = [
        Buffer("x", "f32", tuple(map(Int, image)), Scope.FIELD),
        Buffer("w", "f32", tuple(map(Int, weight_shape(c))), Scope.PARAM),
        *c.epilogue.buffers(Int(c.filters), _stored_shape(c)),
        Buffer("y", "f32", _stored_shape(c), Scope.STATE),
        Buffer("sum", "f32", shape, Scope.SCRATCH),
    ]
    body: list[Stmt] = []
    if c.copies:
        rows = (Int(c.batch), Int(height), Int(columns * c.channels))
        buffers.append(Buffer("image", "f32", rows, Scope.SCRATCH))
        body += _copy(c)
    body += _sums(c, "image" if c.copies else "x")
    if c.layout == "NCHW":
        body += _copy_back(c)
    return Func("conv2d", (), (), tuple(buffers), tuple(body))


def weight_shape(c: Convolution) -> tuple[int, ...]:
    """The filters as the program reads them: (filters, rows, columns, channels), the last two joined where they can."""
    (high, wide), depth = c.kernel, c.channels // c.groups
    if c.is_pointwise:
        return c.filters, depth
    if c.is_depthwise:
        return c.filters, high, wide
    return (c.filters, high, wide * depth) if c.joins_columns else (c.filters, high, wide, depth)


def _stored_shape(c: Convolution) -> tuple[Expr, ...]:
    high, wide = c.out
    shape = (c.batch, c.filters, high * wide) if c.layout == "NCHW" else (c.batch, high, wide, c.filters)
    return tuple(map(Int, shape))


def _sums(c: Convolution, source: str) -> list[Stmt]:
    n, g, p, q, k = (Var(name) for name in "ngpqk")
    high, wide = c.out
    first = sub(mul(p, c.stride[0]), c.padding[0][0])  # the row of the image that the first row of a filter meets
    depth, per_group = c.channels // c.groups, c.filters // c.groups
    filters = add(mul(g, per_group), k) if c.groups > 1 and not c.is_depthwise else k
    r, s, i, both = Var("r"), Var("s"), Var("c"), Var("sc")
    row = add(first, mul(r, c.dilation[0]))
    column = mul(q, c.stride[1])
    loops: list[tuple[Var, int]]
    if c.joins_columns:
        read = add(mul(column, c.channels), both)
        weight: tuple[Expr, ...] = (filters, r, both)
        loops = [(both, c.kernel[1] * depth)]
    elif c.is_depthwise:
        read = add(mul(add(column, mul(s, c.dilation[1])), c.channels), k)
        weight = (k, r, s)
        loops = [(s, c.kernel[1])]
    else:
        channel = add(mul(g, depth), i) if c.groups > 1 else i
        read = add(mul(add(column, mul(s, c.dilation[1])), c.channels), channel)
        weight = (filters, r, s, i)
        loops = [(s, c.kernel[1]), (i, depth)]
    place = (n, p, q, filters)
    product = Binary("mul", Load(source, (n, row, read)), Load("w", weight))
    total: tuple[Stmt, ...] = nest(tuple(loops), (Accumulate("sum", place, "add", product),))
    lo, hi = _rows_met(c, first)
    result: tuple[Stmt, ...] = (Store("sum", place, Float(0.0)), For("r", lo, hi, total))
    if c.layout == "NHWC":
        result = (*result, Store("y", place, c.epilogue.value(Load("sum", place), filters, place)))
    inner = ((p, high), (q, wide), (k, c.filters if c.is_depthwise else per_group))
    group = () if c.is_depthwise or c.groups == 1 else ((g, c.groups),)
    return list(nest(((n, c.batch), *group, *inner), result))


def _rows_met(c: Convolution, first: Expr) -> tuple[Expr, Expr]:
    """The rows r of a filter that meet the image, for the filter whose first row is at `first`."""
    rows, step, height = c.kernel[0], c.dilation[0], c.image[0]
    bounds = {"p": (0, c.out[0] - 1)}
    lo = floordiv(Binary("max", sub(step - 1, first), Int(0)), step)
    hi = Binary("min", ceildiv(Binary("max", sub(height, first), Int(0)), step), Int(rows))
    return simplify(lo, bounds), simplify(hi, bounds)


def _copy(c: Convolution) -> list[Stmt]:
    """The image with its channels last and zeros beside its rows."""
    height, width = c.image
    left, right = c.padding[1]
    n, h = Var("copy_n"), Var("copy_h")
    parts: list[Stmt] = []
    for name, begin, columns in (("left", 0, left), ("right", left + width, right)):
        if columns:
            z = Var(f"copy_{name}")
            zero = Store("image", (n, h, add(z, begin * c.channels)), Float(0.0))
            parts += nest(((z, columns * c.channels),), (zero,))
    if c.layout == "NHWC":
        e = Var("copy_e")
        moved = Store("image", (n, h, add(e, left * c.channels)), Load("x", (n, h, e)))
        parts += nest(((e, width * c.channels),), (moved,))
    else:
        w, i = Var("copy_w"), Var("copy_c")
        place = (n, h, add(mul(add(w, left), c.channels), i))
        parts += nest(((w, width), (i, c.channels)), (Store("image", place, Load("x", (n, i, add(mul(h, width), w)))),))
    return list(nest(((n, c.batch), (h, height)), tuple(parts)))


def _copy_back(c: Convolution) -> list[Stmt]:
    """The result with its channels first."""
    high, wide = c.out
    n, p, k, q = Var("back_n"), Var("back_p"), Var("back_k"), Var("back_q")
    place = (n, k, add(mul(p, wide), q))
    value = c.epilogue.value(Load("sum", (n, p, q, k)), k, place)
    return list(nest(((n, c.batch), (p, high), (k, c.filters), (q, wide)), (Store("y", place, value),)))

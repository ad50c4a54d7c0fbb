"""Two-dimensional convolutions as programs of ILIR, before any step: what is computed, not how.

    for n, p, q, k:  sum = 0
                     for r, s, c:  sum += source[n, p*stride + r*dilation, q*stride + s*dilation, c] * w[k, r, s, c]
                     y[n, p, q, k] = activation(sum + bias[k] + residual[n, p, q, k])

Rows that lie above or below the image are left out of the loop over r. Columns beside it, and images with their
channels first, are read from a copy with zeros beside it and channels last, which the program makes first. What a
filter of `dilation` 1 reads in one row of the image lies together, so s and c are then one loop. A filter of one point
makes no difference between rows and columns of the image: it is a matrix product, for channels first as well, if the
points of an image fill vectors.

Images whose channels come in blocks (NCHW16c: 16 channels of a point lie together) are read as they are, and the sums
run over blocks of channels outside the rows of a filter, if a block of the result is some whole vectors:

    for d, r, sc:  sum += source[n, d, p*stride + r*dilation, q*stride*16 + sc] * w[k, d, r, sc]

Else they are copied, as images with their channels first are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from cortex.ilir.ir import Accumulate, Buffer, For, Func, Scope, Stmt, Store
from cortex.ir.scalar import Binary, Expr, Float, Int, Load, Var
from cortex.ir.simplify import add, ceildiv, floordiv, mod, mul, simplify, sub
from cortex.primitives.epilogue import PLAIN, Epilogue
from cortex.primitives.product import Product, nest
from cortex.primitives.product import lower as lower_product
from cortex.runtime.storage import Array

Pair = tuple[int, int]

VECTOR, FILL = 16, 0.9
"""Vectors along the points of an image are of use if so much of them is filled; else channels are moved last."""


@dataclass(frozen=True)
class Convolution:
    """A convolution of known shape. `padding` is ((above, below), (left, right)); pairs are (vertical, horizontal).

    `layout` is "NHWC", "NCHW" or "NCHW<b>c", with channels in blocks of b; vectors of the machine have `lanes`.
    """

    batch: int
    image: Pair
    channels: int
    filters: int
    kernel: Pair
    stride: Pair = (1, 1)
    padding: tuple[Pair, Pair] = ((0, 0), (0, 0))
    dilation: Pair = (1, 1)
    groups: int = 1
    layout: str = "NHWC"
    epilogue: Epilogue = PLAIN
    lanes: int = VECTOR

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
        """Is it a matrix product of whole images?"""
        points = self.image[0] * self.image[1]
        fills = points >= FILL * -(-points // VECTOR) * VECTOR
        return self.is_flat and (self.layout == "NHWC" or (self.layout == "NCHW" and fills))

    @property
    def is_flat(self) -> bool:
        """Does every point of the result read exactly the same point of the image?"""
        simple = self.kernel == self.stride == (1, 1) and self.padding == ((0, 0), (0, 0))
        return simple and self.groups == 1

    @property
    def block(self) -> int:
        """How many channels of a point lie together, with those of other points in between; 0 for all or one."""
        return block_of(self.layout)

    @property
    def is_by_blocks(self) -> bool:
        """Are blocks of channels read and written as they are?"""
        if not self.block or self.block % self.lanes:
            return False
        groups = 1 if self.is_depthwise else self.groups
        return not (self.channels // groups % self.block or self.filters // groups % self.block)

    @property
    def turns(self) -> bool:
        """Is the image copied to one with its channels last, and the result copied back?"""
        return self.layout != "NHWC" and not self.is_by_blocks

    @property
    def is_depthwise(self) -> bool:
        """Has every channel a filter of its own?"""
        return self.groups == self.channels == self.filters

    @property
    def copies(self) -> bool:
        """Is the image copied first?"""
        return self.turns or self.padding[1] != (0, 0)

    @property
    def joins_columns(self) -> bool:
        """Are the columns and channels that a filter reads in one row of the image one loop?"""
        return self.groups == 1 and not self.is_depthwise and (self.dilation[1] == 1 or self.kernel[1] == 1)


def block_of(layout: str) -> int:
    """16 of "NCHW16c", 0 of other layouts."""
    found = re.fullmatch(r"NCHW([1-9]\d*)c", layout)
    return int(found[1]) if found else 0


def lower(c: Convolution) -> Func:
    """The program of a convolution."""
    if c.is_pointwise:
        return lower_product(as_product(c))
    if c.is_by_blocks and c.is_flat:
        c = replace(c, image=(1, c.image[0] * c.image[1]))
    return _general(c)


def as_product(c: Convolution) -> Product:
    """A convolution by filters of one point is a matrix product: points of the image by channels by filters."""
    points = c.image[0] * c.image[1]
    if c.layout == "NCHW":
        return Product(c.filters, points, c.channels, c.batch, weights_first=True, epilogue=c.epilogue)
    return Product(c.batch * points, c.filters, c.channels, epilogue=c.epilogue)


def _general(c: Convolution) -> Func:
    """Loops n, g, p, q, k around r, s, c (or r, sc); the copy of the image before them, that of the result after."""
    high, wide = c.out
    shape: tuple[Expr, ...] = (Int(c.batch), Int(high), Int(wide), Int(c.filters))
    stored = shape if c.layout == "NHWC" else _stored_shape(c, c.filters, c.out)
    buffers = [
        Buffer("x", "f32", _stored_shape(c, c.channels, c.image), Scope.FIELD),
        Buffer("w", "f32", tuple(map(Int, weight_shape(c))), Scope.PARAM),
        *c.epilogue.buffers(Int(c.filters), stored),
        Buffer("y", "f32", stored, Scope.STATE),
        Buffer("sum", "f32", shape, Scope.SCRATCH),
    ]
    body: list[Stmt] = []
    if c.copies:
        like = replace(c, layout="NHWC") if c.turns else c
        columns = sum(c.padding[1]) + c.image[1]
        rows = _stored_shape(like, c.channels, (c.image[0], columns))
        buffers.append(Buffer("image", "f32", rows, Scope.SCRATCH))
        body += _copy(c)
    body += _sums(c, "image" if c.copies else "x")
    if c.turns:
        body += _copy_back(c)
    return Func("conv2d", (), (), tuple(buffers), tuple(body))


def weight_shape(c: Convolution) -> tuple[int, ...]:
    """The filters as the program reads them: (filters, rows, columns, channels), the last two joined where they can."""
    (high, wide), depth = c.kernel, c.channels // c.groups
    if c.is_pointwise:
        return c.filters, depth
    if c.is_depthwise:
        return c.filters, high, wide
    if c.is_by_blocks:
        blocks = depth // c.block
        joined = (c.filters, blocks, high, wide * c.block)
        return joined if c.joins_columns else (c.filters, blocks, high, wide, c.block)
    return (c.filters, high, wide * depth) if c.joins_columns else (c.filters, high, wide, depth)


def arranged(c: Convolution, weight: Array) -> Array:
    """Filters (filters, channels, rows, columns) in the order in which the program reads them."""
    if c.is_by_blocks and not c.is_depthwise:
        weight = weight.reshape(c.filters, -1, c.block, *c.kernel).transpose(0, 1, 3, 4, 2)
    else:
        weight = weight.transpose(0, 2, 3, 1)
    return weight.reshape(weight_shape(c))


def _stored_shape(c: Convolution, channels: int, size: Pair) -> tuple[Expr, ...]:
    """An array of images; what is always indexed together is one axis."""
    high, wide = size
    if c.block:
        return Int(c.batch), Int(channels // c.block), Int(high), Int(wide * c.block)
    if c.layout == "NCHW":
        return Int(c.batch), Int(channels), Int(high * wide)
    return Int(c.batch), Int(high), Int(wide * channels)


def _stored_at(c: Convolution, channels: int, wide: int, n: Expr, h: Expr, w: Expr, channel: Expr) -> tuple[Expr, ...]:
    """The index of a channel of a point in such an array, `wide` points across."""
    if c.block:
        return n, floordiv(channel, c.block), h, add(mul(w, c.block), mod(channel, c.block))
    if c.layout == "NCHW":
        return n, channel, add(mul(h, wide), w)
    return n, h, add(mul(w, channels), channel)


def _sums(c: Convolution, source: str) -> list[Stmt]:
    n, g, p, q, k = (Var(name) for name in "ngpqk")
    high, wide = c.out
    first = sub(mul(p, c.stride[0]), c.padding[0][0])  # the row of the image that the first row of a filter meets
    per_group = c.filters // c.groups
    filters = add(mul(g, per_group), k) if c.groups > 1 and not c.is_depthwise else k
    row = add(first, mul(Var("r"), c.dilation[0]))
    read, weight, blocks, loops = _read(c, row, filters)
    place = (n, p, q, filters)
    product = Binary("mul", Load(source, read), Load("w", weight))
    total: tuple[Stmt, ...] = nest(loops, (Accumulate("sum", place, "add", product),))
    lo, hi = _rows_met(c, first)
    result: tuple[Stmt, ...] = (Store("sum", place, Float(0.0)), *nest(blocks, (For("r", lo, hi, total),)))
    if not c.turns:
        stored = place if c.layout == "NHWC" else _stored_at(c, c.filters, wide, n, p, q, filters)
        result = (*result, Store("y", stored, c.epilogue.value(Load("sum", place), filters, stored)))
    inner = ((p, high), (q, wide), (k, c.filters if c.is_depthwise else per_group))
    group = () if c.is_depthwise or c.groups == 1 else ((g, c.groups),)
    return list(nest(((n, c.batch), *group, *inner), result))


Loops = tuple[tuple[Var, int], ...]


def _read(c: Convolution, row: Expr, filters: Expr) -> tuple[tuple[Expr, ...], tuple[Expr, ...], Loops, Loops]:
    """What a sum reads of the image and of the weights, and its loops around and inside that over a filter's rows."""
    n, g, q, k, r, s, i, both, d = (Var(name) for name in ("n", "g", "q", "k", "r", "s", "c", "sc", "d"))
    depth, column = c.channels // c.groups, mul(q, c.stride[1])
    across = add(column, mul(s, c.dilation[1]))
    last = replace(c, layout="NHWC") if c.turns else c  # what is read has its channels last, or in blocks
    if c.is_depthwise:
        return _stored_at(last, c.channels, 0, n, row, across, k), (k, r, s), (), ((s, c.kernel[1]),)
    together = c.block if last.block else c.channels
    blocks: Loops = ((d, depth // c.block),) if last.block else ()
    which: tuple[Expr, ...] = (add(mul(g, depth // c.block), d) if c.groups > 1 else d,) if last.block else ()
    outer = (d,) if last.block else ()
    if c.joins_columns:
        read = (n, *which, row, add(mul(column, together), both))
        return read, (filters, *outer, r, both), blocks, ((both, c.kernel[1] * (c.block if last.block else depth)),)
    channel = add(mul(g, depth), i) if c.groups > 1 and not last.block else i
    read = (n, *which, row, add(mul(across, together), channel))
    inside = ((s, c.kernel[1]), (i, c.block if last.block else depth))
    return read, (filters, *outer, r, s, i), blocks, inside


def _rows_met(c: Convolution, first: Expr) -> tuple[Expr, Expr]:
    """The rows r of a filter that meet the image, for the filter whose first row is at `first`."""
    rows, step, height = c.kernel[0], c.dilation[0], c.image[0]
    bounds = {"p": (0, c.out[0] - 1)}
    lo = floordiv(Binary("max", sub(step - 1, first), Int(0)), step)
    hi = Binary("min", ceildiv(Binary("max", sub(height, first), Int(0)), step), Int(rows))
    return simplify(lo, bounds), simplify(hi, bounds)


def _copy(c: Convolution) -> list[Stmt]:
    """The image with zeros beside its rows, and with its channels last unless they are read in blocks."""
    height, width = c.image
    left, right = c.padding[1]
    n, d, h = Var("copy_n"), Var("copy_d"), Var("copy_h")
    around: Loops = (
        ((n, c.batch), (d, c.channels // c.block), (h, height)) if c.is_by_blocks else ((n, c.batch), (h, height))
    )
    row: tuple[Expr, ...] = tuple(var for var, _ in around)
    together = c.block if c.is_by_blocks else c.channels
    parts: list[Stmt] = []
    for name, begin, columns in (("left", 0, left), ("right", left + width, right)):
        if columns:
            z = Var(f"copy_{name}")
            zero = Store("image", (*row, add(z, begin * together)), Float(0.0))
            parts += nest(((z, columns * together),), (zero,))
    if c.turns:
        w, i = Var("copy_w"), Var("copy_c")
        place = (n, h, add(mul(add(w, left), c.channels), i))
        moved = Store("image", place, Load("x", _stored_at(c, c.channels, width, n, h, w, i)))
        parts += nest(((w, width), (i, c.channels)), (moved,))
    else:
        e = Var("copy_e")
        moved = Store("image", (*row, add(e, left * together)), Load("x", (*row, e)))
        parts += nest(((e, width * together),), (moved,))
    return list(nest(around, tuple(parts)))


def _copy_back(c: Convolution) -> list[Stmt]:
    """The result with its channels as they were."""
    high, wide = c.out
    n, p, k, q = Var("back_n"), Var("back_p"), Var("back_k"), Var("back_q")
    place = _stored_at(c, c.filters, wide, n, p, q, k)
    value = c.epilogue.value(Load("sum", (n, p, q, k)), k, place)
    return list(nest(((n, c.batch), (p, high), (k, c.filters), (q, wide)), (Store("y", place, value),)))

"""`cortex.conv2d`: a two-dimensional convolution, compiled for the shapes it meets."""

from __future__ import annotations

from typing import Any

from cortex.codegen.target import Target
from cortex.errors import ModelError, StructureError
from cortex.primitives.choose import Cost
from cortex.primitives.convolution import Convolution, Pair, arranged, block_of, lower
from cortex.primitives.epilogue import Epilogue, activation_of
from cortex.primitives.given import is_whole, pair, weight_of, whole_number
from cortex.primitives.primitive import Lowered, Plan, Primitive
from cortex.runtime.storage import Array

WHO = "cortex.conv2d"


def conv2d(
    weight: Any,
    bias: Any = None,
    *,
    stride: int | Pair | None = None,
    padding: int | Pair | str | None = None,
    dilation: int | Pair | None = None,
    groups: int | None = None,
    activation: str | None = None,
    layout: str = "NCHW",
    threads: int = 1,
    tune: int = 0,
    cost: Cost = "movement",
    target: Target | None = None,
) -> Conv2d:
    """A convolution with the given filters, as torch.nn.functional.conv2d computes it: `y = conv2d(weight, bias)(x)`.

    `weight` has shape (filters, channels / groups, rows, columns); or it is a torch.nn.Conv2d, whose parameters are
    then taken. `padding` is by zeros: numbers of rows and columns, "same" or "valid". `activation` is applied to the
    result: "relu", "relu6", "sigmoid", "tanh" or "silu". With layout="NHWC" images come with channels last, and with
    "NCHW16c" (or another number) as (batch, channels / 16, rows, columns, 16). With `tune`, so many of the ways to run
    a shape are timed when it is first met and the fastest is kept; without, none is. They are ranked by `cost`, where
    "working sets" is that of PolyScientist as published.
    """
    module = weight if hasattr(weight, "kernel_size") and hasattr(weight, "weight") else None
    if module is not None:
        weight, bias, given = _taken(module, bias, stride, padding, dilation, groups)
        stride, padding, dilation, groups = given
    filters = weight_of(weight, WHO, "weight")
    if filters.ndim != 4 or 0 in filters.shape:
        raise ModelError(
            f"{WHO}: weight has shape {filters.shape}; give (filters, channels / groups, rows, columns), none of them 0"
        )
    groups = whole_number(1 if groups is None else groups, WHO, "groups", 1)
    if filters.shape[0] % groups:
        raise ModelError(f"{WHO}: groups={groups} does not divide the {filters.shape[0]} filters of weight")
    added = None if bias is None else weight_of(bias, WHO, "bias")
    if added is not None and added.shape != filters.shape[:1]:
        raise ModelError(f"{WHO}: bias has shape {added.shape}; give one number per filter, ({filters.shape[0]},)")
    block = block_of(layout) if isinstance(layout, str) else 0
    if layout not in ("NCHW", "NHWC") and not block:
        raise ModelError(f"{WHO}: layout={layout!r}; use 'NCHW', 'NHWC' or, for channels in blocks, 'NCHW16c'")
    for what, count in (("channels", filters.shape[1] * groups), ("filters", filters.shape[0])):
        if block and count % block:
            raise ModelError(f"{WHO}: layout={layout!r}: {block} does not divide the {count} {what}")
    steps = pair(1 if stride is None else stride, WHO, "stride", 1)
    apart = pair(1 if dilation is None else dilation, WHO, "dilation", 1)
    around = _padding(0 if padding is None else padding, (filters.shape[2], filters.shape[3]), steps, apart)
    epilogue = Epilogue(added is not None, False, activation_of(activation, WHO))
    pattern = Convolution(
        0, (0, 0), filters.shape[1] * groups, filters.shape[0], (filters.shape[2], filters.shape[3]),
        steps, around, apart, groups, layout, epilogue, (target or Target.host()).lanes,
    )  # fmt: skip
    return Conv2d(pattern, filters, added, threads, tune, cost, target or Target.host())


class Conv2d(Primitive[Convolution]):
    """A convolution; call it with images. Every shape is compiled when it is first met."""

    def __init__(
        self,
        pattern: Convolution,
        weight: Array,
        bias: Array | None,
        threads: int,
        tune: int,
        cost: Cost,
        target: Target,
    ) -> None:
        super().__init__(WHO, threads, tune, cost, target)
        self._pattern, self._weight, self._bias = pattern, weight, bias

    def __call__(self, x: Any, *, residual: Any = None, out: Any = None, threads: int | None = None) -> Any:
        """The convolution of images with axes as the layout has them, or of one without the first axis.

        Images in PyTorch's channels_last memory format give results in that format. What is strided in another way
        is copied first. `residual`, of the shape of the result, is added before the activation function; the result
        is written to `out` if that is given. A NumPy array gives a NumPy array, a tensor a tensor.
        """
        return self._call(x, residual, out, threads)

    def _plan(self, image: Array, residual: bool) -> Plan[Convolution]:
        single = image.ndim == len(_axes(self._pattern.layout)) - 1
        c = self.shape_of(image[None] if single else image, residual)
        high, wide = c.out
        if c.block:
            shape: tuple[int, ...] = (c.batch, c.filters // c.block, high, wide, c.block)
        else:  # of the program, whatever the caller calls the axes
            shape = (c.batch, high, wide, c.filters) if c.layout == "NHWC" else (c.batch, c.filters, high, wide)
        if c.layout == self._pattern.layout:
            return Plan(c, None, shape[1:] if single else shape, None)
        if single:
            return Plan(c, (1, 2, 0), shape[1:], (2, 0, 1))
        return Plan(c, (0, 2, 3, 1), shape, (0, 3, 1, 2))

    def _lowered(self, problem: Convolution) -> Lowered:
        weight = arranged(problem, self._weight)
        params = {"w": weight} if self._bias is None else {"w": weight, "bias": self._bias}
        return Lowered(lower(problem), params, problem.epilogue.is_long)

    def shape_of(self, image: Array, residual: bool = False) -> Convolution:
        """The convolution of images of a shape, as it is compiled."""
        p = self._pattern
        axes, block = _axes(p.layout), block_of(p.layout)
        if image.ndim != len(axes):
            raise StructureError(f"{WHO}: the image has shape {image.shape}; give ({', '.join(axes)})")
        size = dict(zip(axes, image.shape, strict=True))
        channels = size[axes[1]] * image.shape[4] if block else size["channels"]
        if channels != p.channels or (block and image.shape[4] != block):
            raise StructureError(
                f"{WHO}: the image has {channels} channels and shape {image.shape}; the filters take "
                f"{p.channels}, as ({', '.join(axes)})"
            )
        layout = "NHWC" if p.layout == "NCHW" and _has_channels_last(image) else p.layout
        c = Convolution(
            size["batch"], (size["rows"], size["columns"]), p.channels, p.filters, p.kernel, p.stride, p.padding,
            p.dilation, p.groups, layout, Epilogue(p.epilogue.bias, residual, p.epilogue.activation), p.lanes,
        )  # fmt: skip
        if min(c.out) < 1:
            reach = tuple(d * (k - 1) + 1 for d, k in zip(p.dilation, p.kernel, strict=True))
            padded = tuple(size + sum(pad) for size, pad in zip(c.image, p.padding, strict=True))
            raise StructureError(
                f"{WHO}: the image has {padded[0]} x {padded[1]} points with its padding, fewer than the "
                f"{reach[0]} x {reach[1]} that a filter covers"
            )
        return c


def _axes(layout: str) -> tuple[str, ...]:
    """The axes of images, as errors name them."""
    if layout == "NHWC":
        return "batch", "rows", "columns", "channels"
    block = block_of(layout)
    return ("batch", f"channels / {block}", "rows", "columns", str(block)) if block else _CHANNELS_FIRST


_CHANNELS_FIRST = ("batch", "channels", "rows", "columns")


def _has_channels_last(image: Array) -> bool:
    """Do images (batch, channels, rows, columns) lie in memory with their channels last?"""
    return not is_whole(image) and image.transpose(0, 2, 3, 1).flags.c_contiguous


def _padding(asked: Any, kernel: Pair, stride: Pair, dilation: Pair) -> tuple[Pair, Pair]:
    """Zeros on each side: ((above, below), (left, right))."""
    if asked == "valid":
        return (0, 0), (0, 0)
    if asked == "same":
        if stride != (1, 1):
            raise ModelError(f"{WHO}: padding='same' needs stride 1, not {stride}; give the padding in numbers")
        above, left = (d * (k - 1) for d, k in zip(dilation, kernel, strict=True))
        return (above // 2, above - above // 2), (left // 2, left - left // 2)
    if isinstance(asked, str):
        raise ModelError(f"{WHO}: padding={asked!r}; use numbers, 'same' or 'valid'")
    rows, columns = pair(asked, WHO, "padding", 0)
    return (rows, rows), (columns, columns)


def _taken(module: Any, bias: Any, *given: Any) -> tuple[Any, Any, tuple[Any, Any, Any, Any]]:
    """The parameters of a torch.nn.Conv2d."""
    if bias is not None or any(x is not None for x in given):
        raise ModelError(f"{WHO}: a module was given, which has its own bias, stride, padding, dilation and groups")
    if getattr(module, "transposed", False) or len(module.kernel_size) != 2:
        raise ModelError(f"{WHO}: {type(module).__name__} is no two-dimensional convolution; give a Conv2d")
    if module.padding_mode != "zeros":
        raise ModelError(f"{WHO}: padding_mode={module.padding_mode!r}; only padding by zeros is compiled")
    return module.weight, module.bias, (module.stride, module.padding, module.dilation, module.groups)

"""Convolutions at random: shapes, strides, paddings, dilations, groups, epilogues, memory formats, threads."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn import functional

import cortex

SHAPES = 1000 if os.environ.get("CORTEX_FUZZ") == "long" else 30
ACTIVATIONS = {"relu": torch.relu, "relu6": functional.relu6, "silu": functional.silu, "tanh": torch.tanh}


@dataclass(frozen=True)
class Case:
    """One convolution; pairs are (rows, columns)."""

    batch: int
    image: tuple[int, int]
    groups: int
    channels: int  # per group
    filters: int  # per group
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    bias: bool = True
    residual: bool = False
    activation: str | None = None
    channels_last: bool = True
    threads: int = 1
    block: int = 0  # channels that lie together, in the layout NCHW<block>c

    @property
    def layout(self) -> str:
        return f"NCHW{self.block}c" if self.block else "NCHW"

    @property
    def fits(self) -> bool:
        sizes = zip(self.image, self.padding, self.dilation, self.kernel, strict=True)
        return all(n + 2 * p >= d * (k - 1) + 1 for n, p, d, k in sizes)


def random_case(seed: int) -> Case:
    """A case whose filter fits the padded image."""
    r = random.Random(seed)

    def both(*values: int) -> tuple[int, int]:
        return r.choice(values), r.choice(values)

    while True:
        groups, channels, filters = r.choice((1, 1, 1, 2, 3)), r.choice((1, 2, 3, 8, 17)), r.choice((1, 3, 16, 20, 64))
        if r.random() < 0.2:
            groups, channels, filters = r.choice((3, 16, 19)), 1, 1
        case = Case(
            r.choice((1, 1, 2, 3)), (r.randint(1, 18), r.randint(1, 18)), groups, channels, filters,
            (1, 1) if r.random() < 0.3 else both(1, 2, 3, 3, 5), both(1, 1, 2, 3), both(0, 0, 1, 2, 5), both(1, 1, 2),
            r.random() < 0.7, r.random() < 0.3, r.choice((None, *ACTIVATIONS)), r.random() < 0.6, r.choice((1, 1, 2)),
        )  # fmt: skip
        if r.random() < 0.25:  # channels in blocks, read as they are or not
            size, times = r.choice(((1, 3), (2, 1), (4, 3), (8, 1), (8, 3), (16, 1), (16, 2), (32, 1))), r.randint(1, 2)
            many, few = (size[0] * size[1], size[0] * times) if groups < 10 else (1, 1)
            groups = size[0] * 2 if groups >= 10 else groups
            case = replace(case, groups=groups, channels=many, filters=few, block=size[0])
        if case.fits:
            return case


def in_blocks(x: torch.Tensor, block: int) -> torch.Tensor:
    """Images (batch, channels, rows, columns) as (batch, channels / block, rows, columns, block)."""
    return x.unflatten(1, (-1, block)).movedim(2, -1).contiguous()


def out_of_blocks(x: torch.Tensor) -> torch.Tensor:
    """The opposite."""
    return x.movedim(-1, 2).flatten(1, 2)


def deviation(c: Case, seed: int = 0, **options: Any) -> float:
    """The greatest difference to PyTorch in double precision, over the square root of the terms of a sum."""
    made = torch.Generator().manual_seed(seed)
    x = torch.randn(c.batch, c.groups * c.channels, *c.image, generator=made)
    w = torch.randn(c.groups * c.filters, c.channels, *c.kernel, generator=made)
    b = torch.randn(c.groups * c.filters, generator=made) if c.bias else None
    given = (c.stride, c.padding, c.dilation, c.groups)
    wanted = functional.conv2d(x.double(), w.double(), None if b is None else b.double(), *given)
    residual = torch.randn(wanted.shape, generator=made) if c.residual else None
    if residual is not None:
        wanted = wanted + residual.double()
    if c.activation is not None:
        wanted = ACTIVATIONS[c.activation](wanted)
    names = dict(zip(("stride", "padding", "dilation", "groups"), given, strict=True))
    conv = cortex.conv2d(w, b, **names, activation=c.activation, threads=c.threads, layout=c.layout, **options)
    if c.block:
        given_residual = None if residual is None else in_blocks(residual, c.block)
        found = out_of_blocks(conv(in_blocks(x, c.block), residual=given_residual))
    else:
        found = conv(x.contiguous(memory_format=torch.channels_last) if c.channels_last else x, residual=residual)
    assert found.shape == wanted.shape
    assert found.dtype == torch.float32
    terms = c.channels * c.kernel[0] * c.kernel[1]
    return float((found.double() - wanted).abs().max()) / max(1.0, terms) ** 0.5 if wanted.numel() else 0.0

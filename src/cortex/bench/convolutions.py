"""The conv and matmul suites: primitives beside oneDNN and MKL through PyTorch, in one process, in turns.

Both take the user's arrays and give new ones; copies for padding are in the time of both. oneDNN is given images in
PyTorch's default and in its channels-last memory format, Cortex in the latter; the better of oneDNN's two counts.
MKL multiplies by the matrix as it is given and by its transpose, as a Linear module does; the better counts. Calls
that are timed follow one that is not, so that a system meets its own weights in the caches. On several threads a turn
begins when the process has come to rest: threads of OpenMP look for work for milliseconds after a call, which takes a
processor from whoever is next (see timing.py).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from cortex.bench.timing import come_to_rest, paused_gc
from cortex.errors import InternalError
from cortex.primitives.conv2d import conv2d
from cortex.primitives.convolution import Convolution
from cortex.primitives.matmul import matmul

LEAST_CALLS, CALLS = 6, 3
"""Timed calls of a system: at least so many, and so many in a turn."""


@dataclass(frozen=True)
class Layer:
    """A convolution of square images by square filters, padded by half a filter."""

    name: str
    size: int
    channels: int
    filters: int
    kernel: int
    stride: int

    def convolution(self, batch: int) -> Convolution:
        """The same as the compiler sees it."""
        pad, both = self.kernel // 2, (self.stride, self.stride)
        around = ((pad, pad), (pad, pad))
        image, kernel = (self.size, self.size), (self.kernel, self.kernel)
        return Convolution(batch, image, self.channels, self.filters, kernel, both, around)

    def shape(self) -> str:
        """The shape in words."""
        return f"{self.channels}->{self.filters} {self.kernel}x{self.kernel}/{self.stride} {self.size}x{self.size}"


_RESNET50 = (
    (224, 3, 64, 7, 2), (56, 64, 256, 1, 1), (56, 64, 64, 1, 1), (56, 64, 64, 3, 1), (56, 256, 64, 1, 1),
    (56, 256, 512, 1, 2), (56, 256, 128, 1, 2), (28, 128, 128, 3, 1), (28, 128, 512, 1, 1), (28, 512, 128, 1, 1),
    (28, 512, 1024, 1, 2), (28, 512, 256, 1, 2), (14, 256, 256, 3, 1), (14, 256, 1024, 1, 1), (14, 1024, 256, 1, 1),
    (14, 1024, 2048, 1, 2), (14, 1024, 512, 1, 2), (7, 512, 512, 3, 1), (7, 512, 2048, 1, 1), (7, 2048, 512, 1, 1),
)  # fmt: skip

RESNET50 = tuple(Layer(f"resnet50.{i}", *sizes) for i, sizes in enumerate(_RESNET50))
"""The 20 shapes of the convolutions of ResNet-50, with the stride where the first version of it has it."""


@dataclass(frozen=True)
class Multiplication:
    """A product of (rows, depth) and (depth, columns)."""

    rows: int
    columns: int
    depth: int

    @property
    def name(self) -> str:
        """What the product is called."""
        return f"{self.rows}x{self.columns}x{self.depth}"

    def shape(self) -> str:
        """The shape in words."""
        return f"({self.rows}, {self.depth}) @ ({self.depth}, {self.columns})"


PRODUCTS = (
    *(Multiplication(n, n, n) for n in (128, 256, 512, 1024)),
    *(Multiplication(m, n, k) for m in (1, 4, 16, 32) for n, k in ((256, 256), (1024, 512), (512, 2048), (2048, 2048))),
)
"""Square ones, and skinny ones as in fully connected layers of few rows."""


@dataclass(frozen=True)
class Row:
    """A system on a layer: GFLOP/s of its median and of its fastest call."""

    layer: str
    shape: str
    batch: int
    threads: int
    system: str
    gflops: float
    gflops_best: float
    form: str
    repetitions: int

    def as_json(self) -> dict[str, Any]:
        """The row as it is written."""
        return asdict(self)


def run_layer(layer: Layer, batch: int, threads: int, budget: float) -> list[Row]:
    """Time Cortex and oneDNN on a layer for about `budget` seconds; the results must agree."""
    import torch
    from torch.nn.functional import conv2d as theirs

    torch.set_num_threads(threads)
    with torch.inference_mode():
        made = torch.Generator().manual_seed(0)
        pad = layer.kernel // 2
        x = torch.randn(batch, layer.channels, layer.size, layer.size, generator=made)
        depth = layer.channels * layer.kernel**2
        w = torch.randn(layer.filters, layer.channels, layer.kernel, layer.kernel, generator=made) / depth**0.5
        b = torch.randn(layer.filters, generator=made)
        last, w_last = (t.contiguous(memory_format=torch.channels_last) for t in (x, w))
        ours = conv2d(w, b, stride=layer.stride, padding=pad, threads=threads)
        systems: dict[tuple[str, str], Callable[[], Any]] = {
            ("cortex", "channels last"): lambda: ours(last),
            ("onednn", "channels last"): lambda: theirs(last, w_last, b, layer.stride, pad),
            ("onednn", "default"): lambda: theirs(x, w, b, layer.stride, pad),
        }
        wrong = float((ours(last) - theirs(x, w, b, layer.stride, pad)).abs().max())
        if not wrong < 1e-4:
            raise InternalError(f"{layer.name}: the results differ from PyTorch's by {wrong}")
        return _rows(layer, batch, threads, layer.convolution(batch).flops, in_turns(systems, budget, threads))


def run_product(product: Multiplication, threads: int, budget: float) -> list[Row]:
    """Time Cortex and MKL on a product for about `budget` seconds; the results must agree."""
    import torch
    from torch.nn.functional import linear

    torch.set_num_threads(threads)
    with torch.inference_mode():
        made = torch.Generator().manual_seed(0)
        x = torch.randn(product.rows, product.depth, generator=made)
        w = torch.randn(product.depth, product.columns, generator=made) / product.depth**0.5
        turned = w.T.contiguous()
        ours = matmul(w, threads=threads)
        systems: dict[tuple[str, str], Callable[[], Any]] = {
            ("cortex", "packed"): lambda: ours(x),
            ("mkl", "as given"): lambda: torch.mm(x, w),
            ("mkl", "transposed"): lambda: linear(x, turned),
        }
        wrong = float((ours(x) - torch.mm(x, w)).abs().max())
        if not wrong < 1e-4:
            raise InternalError(f"{product.name}: the results differ from PyTorch's by {wrong}")
        flops = 2 * product.rows * product.columns * product.depth
        return _rows(product, 1, threads, flops, in_turns(systems, budget, threads))


def _rows(
    what: Layer | Multiplication, batch: int, threads: int, flops: int, times: dict[tuple[str, str], list[float]]
) -> list[Row]:
    """Cortex, and the peer in its better form."""

    def row(key: tuple[str, str]) -> Row:
        median, best = statistics.median(times[key]), min(times[key])
        rates = (flops / median / 1e9, flops / best / 1e9)
        return Row(what.name, what.shape(), batch, threads, key[0], *rates, key[1], len(times[key]))

    cortex, *others = (row(key) for key in times)
    return [cortex, max(others, key=lambda r: r.gflops_best)]


def in_turns(systems: dict[Any, Callable[[], Any]], budget: float, threads: int = 1) -> dict[Any, list[float]]:
    """Seconds of each system's calls: in turns, a few timed calls of each just after an untimed one."""
    times: dict[Any, list[float]] = {key: [] for key in systems}
    first, deadline = next(iter(systems)), time.perf_counter() + budget
    with paused_gc():
        while len(times[first]) < LEAST_CALLS or time.perf_counter() < deadline:
            for key, run in systems.items():
                if threads > 1:
                    come_to_rest()
                run()
                for _ in range(CALLS):
                    start = time.perf_counter()
                    run()
                    times[key].append(time.perf_counter() - start)
    return times

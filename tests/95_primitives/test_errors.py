"""What users of primitives are told: one golden message each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cortex

FILTERS = np.ones((8, 3, 3, 3))
IMAGE = np.ones((1, 3, 5, 5), np.float32)
MATRIX = np.ones((4, 6))

MISTAKES: dict[str, Callable[[], Any]] = {
    "weight_axes": lambda: cortex.conv2d(np.ones((8, 3, 3))),
    "weight_text": lambda: cortex.conv2d("filters"),
    "bias": lambda: cortex.conv2d(FILTERS, np.ones(3)),
    "stride": lambda: cortex.conv2d(FILTERS, stride=0),
    "stride_three": lambda: cortex.conv2d(FILTERS, stride=(1, 2, 3)),
    "padding": lambda: cortex.conv2d(FILTERS, padding="full"),
    "padding_same": lambda: cortex.conv2d(FILTERS, padding="same", stride=2),
    "groups": lambda: cortex.conv2d(FILTERS, groups=3),
    "activation": lambda: cortex.conv2d(FILTERS, activation="softmax"),
    "layout": lambda: cortex.conv2d(FILTERS, layout="CHWN"),  # type: ignore[arg-type]
    "layout_filters": lambda: cortex.conv2d(np.ones((8, 16, 3, 3)), layout="NCHW16c"),
    "layout_image": lambda: cortex.conv2d(np.ones((8, 8, 3, 3)), layout="NCHW8c")(np.ones((1, 2, 5, 5, 4), np.float32)),
    "layout_axes": lambda: cortex.conv2d(np.ones((8, 8, 3, 3)), layout="NCHW8c")(np.ones((8, 5, 5), np.float32)),
    "channels": lambda: cortex.conv2d(FILTERS)(np.ones((1, 4, 5, 5), np.float32)),
    "image_axes": lambda: cortex.conv2d(FILTERS)(np.ones((5, 5), np.float32)),
    "image_type": lambda: cortex.conv2d(FILTERS)(np.ones((1, 3, 5, 5))),
    "image_list": lambda: cortex.conv2d(FILTERS)([1.0]),
    "image_small": lambda: cortex.conv2d(FILTERS, dilation=3)(IMAGE),
    "residual": lambda: cortex.conv2d(FILTERS)(IMAGE, residual=np.ones((1, 8, 3, 4), np.float32)),
    "out_strided": lambda: cortex.conv2d(FILTERS)(IMAGE, out=np.ones((1, 8, 3, 6), np.float32)[..., ::2]),
    "threads": lambda: cortex.conv2d(FILTERS)(IMAGE, threads=0),
    "tune": lambda: cortex.conv2d(FILTERS, tune=-1),
    "cost": lambda: cortex.conv2d(FILTERS, cost="latency"),  # type: ignore[arg-type]
    "image_none": lambda: cortex.conv2d(FILTERS)(None),
    "matmul_two": lambda: cortex.matmul(MATRIX, MATRIX),
    "matmul_weight": lambda: cortex.matmul(np.ones(4)),
    "matmul_bias": lambda: cortex.matmul(MATRIX, bias=np.ones(4)),
    "matmul_x": lambda: cortex.matmul(MATRIX)(np.ones((2, 6), np.float32)),
    "matmul_batch": lambda: cortex.matmul(np.ones((3, 4, 6)))(np.ones((2, 4), np.float32)),
    "matmul_transposed": lambda: cortex.matmul(MATRIX, transpose_x=True)(np.ones((2, 4), np.float32)),
}


def test_tensors_that_do_not_give_their_memory(golden: Callable[[str, str], None]) -> None:
    torch = pytest.importorskip("torch")
    multiply, x = cortex.matmul(np.ones((4, 3))), torch.ones(2, 4)
    torch.testing.assert_close(multiply(torch.nn.Parameter(x)), torch.full((2, 3), 4.0))
    given = (x.bfloat16(), x.double(), x.to_sparse(), x.to("meta"), torch.ones(2, 4, dtype=torch.complex64).conj())
    messages = []
    for each in given:
        with pytest.raises(cortex.StructureError) as caught:
            multiply(each)
        messages.append(str(caught.value))
    golden("errors/primitives/tensors", "\n".join(messages))


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str, golden: Callable[[str, str], None]) -> None:
    with pytest.raises((cortex.ModelError, cortex.StructureError)) as caught:
        MISTAKES[name]()
    golden(f"errors/primitives/{name}", f"{type(caught.value).__name__}: {caught.value}")

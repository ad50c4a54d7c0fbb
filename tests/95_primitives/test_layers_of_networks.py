"""The convolutions of well-known networks agree with PyTorch: some of each here, all with CORTEX_FUZZ=long."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("torch")

from layer_lists import NETWORKS, case
from random_convolutions import deviation

# Times the square root of the terms of a sum, of which these have up to 9,216 of size 1, one added after the other: the
# difference to double precision is up to 2.1e-5, and that of PyTorch, which adds partial sums, up to 2e-6.
TOLERANCE = 2.5e-5
SOME = {"resnet50": (6, 11, 17, 19), "vgg_a": (6,), "mobilenet": (3, 6, 8), "googlenet": (0, 9), "fast_rcnn": (12, 20)}
ALL = os.environ.get("CORTEX_FUZZ") == "long"
LAYERS = [(name, i) for name, layers in NETWORKS.items() for i in (range(len(layers)) if ALL else SOME[name])]


@pytest.mark.parametrize(("network", "number"), LAYERS)
def test_layer(network: str, number: int) -> None:
    layer = NETWORKS[network][number]
    assert deviation(case(layer, threads=1 + number % 2, activation="relu"), number) < TOLERANCE
    if ALL and layer[1] % 16 == layer[2] % 16 == 0:
        assert deviation(case(layer, block=16), number) < TOLERANCE
    if ALL and layer[1] % 16 == 0:
        assert deviation(case(layer, channels_last=False, residual=True), number) < TOLERANCE

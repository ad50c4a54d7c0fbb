"""Convolutions of well-known networks, each shape once: (rows, columns), channels, filters, filter, stride, padding."""

from __future__ import annotations

from random_convolutions import Case

from cortex.bench.convolutions import RESNET50

Layer = tuple[tuple[int, int], int, int, tuple[int, int], int, tuple[int, int]]
THREE, ONE = (3, 3), (1, 1)


def _squares(sizes: tuple[tuple[int, int, int], ...], kernel: int) -> list[Layer]:
    pad = (kernel // 2, kernel // 2)
    return [((n, n), channels, filters, (kernel, kernel), 1, pad) for n, channels, filters in sizes]


VGG_A = _squares(
    (
        *((224, 3, 64), (112, 64, 128), (56, 128, 256), (56, 256, 256)),
        *((28, 256, 512), (28, 512, 512), (14, 512, 512)),
    ),
    3,
)
MOBILENET = _squares(  # the filters of one point; what is between them is depthwise
    (
        *((112, 32, 64), (56, 64, 128), (56, 128, 128), (28, 128, 256), (28, 256, 256)),
        *((14, 256, 512), (14, 512, 512), (7, 512, 1024), (7, 1024, 1024)),
    ),
    1,
)
GOOGLENET: list[Layer] = [  # the third version of Inception, its modules at 17 x 17
    ((17, 17), channels, filters, kernel, 1, (kernel[0] // 2, kernel[1] // 2))
    for channels, filters in ((128, 128), (128, 192), (160, 160), (160, 192), (192, 192))
    for kernel in ((1, 7), (7, 1))
]
FAST_RCNN: list[Layer] = [  # on VGG-16, the shorter side of the image scaled to 600
    ((600 // scale, 800 // scale), channels, filters, THREE, 1, ONE)
    for scale, channels, filters in (
        *((1, 3, 64), (1, 64, 64), (2, 64, 128), (2, 128, 128), (4, 128, 256), (4, 256, 256)),
        *((8, 256, 512), (8, 512, 512), (16, 512, 512)),
    )
]
RESNET_50: list[Layer] = [
    ((n.size, n.size), n.channels, n.filters, (n.kernel, n.kernel), n.stride, (n.kernel // 2, n.kernel // 2))
    for n in RESNET50
]
NETWORKS = {
    "resnet50": RESNET_50,
    "vgg_a": VGG_A,
    "mobilenet": MOBILENET,
    "googlenet": GOOGLENET,
    "fast_rcnn": FAST_RCNN,
}


def case(layer: Layer, **how: object) -> Case:
    """A layer of a network on one image."""
    image, channels, filters, kernel, stride, padding = layer
    return Case(1, image, 1, channels, filters, kernel, (stride, stride), padding, ONE, **how)  # type: ignore[arg-type]

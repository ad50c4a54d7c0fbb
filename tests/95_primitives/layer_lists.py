"""Convolutions of well-known networks, each shape once: (rows, columns), channels, filters, filter, stride, padding."""

from __future__ import annotations

from random_convolutions import Case

from cortex.bench.convolutions import RESNET50

Layer = tuple[tuple[int, int], int, int, tuple[int, int], int, tuple[int, int]]
ONE = (1, 1)


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
_LEVELS: dict[tuple[int, int], tuple[tuple[int, int, int, int], ...]] = {  # channels, filters, filter, stride
    (750, 600): ((3, 64, 7, 2),),
    (188, 150): ((64, 64, 1, 1), (64, 64, 3, 1), (64, 256, 1, 1), (256, 64, 1, 1), (64, 64, 3, 2)),
    (94, 75): ((64, 256, 1, 1), (256, 128, 1, 1), (256, 512, 1, 1), (128, 128, 3, 1), (128, 512, 1, 1),
               (512, 128, 1, 1), (128, 128, 3, 2)),
    (47, 38): ((128, 512, 1, 1), (512, 256, 1, 1), (256, 256, 3, 1), (256, 1024, 1, 1), (512, 1024, 1, 1),
               (1024, 256, 1, 1), (1024, 512, 3, 1), (512, 48, 1, 1), (512, 24, 1, 1)),
    (7, 7): ((1024, 512, 1, 1), (512, 512, 3, 1), (512, 2048, 1, 1), (1024, 2048, 1, 1), (2048, 512, 1, 1)),
}  # fmt: skip
FAST_RCNN: list[Layer] = [  # as PolyScientist's authors ran it: on ResNet-50, images of 750 x 600, regions of 7 x 7
    (image, channels, filters, (kernel, kernel), stride, (kernel // 2, kernel // 2))
    for image, layers in _LEVELS.items()
    for channels, filters, kernel, stride in layers
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

"""The modules of torch.nn that can be compiled, in evaluation, against torch; the list is checked to be all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from test_operators import drawn
from torch import nn
from torch.nn.utils.parametrizations import weight_norm
from torch_meaning import agrees

X = (2, 4)
SEQUENCE = (3, 2, 4)
"""Length 3, batch 2, 4 features."""

Make = Callable[[], nn.Module]

ACTIVATIONS = {
    name: getattr(nn, name) for name in (
        "ReLU", "ReLU6", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Softplus", "Softsign", "Sigmoid", "Tanh",
        "LogSigmoid", "Hardtanh", "Hardsigmoid", "Hardswish", "Hardshrink", "Softshrink", "Tanhshrink", "LeakyReLU",
        "PReLU", "RReLU", "GLU", "Identity", "Dropout", "AlphaDropout", "FeatureAlphaDropout", "Flatten",
    )
}  # fmt: skip

ONE_INPUT: dict[str, tuple[Make, tuple[int, ...]]] = {
    **{name: (make, X) for name, make in ACTIVATIONS.items()},
    "ReLU inplace": (lambda: nn.ReLU(inplace=True), X),
    "LeakyReLU inplace": (lambda: nn.LeakyReLU(0.2, inplace=True), X),
    "ELU inplace": (lambda: nn.ELU(0.5, inplace=True), X),
    "Hardtanh inplace": (lambda: nn.Hardtanh(-0.1, 0.2, inplace=True), X),
    "PReLU of channels": (lambda: nn.PReLU(4), X),
    "Threshold": (lambda: nn.Threshold(0.1, 0.5), X),
    "Softmax": (lambda: nn.Softmax(dim=-1), X),
    "Softmin": (lambda: nn.Softmin(dim=0), X),
    "LogSoftmax": (lambda: nn.LogSoftmax(dim=1), X),
    "Softmax2d": (nn.Softmax2d, (2, 4, 3, 3)),
    "Dropout1d": (nn.Dropout1d, SEQUENCE),
    "Dropout2d": (nn.Dropout2d, (2, 4, 3, 3)),
    "Dropout3d": (nn.Dropout3d, (2, 4, 3, 3, 1)),
    "Linear": (lambda: nn.Linear(4, 3), X),
    "Linear without bias": (lambda: nn.Linear(4, 3, bias=False), SEQUENCE),
    "Linear with weight_norm": (lambda: weight_norm(nn.Linear(4, 3)), X),
    "Linear with weight_norm of all": (lambda: weight_norm(nn.Linear(4, 3), dim=None), X),
    "Sequential": (lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)), X),
    "LayerNorm": (lambda: nn.LayerNorm(4), X),
    "LayerNorm of two axes": (lambda: nn.LayerNorm([2, 4], elementwise_affine=False), SEQUENCE),
    "RMSNorm": (lambda: nn.RMSNorm(4), X),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4), X),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(4), (2, 4, 3, 3)),
    "BatchNorm3d": (lambda: nn.BatchNorm3d(4), (2, 4, 3, 1, 2)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(4, affine=True), (2, 4, 3)),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(4), (2, 4, 3, 3)),
    "InstanceNorm3d": (lambda: nn.InstanceNorm3d(4), (2, 4, 3, 3, 2)),
    "Unflatten": (lambda: nn.Unflatten(1, (2, 2)), X),
    "ConstantPad1d": (lambda: nn.ConstantPad1d((1, 2), 0.5), SEQUENCE),
    "ConstantPad2d": (lambda: nn.ConstantPad2d((1, 2, 0, 1), 0.5), SEQUENCE),
    "ConstantPad3d": (lambda: nn.ConstantPad3d(1, 0.5), (2, 2, 2, 2)),
    "ZeroPad1d": (lambda: nn.ZeroPad1d((1, 2)), SEQUENCE),
    "ZeroPad2d": (lambda: nn.ZeroPad2d(1), SEQUENCE),
    "ZeroPad3d": (lambda: nn.ZeroPad3d(1), (2, 2, 2, 2)),
    "RNN": (lambda: nn.RNN(4, 3), SEQUENCE),
    "RNN relu": (lambda: nn.RNN(4, 3, nonlinearity="relu", num_layers=2, bias=False), SEQUENCE),
    "LSTM": (lambda: nn.LSTM(4, 3), SEQUENCE),
    "LSTM deep": (lambda: nn.LSTM(4, 3, num_layers=2, bidirectional=True, dropout=0.5), SEQUENCE),
    "LSTM batch_first": (lambda: nn.LSTM(4, 3, batch_first=True, bias=False), SEQUENCE),
    "LSTM projected": (lambda: nn.LSTM(4, 3, proj_size=2, bidirectional=True), SEQUENCE),
    "LSTM unbatched": (lambda: nn.LSTM(4, 3), (3, 4)),
    "GRU": (lambda: nn.GRU(4, 3), SEQUENCE),
    "GRU deep": (lambda: nn.GRU(4, 3, num_layers=2, bidirectional=True, batch_first=True), SEQUENCE),
    "RNNCell": (lambda: nn.RNNCell(4, 3), X),
    "RNNCell relu": (lambda: nn.RNNCell(4, 3, nonlinearity="relu", bias=False), (4,)),
    "LSTMCell": (lambda: nn.LSTMCell(4, 3), X),
    "LSTMCell vector": (lambda: nn.LSTMCell(4, 3, bias=False), (4,)),
    "GRUCell": (lambda: nn.GRUCell(4, 3), X),
    "GRUCell vector": (lambda: nn.GRUCell(4, 3), (4,)),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), SEQUENCE),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2, enable_nested_tensor=False), SEQUENCE
    ),
}  # fmt: skip

Called = Callable[..., Any]
SEVERAL: dict[str, tuple[Make, Called, dict[str, Any]]] = {
    "Bilinear": (lambda: nn.Bilinear(4, 3, 2), lambda m, x, y: m(x, y), {"x": X, "y": (2, 3)}),
    "CosineSimilarity": (lambda: nn.CosineSimilarity(dim=1), lambda m, x, y: m(x, y), {"x": X, "y": X}),
    "PairwiseDistance": (lambda: nn.PairwiseDistance(p=2), lambda m, x, y: m(x, y), {"x": X, "y": X}),
    "MultiheadAttention": (
        lambda: nn.MultiheadAttention(4, 2, batch_first=True),
        lambda m, x, y: m(x, y, y),
        {"x": (1, 3, 4), "y": (1, 2, 4)},
    ),
    "MultiheadAttention without weights": (
        lambda: nn.MultiheadAttention(4, 2),
        lambda m, x: m(x, x, x, need_weights=False)[0],
        {"x": (3, 2, 4)},
    ),
    "Embedding": (
        lambda: nn.Embedding(5, 4, padding_idx=0),
        lambda m, i: (m(i), m(torch.tensor([0, 3]))),
        {"i": lambda rng: torch.randint(0, 5, (1,), generator=rng)},
    ),
    "LSTM with a state": (
        lambda: nn.LSTM(4, 3),
        lambda m, x, h, c: m(x, (h, c)),
        {"x": SEQUENCE, "h": (1, 2, 3), "c": (1, 2, 3)},
    ),
    "GRU with a state": (lambda: nn.GRU(4, 3), lambda m, x, h: m(x, h), {"x": SEQUENCE, "h": (1, 2, 3)}),
    "LSTMCell with a state": (
        lambda: nn.LSTMCell(4, 3),
        lambda m, x, h, c: m(x, (h, c)),
        {"x": (1, 4), "h": (1, 3), "c": (1, 3)},
    ),
    "GRUCell with a state": (lambda: nn.GRUCell(4, 3), lambda m, x, h: m(x, h), {"x": (1, 4), "h": (1, 3)}),
    "TransformerDecoderLayer": (
        lambda: nn.TransformerDecoderLayer(4, 2, 8, batch_first=True),
        lambda m, x, y: m(x, y),
        {"x": (1, 3, 4), "y": (1, 2, 4)},
    ),
    "ModuleDict": (lambda: nn.ModuleDict({"a": nn.Linear(4, 2)}), lambda m, x: m["a"](x), {"x": X}),
    "ModuleList": (lambda: nn.ModuleList([nn.Linear(4, 4)] * 2), lambda m, x: m[1](m[0](x)), {"x": X}),
    "ParameterList": (lambda: nn.ParameterList([torch.ones(4)]), lambda m, x: x * m[0], {"x": X}),
    "ParameterDict": (lambda: nn.ParameterDict({"w": torch.ones(4)}), lambda m, x: x * m["w"], {"x": X}),
}


def ready(make: Make) -> nn.Module:
    """In evaluation, with weights and running statistics that are not those of a new module."""
    torch.manual_seed(3)
    module = make().eval()
    with torch.no_grad():
        for p in [*module.parameters(), *module.buffers()]:
            if p.is_floating_point():
                p.uniform_(0.1, 0.9) if p.dim() == 1 else p.uniform_(-0.5, 0.5)
    return module


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize("name", ONE_INPUT)
def test_module(name: str) -> None:
    make, shape = ONE_INPUT[name]
    module = ready(make)
    agrees(lambda x: module(x), drawn({"x": shape}, 5), module)


@pytest.mark.parametrize("name", SEVERAL)
def test_module_of_several(name: str) -> None:
    make, called, inputs = SEVERAL[name]
    module = ready(make)
    agrees(lambda **given: called(module, **given), drawn(inputs, 6), module)


UNSUPPORTED = [
    "AdaptiveAvgPool",
    "AdaptiveMaxPool",
    "AvgPool",
    "MaxPool",
    "LPPool",
    "FractionalMaxPool",
    "MaxUnpool",
    "Conv",
    "LazyConv",
    "Upsample",
    "Fold",
    "Unfold",
    "PixelShuffle",
    "PixelUnshuffle",
    "ChannelShuffle",
    "ReflectionPad",
    "ReplicationPad",
    "CircularPad",
    "LocalResponseNorm",
    "CrossMapLRN2d",
    "EmbeddingBag",
    "SyncBatchNorm",
    "LazyBatchNorm",
    "LazyInstanceNorm",
    "LazyLinear",
    "AdaptiveLogSoftmaxWithLoss",
    "MultiLabel",
    "Transformer",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]
"""Families of modules that cannot be compiled: grids, statistics over batches, modules without a size yet."""
NOT_FOR_MODELS = (
    "Loss",
    "DataParallel",
    "Module",
    "Container",
    "Parameter",
    "Buffer",
    "RNNBase",
    "RNNCellBase",
    "Loss2d",
)


def test_every_module_of_torch_is_listed() -> None:
    listed = {name.split()[0] for name in (*ONE_INPUT, *SEVERAL)}
    for name in sorted(vars(nn)):
        kind = getattr(nn, name)
        if not isinstance(kind, type) or not issubclass(kind, nn.Module) or name in listed:
            continue
        known = name.startswith(tuple(UNSUPPORTED)) or name.endswith(NOT_FOR_MODELS)
        assert known, f"nn.{name} is neither tested nor known not to be supported"

"""Layers of torch in evaluation, as they appear in public model code; `public_cases` says what the inputs are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


def prepared(made: nn.Module) -> nn.Module:
    """In evaluation, with parameters that are not 0 or 1."""
    generator = torch.Generator().manual_seed(len(str(made)))
    for p in made.parameters():
        with torch.no_grad():
            p.copy_(torch.randn(p.shape, generator=generator) * 0.4)
    return made.eval()


class SelfAttention(nn.Module):
    """Attention of a sequence to itself."""

    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, x: Any) -> Any:
        return self.attention(x, x, x)


OF_ROWS: dict[str, nn.Module] = {
    "nn.Linear": nn.Linear(4, 5),
    "nn.LayerNorm": nn.LayerNorm(4),
    "nn.Sequential": nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 2)),
    "nn.BatchNorm1d": nn.BatchNorm1d(4),
    "nn.PReLU": nn.PReLU(),
    "nn.Softmax": nn.Softmax(-1),
    "nn.LogSoftmax": nn.LogSoftmax(-1),
    "nn.GELU": nn.GELU(),
    "nn.ELU": nn.ELU(),
    "nn.Softplus": nn.Softplus(),
    "nn.Hardswish": nn.Hardswish(),
    "nn.GLU": nn.GLU(),
    "nn.Dropout": nn.Dropout(0.3),
    "nn.Identity": nn.Identity(),
    "nn.Flatten": nn.Flatten(),
    "nn.Unflatten": nn.Unflatten(1, (2, 2)),
    "nn.LSTM": nn.LSTM(4, 3),
    "nn.GRU": nn.GRU(4, 3, bidirectional=True),
    "nn.RNN": nn.RNN(4, 3),
    "nn.LSTMCell": nn.LSTMCell(4, 3),
    "nn.GRUCell": nn.GRUCell(4, 3),
    "nn.RNNCell": nn.RNNCell(4, 3),
    "nn.RMSNorm": nn.RMSNorm(4),
    "nn.ReLU(inplace)": nn.Sequential(nn.Linear(4, 3), nn.ReLU(inplace=True)),
    "nn.Threshold": nn.Threshold(0.1, 2.0),
    "nn.Mish": nn.Mish(),
    "nn.AlphaDropout": nn.AlphaDropout(0.4),
    "nn.CELU": nn.CELU(),
    "nn.Hardtanh": nn.Hardtanh(),
    "nn.LeakyReLU": nn.LeakyReLU(0.2),
    "nn.Softmin": nn.Softmin(-1),
    "nn.Tanhshrink": nn.Tanhshrink(),
    "nn.ConstantPad1d": nn.ConstantPad1d(1, 0.5),
}
OF_SEQUENCES: dict[str, nn.Module] = {
    "nn.Conv1d": nn.Conv1d(3, 4, 3),
    "nn.Conv1d(padding)": nn.Conv1d(3, 4, 3, padding=1),
    "nn.Conv1d(1)": nn.Conv1d(3, 4, 1),
    "nn.Conv1d(stride)": nn.Conv1d(3, 4, 2, stride=2),
    "nn.Conv1d(groups)": nn.Conv1d(3, 6, 3, groups=3),
    "nn.Conv1d(dilation)": nn.Conv1d(3, 4, 2, dilation=2),
    "nn.MaxPool1d": nn.MaxPool1d(2),
    "nn.AvgPool1d": nn.AvgPool1d(2),
    "nn.AdaptiveAvgPool1d": nn.AdaptiveAvgPool1d(1),
    "nn.AdaptiveMaxPool1d": nn.AdaptiveMaxPool1d(1),
    "nn.AdaptiveAvgPool1d(4)": nn.AdaptiveAvgPool1d(4),
    "nn.MultiheadAttention": SelfAttention(nn.MultiheadAttention(6, 2)),
    "nn.TransformerEncoderLayer": nn.TransformerEncoderLayer(6, 2, 8),
    "nn.GroupNorm": nn.GroupNorm(3, 3),
    "nn.InstanceNorm1d": nn.InstanceNorm1d(3),
    "nn.Upsample": nn.Upsample(scale_factor=2),
    "nn.ConvTranspose1d": nn.ConvTranspose1d(3, 2, 3),
    "nn.ReplicationPad1d": nn.ReplicationPad1d(2),
    "nn.ReflectionPad1d": nn.ReflectionPad1d(1),
    "nn.LPPool1d": nn.LPPool1d(2, 2),
}
OF_IMAGES: dict[str, nn.Module] = {
    "nn.Conv2d": nn.Conv2d(2, 3, 3),
    "nn.Conv2d(1)": nn.Conv2d(2, 3, 1),
    "nn.Conv2d(padding)": nn.Conv2d(2, 3, 3, padding=1),
    "nn.MaxPool2d": nn.MaxPool2d(2),
    "nn.AvgPool2d": nn.AvgPool2d(2, padding=1),
    "nn.AdaptiveAvgPool2d": nn.AdaptiveAvgPool2d(1),
    "nn.BatchNorm2d": nn.BatchNorm2d(2),
    "nn.Dropout2d": nn.Dropout2d(),
    "nn.ZeroPad2d": nn.ZeroPad2d(1),
    "nn.PixelUnshuffle": nn.PixelUnshuffle(1),
    "nn.AdaptiveMaxPool2d": nn.AdaptiveMaxPool2d(2),
}


OF_PAIRS: dict[str, nn.Module] = {
    "nn.Bilinear": nn.Bilinear(4, 4, 2),
    "nn.CosineSimilarity": nn.CosineSimilarity(),
    "nn.PairwiseDistance": nn.PairwiseDistance(),
}
OF_WORDS: dict[str, nn.Module] = {"nn.Embedding": nn.Embedding(5, 3), "nn.EmbeddingBag": nn.EmbeddingBag(5, 3)}


def _of(letter: str, layer: nn.Module) -> Callable[..., Any]:
    m = prepared(layer)
    if isinstance(layer, nn.EmbeddingBag):
        return lambda k, m=m: m(k[None])
    runs = {"x": lambda x, m=m: m(x), "g": lambda g, m=m: m(g), "p": lambda p, m=m: m(p), "k": lambda k, m=m: m(k)}
    return runs[letter]


def _of_two(layer: nn.Module) -> Callable[..., Any]:
    m = prepared(layer)
    return lambda x, y, m=m: m(x, y)


LAYERS: dict[str, Callable[..., Any]] = {
    **{name: _of("x", layer) for name, layer in OF_ROWS.items()},
    **{name: _of("g", layer) for name, layer in OF_SEQUENCES.items()},
    **{name: _of("p", layer) for name, layer in OF_IMAGES.items()},
    **{name: _of_two(layer) for name, layer in OF_PAIRS.items()},
    **{name: _of("k", layer) for name, layer in OF_WORDS.items()},
}

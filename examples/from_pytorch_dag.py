"""A GRU over a graph without cycles, as in encoders of neural architectures and circuits, compiled as it is."""

import random

import torch
from from_pytorch import compare
from torch import nn
from torch.nn import functional

import cortex

KINDS = 8


class Vertex:
    def __init__(self, kind, predecessors):
        self.kind = kind
        self.predecessors = predecessors


class DagGRU(nn.Module):
    """Gated sums over predecessors; a dictionary keeps what has been computed, for vertices are shared."""

    def __init__(self, dim=128, latent=16):
        super().__init__()
        self.dim = dim
        self.cell = nn.GRUCell(KINDS, dim)
        self.gate = nn.Sequential(nn.Linear(dim, dim), nn.Sigmoid())
        self.mapper = nn.Linear(dim, dim, bias=False)
        self.mean, self.log_variance = nn.Linear(dim, latent), nn.Linear(dim, latent)

    def encode(self, vertex, known):
        if vertex not in known:
            x = functional.one_hot(torch.tensor([vertex.kind]), KINDS).float()
            h = torch.zeros(1, self.dim)
            for predecessor in vertex.predecessors:
                below = self.encode(predecessor, known)
                h = h + self.gate(below) * self.mapper(below)
            known[vertex] = self.cell(x, h)
        return known[vertex]

    def forward(self, sink):
        h = self.encode(sink, {})
        return self.mean(h), self.log_variance(h)


def graph(size):
    made = []
    for _ in range(size):
        made.append(Vertex(random.randrange(KINDS), random.sample(made, min(len(made), random.randint(1, 3)))))
    return Vertex(0, made[-3:])


@torch.no_grad()
def main():
    random.seed(0)
    graphs = [graph(size) for size in (12, 24, 36)]
    module = DagGRU().eval()

    fast = cortex.compile(module, examples=graphs)

    mean, log_variance = fast(graphs[0])
    print("mean and variance:", mean.shape, log_variance.shape)
    compare(module, fast, graphs)


if __name__ == "__main__":
    main()

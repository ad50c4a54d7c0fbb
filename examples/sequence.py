"""A GRU: a sequence is a linked list, its last element stands for the whole."""

import numpy as np

import cortex
from cortex import sigmoid, tanh
from cortex.structures.sequences import sequence

HIDDEN, WORDS = 48, 100


@cortex.model
def gru(node, w):
    h = cortex.zeros(HIDDEN) if node.prev is None else gru(node.prev, w).h
    xr, xz, xn = cortex.split(w.Wx @ w.emb[node.word] + w.bx, 3)
    hr, hz, hn = cortex.split(w.Wh @ h + w.bh, 3)
    r, z = sigmoid(xr + hr), sigmoid(xz + hz)
    return cortex.state(h=(1 - z) * tanh(xn + r * hn) + z * h)


def main():
    rng = np.random.default_rng(0)
    shapes = {"emb": (WORDS, HIDDEN), "Wx": (3 * HIDDEN, HIDDEN), "Wh": (3 * HIDDEN, HIDDEN)}
    shapes |= {"bx": (3 * HIDDEN,), "bh": (3 * HIDDEN,)}
    weights = {name: rng.normal(0, 0.15, shape).astype(np.float32) for name, shape in shapes.items()}
    fast = cortex.compile(gru, weights)
    print("short and long:", fast([sequence([1, 2, 3]), sequence(range(90))]).h.shape)
    print("a hundred thousand steps:", fast(sequence([i % WORDS for i in range(100_000)])).h[:3])


if __name__ == "__main__":
    main()

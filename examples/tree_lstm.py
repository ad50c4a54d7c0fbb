"""A child-sum TreeLSTM over parse trees: the model, its weights, two sentences."""

import numpy as np

import cortex
from cortex import sigmoid, tanh
from cortex.structures.ptb import read_ptb

HIDDEN, WORDS = 64, 1000


@cortex.model
def tree_lstm(node, w):
    if node.is_leaf:
        i, o, u = cortex.split(w.W @ w.emb[node.word] + w.b, 3)
        c = sigmoid(i) * tanh(u)
    else:
        kids = node.children
        i, o, u = cortex.split(w.U @ cortex.sum(tree_lstm(k, w).h for k in kids) + w.b, 3)
        c = sigmoid(i) * tanh(u) + cortex.sum(
            sigmoid(w.Uf @ tree_lstm(k, w).h + w.bf) * tree_lstm(k, w).c for k in kids
        )
    return cortex.state(h=sigmoid(o) * tanh(c), c=c)


def random_weights(seed=0):
    rng = np.random.default_rng(seed)
    shapes = {
        "emb": (WORDS, HIDDEN),
        "W": (3 * HIDDEN, HIDDEN),
        "U": (3 * HIDDEN, HIDDEN),
        "b": (3 * HIDDEN,),
        "Uf": (HIDDEN, HIDDEN),
        "bf": (HIDDEN,),
    }
    return {name: rng.normal(0, HIDDEN**-0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def main():
    vocabulary = {}
    trees = read_ptb(
        "(3 (2 It) (4 (2 works) (2 .)))  (1 (2 (2 No) (2 one)) (1 (2 goes) (2 unindicted)))",
        words=lambda word: vocabulary.setdefault(word, len(vocabulary)),
    )
    fast = cortex.compile(tree_lstm, random_weights())
    out = fast(trees)
    print("one vector per sentence:", out.h.shape)
    print("one vector per node:", out.nodes.h.shape)
    alone = fast(trees[1])
    print("the same bits alone and in a batch:", np.array_equal(alone.h, out.h[1]))


if __name__ == "__main__":
    main()

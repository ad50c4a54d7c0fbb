"""The PyTorch references against the equations of the papers, written once more in NumPy, in double precision."""

import random
from collections.abc import Callable
from typing import Any

import extreme_structures
import numpy as np
import pytest

from cortex import zoo
from cortex.structures.sequences import sequence
from cortex.structures.tree import Link, Node

torch = pytest.importorskip("torch")

H, V = 8, 40
Array = Any
W = dict[str, Array]


def sig(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def rows(matrix: Array, part: int) -> Array:
    return matrix[part * H : (part + 1) * H]


def is_leaf(node: Any) -> bool:
    return not node.children if isinstance(node, Node) else node.left is None


def tree_fc(node: Any, w: W) -> list[Array]:
    if is_leaf(node):
        return [w["emb"][node.word]]
    (left,), (right,) = tree_fc(node.left, w), tree_fc(node.right, w)
    return [np.maximum(w["W"][:, :H] @ left + w["W"][:, H:] @ right + w["b"], 0)]


def tree_rnn(node: Any, w: W) -> list[Array]:
    if is_leaf(node):
        return [w["emb"][node.word]]
    return [np.tanh(tree_rnn(node.left, w)[0] + tree_rnn(node.right, w)[0] + w["b"])]


def tree_lstm(node: Any, w: W) -> list[Array]:
    kids = [tree_lstm(k, w) for k in node.children]
    words = "Wf" in w
    x = w["emb"][node.word] if words or not kids else np.zeros(H)
    s = np.sum([h for h, _ in kids], axis=0) if kids else np.zeros(H)
    i, o, u = (rows(w["W"], g) @ x + rows(w["U"], g) @ s + rows(w["b"], g) for g in range(3))
    xf = w["Wf"] @ x if words else 0.0
    c = sig(i) * np.tanh(u) + sum((sig(w["Uf"] @ h + xf + w["bf"]) * c for h, c in kids), np.zeros(H))
    return [sig(o) * np.tanh(c), c]


def nary_tree_lstm(node: Any, w: W) -> list[Array]:
    """With the paper's separate matrices: U[slot][gate], Uf[gate of slot][child in slot]."""
    kids = [] if is_leaf(node) else [nary_tree_lstm(node.left, w), nary_tree_lstm(node.right, w)]
    gates = []
    for g in range(3):
        x = rows(w["b"], g) if kids else rows(w["W"], g) @ w["emb"][node.word] + rows(w["b"], g)
        gates.append(x + sum(rows(w["U"], g)[:, k * H : (k + 1) * H] @ h for k, (h, _) in enumerate(kids)))
    i, o, u = gates
    c = sig(i) * np.tanh(u)
    for k, (_, below) in enumerate(kids):
        c = c + below * sig(
            w["bf"] + sum(rows(w["Uf"], k)[:, j * H : (j + 1) * H] @ h for j, (h, _) in enumerate(kids))
        )
    return [sig(o) * np.tanh(c), c]


def tree_gru(node: Any, w: W, simple: bool = False) -> list[Array]:
    kids = [tree_gru(k, w, simple)[0] for k in node.children]
    words = "Wr" in w
    x = w["emb"][node.word] if words or not kids else np.zeros(H)
    s = np.sum(kids, axis=0) if kids else np.zeros(H)
    z = sig(w["Wz"] @ x + w["Uz"] @ s + w["bz"])
    r = sig((w["Wr"] @ x if words else 0.0) + w["Ur"] @ s + w["br"])
    g = np.tanh(w["Wh"] @ x + w["Uh"] @ (r * s) + w["bh"])
    return [(1 - z) * g if simple else z * s + (1 - z) * g]


def mv_rnn(node: Any, w: W) -> list[Array]:
    if is_leaf(node):
        return [w["emb"][node.word], w["mat"][node.word]]
    (a, A), (b, B) = mv_rnn(node.left, w), mv_rnn(node.right, w)
    v = np.tanh(w["W"][:, :H] @ (B @ a) + w["W"][:, H:] @ (A @ b) + w["b"])
    return [v, w["WM"][:, :H] @ A + w["WM"][:, H:] @ B]


def dag_rnn(node: Any, w: W) -> list[Array]:
    done: dict[int, Array] = {}

    def h(n: Any) -> Array:
        if id(n) not in done:
            done[id(n)] = np.tanh(
                w["U"] @ sum((h(p) for p in n.children), np.zeros(H)) + w["W"] @ w["emb"][n.word] + w["b"]
            )
        return done[id(n)]

    return [h(node)]


def words_of(link: Link | None) -> list[int]:
    words: list[int] = []
    while link is not None:
        words.append(link.word)
        link = link.prev
    return words[::-1]


def lstm(node: Any, w: W) -> list[Array]:
    h = c = np.zeros(H)
    for word in words_of(node):
        i, f, g, o = np.split(w["Wx"] @ w["emb"][word] + w["Wh"] @ h + w["b"], 4)
        c = sig(f) * c + sig(i) * np.tanh(g)
        h = sig(o) * np.tanh(c)
    return [h, c]


def gru(node: Any, w: W) -> list[Array]:
    h = np.zeros(H)
    for word in words_of(node):
        x, y = w["Wx"] @ w["emb"][word] + w["bx"], w["Wh"] @ h + w["bh"]
        r, z = sig(x[:H] + y[:H]), sig(x[H : 2 * H] + y[H : 2 * H])
        h = (1 - z) * np.tanh(x[2 * H :] + r * y[2 * H :]) + z * h
    return [h]


def rntn(node: Any, w: W) -> list[Array]:
    if is_leaf(node):
        return [w["emb"][node.word]]
    x = np.concatenate([rntn(node.left, w)[0], rntn(node.right, w)[0]])
    return [np.tanh(np.array([x @ V_h @ x for V_h in w["V"]]) + w["W"] @ x + w["b"])]


EQUATIONS: dict[str, Callable[[Any, W], list[Array]]] = {
    "tree_fc": tree_fc,
    "tree_rnn": tree_rnn,
    "tree_lstm": tree_lstm,
    "tree_lstm_words": tree_lstm,
    "nary_tree_lstm": nary_tree_lstm,
    "tree_gru": tree_gru,
    "tree_gru_words": tree_gru,
    "simple_tree_gru": lambda node, w: tree_gru(node, w, simple=True),
    "mv_rnn": mv_rnn,
    "dag_rnn": dag_rnn,
    "lstm": lstm,
    "gru": gru,
    "rntn": rntn,
}


def double(weights: W) -> W:
    return {name: array.astype(np.float64) for name, array in weights.items()}


def test_every_entry_has_equations() -> None:
    assert list(EQUATIONS) == list(zoo.ENTRIES)


@pytest.mark.parametrize("name", EQUATIONS)
def test_reference_equals_the_equations(name: str) -> None:
    entry = zoo.load(name)
    w = double(entry.weights(H, V, seed=7))
    f = entry.reference(w)
    for root in entry.structures(random.Random(1), 4, V):
        states = f(root)
        for state, expected in zip(entry.states, EQUATIONS[name](root, w), strict=True):
            np.testing.assert_allclose(getattr(states, state).numpy(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["tree_lstm_words", "tree_gru_words", "dag_rnn"])
def test_reference_on_shared_nodes_and_leaves(name: str) -> None:
    entry = zoo.load(name)
    w = double(entry.weights(H, V))
    for root in (
        extreme_structures.random_dag(random.Random(2), 30, vocab=V),
        Node((), 3),
        extreme_structures.star(random.Random(3), 7, V),
    ):
        expected = EQUATIONS[name](root, w)[0]
        np.testing.assert_allclose(entry.reference(w)(root).h.numpy(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_sequence_models_are_torchs_own(name: str) -> None:
    entry = zoo.load(name)
    w = {k: torch.from_numpy(v) for k, v in double(entry.weights(H, V)).items()}
    net = (torch.nn.LSTM if name == "lstm" else torch.nn.GRU)(H, H).double()
    with torch.no_grad():
        net.weight_ih_l0.copy_(w["Wx"])
        net.weight_hh_l0.copy_(w["Wh"])
        net.bias_ih_l0.copy_(w["b"] if name == "lstm" else w["bx"])
        net.bias_hh_l0.copy_(torch.zeros(4 * H) if name == "lstm" else w["bh"])
        words = [3, 1, 4, 1, 5, 9, 2, 6]
        expected = net(w["emb"][words])[0][-1].numpy()
    actual = entry.reference(double(entry.weights(H, V)))(sequence(words)).h.numpy()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


def test_references_recurse_past_pythons_limit() -> None:
    entry = zoo.load("gru")
    h = entry.reference(entry.weights(4, V))(sequence([1, 2] * 2000)).h
    assert torch.isfinite(h).all()

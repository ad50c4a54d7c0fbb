"""Ten end-to-end cases, under 10 s in all: the first thing to run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import cortex
from cortex import Forest, concat, sigmoid, tanh

H = 5
RNG = np.random.default_rng(0)
EMB, W, U, V, B = (RNG.normal(0, 0.4, shape).astype(np.float32) for shape in ((9, H), (H, H), (H, 2 * H), (H, H), (H,)))


@dataclass(eq=False)
class Tree:
    word: int = 0
    children: tuple[Tree, ...] = ()
    left: Tree | None = None
    right: Tree | None = None
    op: str = "leaf"


def leaf(word: int) -> Tree:
    return Tree(word)


def pair(left: Tree, right: Tree) -> Tree:
    return Tree(0, (), left, right, "pair")


def close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1.3e-6, atol=1e-5)


@cortex.model
def add_up(node: Any, w: Any) -> Any:
    return w.emb[node.word] + cortex.sum(add_up(k, w) for k in node.children)


@cortex.model
def join(node: Any, w: Any) -> Any:
    if node.left is None:
        return w.emb[node.word]
    return tanh(w.U @ concat([join(node.left, w), join(node.right, w)]) + w.b)


def test_a_single_node() -> None:
    close(cortex.compile(add_up, {"emb": EMB})(leaf(3)).out, EMB[3])


def test_a_sum_over_children() -> None:
    tree = Tree(1, (leaf(2), Tree(3, (leaf(4), leaf(5))), leaf(6)))
    out = cortex.compile(add_up, {"emb": EMB})(tree)
    close(out.out, EMB[1:7].sum(0))
    close(out.nodes.out, [EMB[1:7].sum(0), EMB[2], EMB[3:6].sum(0), EMB[4], EMB[5], EMB[6]])


def test_a_matrix_product_over_two_slots() -> None:
    out = cortex.compile(join, {"emb": EMB, "U": U, "b": B})(pair(leaf(1), pair(leaf(2), leaf(3))))
    inner = np.tanh(U @ np.concatenate([EMB[2], EMB[3]]) + B)
    close(out.out, np.tanh(U @ np.concatenate([EMB[1], inner]) + B))


def test_a_batch_and_an_empty_batch() -> None:
    fast = cortex.compile(join, {"emb": EMB, "U": U, "b": B})
    close(fast([leaf(1), leaf(2)]).out, EMB[1:3])
    assert fast([]).out.shape == (0, H)


def test_two_states_and_a_gate_per_child() -> None:
    @cortex.model
    def gated(node: Any, w: Any) -> Any:
        if node.is_leaf:
            return cortex.state(h=w.emb[node.word], c=cortex.zeros(H))
        c = cortex.sum(sigmoid(w.W @ gated(k, w).h) * gated(k, w).h for k in node.children)
        return cortex.state(h=tanh(c), c=c)

    out = cortex.compile(gated, {"emb": EMB, "W": W})(Tree(0, (leaf(1), leaf(2))))
    c = sum(1 / (1 + np.exp(-(W @ EMB[i]))) * EMB[i] for i in (1, 2))
    close(out.c, c)
    close(out.h, np.tanh(c))


def test_a_tag_chooses_the_weights() -> None:
    @cortex.model
    def by_tag(node: Any, w: Any) -> Any:
        if node.op == "leaf":
            return w.emb[node.word]
        x = by_tag(node.left, w) + by_tag(node.right, w)
        return w.W @ x if node.op == "pair" else w.V @ x

    fast = cortex.compile(by_tag, {"emb": EMB, "W": W, "V": V})
    other = Tree(0, (), leaf(1), leaf(2), "other")
    close(fast([pair(leaf(1), leaf(2)), other]).out, [W @ (EMB[1] + EMB[2]), V @ (EMB[1] + EMB[2])])


def test_a_shared_node_is_computed_once() -> None:
    shared = leaf(4)
    out = cortex.compile(add_up, {"emb": EMB})(Tree(1, (shared, Tree(2, (shared,)))))
    close(out.out, EMB[1] + EMB[2] + 2 * EMB[4])
    assert out.nodes.out.shape == (3, H)


def test_a_long_chain_given_as_arrays() -> None:
    n = 30_000
    forest = Forest.from_parents(np.arange(-1, n - 1), fields={"word": np.arange(n) % 9})
    close(cortex.compile(add_up, {"emb": EMB * 1e-3})(forest).nodes.out[-9:], _tail_sums(n) * 1e-3)


def _tail_sums(n: int) -> Any:
    words = np.arange(n) % 9
    return np.cumsum(EMB[words[-9:]][::-1], axis=0)[::-1]


def test_the_interpreter_agrees() -> None:
    fast = cortex.compile(join, {"emb": EMB, "U": U, "b": B})
    tree = pair(pair(leaf(1), leaf(2)), pair(leaf(3), leaf(4)))
    close(fast(tree).nodes.out, fast.interpret(tree)["out"])


def test_a_mistake_is_explained() -> None:
    with pytest.raises(cortex.StructureError, match=r"99"):
        cortex.compile(add_up, {"emb": EMB})(leaf(99))

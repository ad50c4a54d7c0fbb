"""`cortex.compile` with examples: wrong numbers are told, rounding is not."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex
from cortex.frontend.builder import is_tracing

RNG = np.random.default_rng(7)
W = {name: RNG.normal(0, 0.5, shape) for name, shape in {"emb": (9, 4), "U": (4, 4), "b": (4,)}.items()}


class Node(SimpleNamespace):
    """A node of a test."""


def leaf(word: int = 1, **fields: Any) -> Node:
    return Node(word=word, children=[], **fields)


def inner(*children: Node, **fields: Any) -> Node:
    return Node(word=0, children=list(children), **fields)


def defect() -> float:
    """What stands for a defect of the compiler: 1.0 in the function that the user wrote, 1.01 in what is compiled."""
    return 1.01 if is_tracing() else 1.0


@cortex.model
def at_leaves(node: Any, w: Any) -> Any:
    if node.is_leaf:
        return w.emb[node.word] * defect()
    return cortex.tanh(w.U @ cortex.sum(at_leaves(k, w) for k in node.children))


@cortex.model
def in_one_state(node: Any, w: Any) -> Any:
    h = cortex.tanh(w.U @ cortex.sum(in_one_state(k, w).h for k in node.children) + w.b)
    return cortex.state(h=h, c=h * defect())


@cortex.model
def for_three_children(node: Any, w: Any) -> Any:
    x = w.emb[node.word]
    for k in node.children:
        x = x + w.U @ for_three_children(k, w)[0]
    return (x * defect() if len(node.children) == 3 else x), w.b


@cortex.model
def of_one_tag(node: Any, w: Any) -> Any:
    x = w.emb[node.word] + cortex.sum(of_one_tag(k, w) for k in node.children)
    return x * defect() if node.tag == "rare" else x


@cortex.model
def in_a_comprehension(node: Any, w: Any) -> Any:
    """Python counts the children; the trace sees one that stands for all."""
    count = 1 if is_tracing() else len(node.children)
    return w.b + cortex.sum([w.b] * count)


DEFECTS: dict[str, tuple[Any, list[Any]]] = {
    "at_leaves": (at_leaves, [inner(leaf(1), inner(leaf(2)))]),
    "in_one_state": (in_one_state, [leaf()]),
    "for_three_children": (for_three_children, [leaf(), inner(leaf(), inner(leaf(1), leaf(2), leaf(3)))]),
    "of_one_tag": (
        of_one_tag,
        [inner(*(leaf(i % 9, tag="usual") for i in range(60)), leaf(3, tag="rare"), tag="usual")],
    ),
    "in_a_comprehension": (in_a_comprehension, [inner(leaf(), leaf())]),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_defects_are_told(name: str, golden: Callable[[str, str], None]) -> None:
    model, examples = DEFECTS[name]
    with pytest.raises(cortex.ModelError) as caught:
        cortex.compile(model, W, examples=examples)
    golden(f"errors/self_check/{name}", re.sub(r"(\.\d{4})\d+", r"\1", caught.value.message))
    cortex.compile(model, W, examples=examples, check=False)


@pytest.mark.parametrize("options", [{"weights_dtype": "int8"}, {"target": "aarch64-linux-gnu"}, {"threads": 2}])
def test_defects_are_told_whatever_is_compiled_for(options: Any) -> None:
    """Where results deviate by design, or cannot be had here, what was traced is checked."""
    model, examples = DEFECTS["at_leaves"]
    with pytest.raises(cortex.ModelError, match="computes other numbers"):
        cortex.compile(model, W, examples=examples, **options)


@cortex.model
def right(node: Any, w: Any) -> Any:
    x = w.emb[node.word]
    return x if node.is_leaf else cortex.tanh(w.U @ cortex.sum(right(k, w) for k in node.children) + x)


@pytest.mark.parametrize("options", [{"weights_dtype": "int8"}, {"weights_dtype": "bf16"}, {"threads": 2}, {}])
def test_no_alarm(options: Any) -> None:
    cortex.compile(right, W, examples=[inner(leaf(1), inner(leaf(2), leaf(3))), leaf(4)], **options)


def test_depth_does_not_matter() -> None:
    chain = leaf()
    for _ in range(5000):
        chain = inner(chain)
    cortex.compile(right, W, examples=[chain])
    with pytest.raises(
        cortex.ModelError, match=r"at examples\[0\]\.children\[0\].* \.\.\. .*\(5000 steps\), state 'out'"
    ):
        cortex.compile(at_leaves, W, examples=[chain])


def test_renamed_children_and_functions_of_nodes() -> None:
    tree = Node(kids=[Node(kids=None, n=3), Node(kids=[], n=4)], n=0)
    options: Any = {"children": "kids", "fields": {"word": lambda node: node.n}, "examples": [tree]}
    cortex.compile(right, W, **options)
    with pytest.raises(cortex.ModelError, match=r"examples\[0\]\.children\[0\]"):
        cortex.compile(at_leaves, W, **options)


def test_nodes_that_are_made_when_they_are_read() -> None:
    def fresh(node: Any) -> list[Any]:
        return [Node(word=k.word, children=k.children) for k in node.children]

    cortex.compile(right, W, examples=[inner(leaf(1), inner(leaf(2)))], children=fresh)


@cortex.model
def added_up(node: Any, w: Any) -> Any:
    return w.big * node.x + cortex.sum(added_up(k, w) for k in node.children)


@cortex.model
def cancelled(node: Any, w: Any) -> Any:
    x = w.many * node.x
    return cortex.exp(cortex.sum(x * w.signs)) * cortex.ones(2)


@cortex.model
def overflowing(node: Any, w: Any) -> Any:
    return cortex.exp(w.big * node.x) / cortex.exp(w.big * 2 * node.x)


def test_rounding_is_no_difference() -> None:
    many = RNG.normal(0, 1, 4000)
    weights = {"big": np.array([1e4, 1.0, 1e-4]), "many": 300 * many, "signs": np.sign(RNG.normal(size=4000))}
    wide = inner(*(leaf(x=float(x)) for x in RNG.normal(size=3000)), x=1.0)
    cortex.compile(added_up, weights, examples=[wide])
    cortex.compile(cancelled, weights, examples=[leaf(x=1e-3), leaf(x=0.37e-2)])
    cortex.compile(overflowing, weights, examples=[leaf(x=1.0), leaf(x=0.004), leaf(x=-0.009), leaf(x=0.0087)])


@pytest.mark.parametrize("x", [float("nan"), float("inf"), -float("inf"), 1e30, -1e-30, 0.0])
def test_special_values_equal_themselves(x: float) -> None:
    @cortex.model
    def scaled(node: Any, w: Any) -> Any:
        return w.b * node.x

    cortex.compile(scaled, W, examples=[leaf(x=x)])


def test_an_example_that_python_cannot_compute_is_told() -> None:
    @cortex.model
    def divided(node: Any, w: Any) -> Any:
        return w.b * (1.0 / node.x)

    with pytest.raises(cortex.StructureError, match=r"(?s)at structures\[1\], .*ZeroDivisionError.*1\.0 / node\.x"):
        cortex.compile(divided, W, examples=[leaf(x=2.0), leaf(x=0.0)])


def test_examples_keep_their_attributes() -> None:
    tree = inner(leaf(1), leaf(2))
    before = {id(node): dict(vars(node)) for node in (tree, *tree.children)}
    cortex.compile(right, W, examples=[tree])
    assert before == {id(node): vars(node) for node in (tree, *tree.children)}


def test_the_difference_need_not_be_in_the_first_node() -> None:
    """One kind of node among many, in the last example."""

    @cortex.model
    def by_tag(node: Any, w: Any) -> Any:
        for i in range(20):
            if node.tag == i:
                return w.b * (i + 1) * (defect() if i == 17 else 1)
        return w.b

    examples = [leaf(tag=i) for i in range(20)]
    with pytest.raises(cortex.ModelError, match=r"at examples\[17\], state 'out'"):
        cortex.compile(by_tag, W, examples=examples)


def test_an_attribute_is_leaf_that_says_something_else_is_told() -> None:
    cortex.compile(right, W, examples=[inner(leaf(1, is_leaf=True), is_leaf=False)])
    with pytest.raises(cortex.ModelError, match=r"at examples\[0\], state 'out'"):
        cortex.compile(right, W, examples=[inner(leaf(1, is_leaf=True), is_leaf=True)])

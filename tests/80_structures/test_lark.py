"""Lark's trees and tokens, walked as they are."""

from __future__ import annotations

from typing import Any

import lark
import numpy as np
import pytest
from models_of_packages import VOCAB, WEIGHTS, close, labelled, labelled_by, words_below

import cortex
from cortex.errors import StructureError
from cortex.structures import hashed, lark_trees

GRAMMAR = """
    sum: product | sum "+" product
    product: atom | product "*" atom
    ?atom: NUMBER | "(" sum ")"
    NUMBER: /[0-9]+/
"""
LABELS = {"sum": 1, "product": 2, "NUMBER": 3}
word_id = hashed(VOCAB)


@pytest.mark.parametrize("parser", ["lalr", "earley"])
@pytest.mark.parametrize("text", ["7", "1+2*3", "(1+1)*1+2*(3+(4*5))"])
def test_rules_terminals_and_texts(parser: str, text: str) -> None:
    tree = lark.Lark(GRAMMAR, start="sum", parser=parser).parse(text)
    out = cortex.compile(labelled, WEIGHTS, **lark_trees(words=word_id, labels=LABELS))(tree)
    expected = labelled_by(
        lambda t: [] if isinstance(t, lark.Token) else t.children,
        lambda t: LABELS[t.type if isinstance(t, lark.Token) else t.data],
        word_id,
    )
    close(out.out, expected(tree))
    tokens = list(tree.scan_values(lambda value: isinstance(value, lark.Token)))
    assert out.nodes.out.shape[0] == len(list(tree.iter_subtrees())) + len(tokens)


def test_rules_told_apart_by_the_model() -> None:
    @cortex.model
    def value(node: Any, w: Any) -> Any:
        if node.label == "NUMBER":
            return w.one * node.number
        first = value(node.children[0], w)
        if len(node.children) == 1:
            return first
        second = value(node.children[1], w)
        return first + second if node.label == "sum" else first * second

    meaning = lark_trees(fields={"number": cortex.field((), float)})
    fast = cortex.compile(value, {"one": WEIGHTS["emb"][0] * 0 + 1}, **meaning)
    parser = lark.Lark(GRAMMAR, start="sum", parser="lalr")
    for text in ("7", "1+2*3", "(1+1)*1+2*(3+(4*5))"):
        assert (fast(parser.parse(text)).out == eval(text)).all()


def test_placeholders_for_what_is_absent_are_left_out() -> None:
    parser = lark.Lark('pair: A [B] C\nA: "a"\nB: "b"\nC: "c"', start="pair", maybe_placeholders=True)
    tree = parser.parse("ac")
    assert tree.children[1] is None
    assert cortex.compile(words_below, WEIGHTS, **lark_trees(words=word_id))(tree).nodes.out.shape[0] == 3


def test_a_rule_that_matched_nothing_has_the_empty_text() -> None:
    tree = lark.Lark('start: rest A\nrest: B*\nA: "a"\nB: "b"').parse("a")
    assert tree.children[0].children == []
    out = cortex.compile(words_below, WEIGHTS, **lark_trees(words={"": 3, "a": 4}))(tree)
    close(out.nodes.out[1], np.tanh(WEIGHTS["emb"][3]))


def test_what_a_transformer_left_is_refused() -> None:
    tree = lark.Tree("sum", [lark.Tree("product", [3])])
    with pytest.raises(StructureError, match=r"a lark tree holds 3 .a int.; its nodes are Trees and Tokens"):
        cortex.compile(words_below, WEIGHTS, **lark_trees(words=word_id))(tree)

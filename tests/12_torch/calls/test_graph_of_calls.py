"""Graphs of calls: the native linearizer makes those that the relations say, as tracing does in Python."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import bottom_up
import heads
import nodes
import numpy as np
import pytest
import torch
from test_modules import _inputs, same
from torch import nn

import cortex
from cortex import _native
from cortex.frontend.torch.entry import Signature, as_call
from cortex.frontend.torch.model import TorchModel
from cortex.frontend.torch.torch_entry import TorchEntry
from cortex.frontend.trace import Trace
from cortex.frontend.weights import Weights
from cortex.runtime.linearize import linearizer_spec


class Stores(heads.Parts):
    """Two methods store the same attribute; a third one reads it, whoever was called."""

    def left(self, node):
        node.h = self.emb(torch.tensor(node.word))
        self.below(node)

    def right(self, node):
        node.h = torch.tanh(self.one(self.emb(torch.tensor(node.word))))
        self.below(node)

    def below(self, node):
        for i, child in enumerate(node.children):
            self.right(child) if i else self.left(child)

    def total(self, node):
        h = node.h
        for child in node.children:
            h = h + self.total(child)
        return h

    def forward(self, node):
        self.left(node)
        return self.total(node)


CASES: dict[str, tuple[Any, Callable[[], Any]]] = {
    "nested_tuples": (bottom_up.NestedTuples, lambda: (nodes.nested(),)),
    "inputs": (heads.Inputs, _inputs),
    "even_odd": (heads.EvenOdd, nodes.nary),
    "shared": (heads.EvenOdd, nodes.dag),
    "visitor": (heads.Visitor, nodes.expression),
    "flag": (heads.Flag, nodes.pairs),
    "up_and_down": (heads.UpAndDown, nodes.pairs),
    "bidirectional": (heads.Bidirectional, nodes.nary),
    "accumulated": (heads.Accumulated, nodes.pairs),
    "stores": (Stores, nodes.nary),
}


@pytest.fixture(autouse=True)
def seeds() -> None:
    random.seed(7)
    torch.manual_seed(7)


def traced(module: Any, examples: list[Any]) -> tuple[Trace, Callable[[Any], Any], TorchModel]:
    entry = TorchEntry.of_module(module)
    face = entry.interface([])
    calls = [face.bind(as_call(example), {}) for example in examples]
    signature = Signature.of(entry, calls[0], ())
    model = TorchModel(entry, signature)
    trace = Trace(model, Weights(entry.weights))
    trace.see([signature.request(call) for call in calls])
    return trace, lambda example: signature.request(face.bind(as_call(example), {})), model


@pytest.mark.parametrize("name", CASES)
def test_native_and_traced_graphs_are_the_same(name: str) -> None:
    kind, make = CASES[name]
    examples = [make() for _ in range(30)]
    trace, request, model = traced(kind().eval(), examples)
    m, accessors = trace.model(), trace.accessors
    spec = linearizer_spec(m, accessors)
    assert model.mode == "calls" and spec["accessors"] == {}
    spec["calls"]["needed"] = []  # make all calls that a role makes, whatever the kind of its caller
    native = _native.Linearizer(spec)
    del spec["calls"]
    read = partial(partial, lambda name, call: accessors.read(call, name, None))
    spec["accessors"] = {n: read(n) for n in [*m.slots, *m.lists, *accessors._steps, *accessors._relations]}
    in_python = _native.Linearizer(spec)
    for example in examples:
        requests = [request(example), request(examples[0])]
        got = native.linearize(trace.roots(requests))
        want = in_python.linearize(model.roots(requests))
        assert got["sizes"] == want["sizes"]
        for part in ("arrays", "fields"):
            for array, values in want[part].items():
                np.testing.assert_array_equal(got[part][array], values, err_msg=array)


def test_calls_that_no_result_needs_are_not_made() -> None:
    trees = [nodes.expression(12) for _ in range(10)]
    trace, request, _ = traced(heads.Visitor().eval(), trees)
    native = _native.Linearizer(linearizer_spec(trace.model(), trace.accessors))
    for tree in trees:
        inner = sum(node.op is not nodes.Op.WORD for node in below(tree))
        assert native.linearize(trace.roots([request(tree)]))["sizes"]["num_nodes"] == 1 + inner


def below(node: Any) -> list[Any]:
    return [node, *(x for child in node.kids for x in below(child))]


def test_the_last_call_counts_where_several_store_an_attribute() -> None:
    module = Stores().eval()
    trees = [nodes.nary() for _ in range(10)]
    fast = cortex.compile(module, examples=trees)
    with torch.no_grad():
        for tree in trees:
            same(fast(tree), module(tree))
        same(fast(trees), torch.stack([module(tree) for tree in trees]))


def chain(length: int) -> nodes.Node:
    tree = nodes.Node(1)
    for i in range(length):
        tree = nodes.Node(i % nodes.WORDS, [tree])
    return tree


def test_deep_chains_need_no_stack() -> None:
    module = heads.Bidirectional().eval()
    fast = cortex.compile(module, examples=[chain(3)])
    up, down = fast(chain(100_000))
    assert torch.isfinite(up).all() and torch.isfinite(down).all()


def test_cycles_are_refused() -> None:
    fast = cortex.compile(heads.EvenOdd().eval(), examples=[nodes.nary() for _ in range(8)])
    tree = nodes.Node(1, [nodes.Node(2)])
    tree.children[0].children.append(tree)
    with pytest.raises(cortex.StructureError, match="must not contain a cycle"):
        fast(tree)


class Failing(nodes.Node):
    @property
    def word(self) -> int:
        raise ValueError("no word today")

    @word.setter
    def word(self, value: int) -> None:
        pass


def test_errors_of_the_users_code_say_where() -> None:
    fast = cortex.compile(heads.EvenOdd().eval(), examples=[nodes.nary() for _ in range(8)])
    with pytest.raises(ValueError, match="no word today") as raised:
        fast(nodes.Node(1, [nodes.Node(2), Failing(3)]))
    assert raised.value.__notes__ == ["while reading `word` of root.tree_even.children_odd[1] (a Failing)"]


def test_fields_that_do_not_fit_say_where() -> None:
    fast = cortex.compile(heads.EvenOdd().eval(), examples=[nodes.nary() for _ in range(8)])
    with pytest.raises(cortex.StructureError, match=r"node at root\.tree_even \(Node\): field 'word' is 99"):
        fast(nodes.Node(99))


def test_calls_of_unknown_kinds_are_traced_or_refused(tmp_path: Path) -> None:
    module = heads.UpAndDown().eval()
    fast = cortex.compile(module, examples=[nodes.Pair(1)])
    fast.save(tmp_path / "module.cortex")
    tree = nodes.pairs()
    with torch.no_grad():
        same(fast(tree), module(tree))
    loaded = cortex.load(tmp_path / "module.cortex")
    np.testing.assert_allclose(loaded(nodes.Pair(1)), fast(nodes.Pair(1)).numpy(), rtol=1e-6)
    with pytest.raises(
        cortex.StructureError, match=r"a Pair is of a kind of node that the saved model has no code for"
    ):
        loaded(tree)


class Downwards(nn.Module):
    """Values are passed down, and words are what a function of the user's says."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(nodes.WORDS, 4)

    def down(self, node, above):
        h = total = torch.tanh(self.emb(torch.tensor(node.word)) + above)
        for child in node.children:
            total = total + self.down(child, h)
        return total

    def forward(self, node):
        return self.down(node, torch.zeros(4))


def test_functions_of_the_users_are_called_for_nodes() -> None:
    module = Downwards().eval()
    trees = [nodes.nary() for _ in range(10)]

    def plus(node: Any) -> int:
        return (node.word + 1) % nodes.WORDS

    fast = cortex.compile(module, examples=trees, fields={"word": plus})
    with torch.no_grad():
        for tree in trees:
            shifted = [setattr(node, "word", plus(node)) or node for node in all_of(tree)]
            want = module(tree)
            for node in shifted:
                node.word = (node.word - 1) % nodes.WORDS
            same(fast(tree), want)
    alive = weakref.ref(plus)
    del fast, plus
    for _ in range(2):  # what objects of the extension hold is free once they are
        gc.collect()
    assert alive() is None


def all_of(node: Any) -> list[Any]:
    return [node, *(x for child in node.children for x in all_of(child))]


def test_threads_have_graphs_of_their_own() -> None:
    module = heads.Bidirectional().eval()
    trees = [nodes.nary(30) for _ in range(12)]
    fast = cortex.compile(module, examples=trees)
    want = [fast(tree) for tree in trees]

    def run(number: int) -> None:
        for i in range(40):
            at = (i + number) % len(trees)
            for a, b in zip(fast(trees[at]), want[at], strict=True):
                assert torch.equal(a, b)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))

"""Fields, renamed attributes, weights, and arrays a model closes over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frontend_meaning import Node, checked, evaluate, weights
from numpy.testing import assert_allclose, assert_array_equal

import cortex
from cortex import ModelError, StructureError
from cortex.frontend.fields import Accessors
from cortex.frontend.trace import Trace
from cortex.frontend.weights import Weights
from cortex.ra.ir import FieldDecl, TensorType

H = 4


@cortex.model
def floats(node: Any, w: Any) -> Any:
    return w.W @ node.x + cortex.sum(floats(k, w) for k in node.children)


def test_float_field_of_an_example() -> None:
    given = weights(W=(H, 3))
    root = Node(x=[1.0, 2.0, 3.0], children=[Node(x=np.ones(3), children=[])])
    trace = Trace(floats, given)
    trace.explore()
    assert trace.known_kinds == 0
    assert_allclose(evaluate(trace, root)["out"], given["W"] @ [2.0, 3.0, 4.0], rtol=1e-6)
    assert trace.known_kinds == 1
    assert checked(trace).fields == (FieldDecl("x", TensorType((3,))),)
    assert [kind.guard for kind in checked(trace).kinds] == [()]


def test_declared_float_field_needs_no_example() -> None:
    trace = Trace(floats, weights(W=(H, 3)), fields={"x": cortex.field(3)})
    assert checked(trace).fields == (FieldDecl("x", TensorType((3,))),)


def test_fields_of_children() -> None:
    @cortex.model
    def edges(node: Any, w: Any) -> Any:
        return w.b + cortex.sum(k.weight * edges(k, w) + w.emb[k.word] for k in node.children)

    given = weights(b=(H,), emb=(7, H))
    kid = Node(weight=0.5, word=3, children=[])
    root = Node(weight=1.0, word=0, children=[kid, kid])
    trace = Trace(edges, given)
    assert_allclose(evaluate(trace, root)["out"], 2 * given["b"] + 2 * given["emb"][3], rtol=1e-6)


def test_integer_field_in_arithmetic() -> None:
    @cortex.model
    def both(node: Any, w: Any) -> Any:
        scale = node.word * 2.0
        return w.emb[node.word] * scale + (w.b if node.next is None else both(node.next, w))

    given = weights(emb=(7, H), b=(H,))
    trace = Trace(both, given)
    assert_allclose(evaluate(trace, Node(word=3, next=None))["out"], 6 * given["emb"][3] + given["b"], rtol=1e-6)
    assert checked(trace).fields == (
        FieldDecl("word", TensorType((), "i64"), 7),
        FieldDecl("computed_word_times_2_0", TensorType(())),
    )


@cortex.model
def numbers_and_words(node: Any, w: Any) -> Any:
    if node.op == "number":
        return w.scale * node.value
    return w.table[node.value]


def test_an_attribute_is_an_index_in_some_kinds_only() -> None:
    given = weights(scale=(H,), table=(5, H))
    trace = Trace(numbers_and_words, given)
    for op, value, expected in (
        ("number", 1.5, given["scale"] * 1.5),
        ("word", 3, given["table"][3]),
        ("number", 0.25, given["scale"] * 0.25),
    ):
        assert_allclose(evaluate(trace, Node(op=op, value=value))["out"], expected, rtol=1e-6)
    assert {f.name: f.type.dtype for f in checked(trace).fields} == {"value": "i64", "value_computed": "f32"}


def test_limit_is_the_smallest_table() -> None:
    @cortex.model
    def two(node: Any, w: Any) -> Any:
        return w.a[node.word] + w.b[node.word, 1:] + w.c[0]

    assert checked(Trace(two, weights(a=(9, 2), b=(5, 3), c=(2, 2)))).fields[0].limit == 5


def test_renamed_attributes() -> None:
    @cortex.model
    def renamed(node: Any, w: Any) -> Any:
        return w.emb[node.word] + cortex.sum(renamed(k, w) for k in node.children)

    given = weights(emb=(7, H))
    tree = Node(id="2", left=Node(id="1", left=None, right=None), right=None)
    expected = given["emb"][2] + given["emb"][1]
    for children in (("left", "right"), lambda n: [n.left] if n.left else []):
        trace = Trace(renamed, given, fields={"word": lambda n: int(n.id)}, children=children)
        assert_allclose(evaluate(trace, tree)["out"], expected, rtol=1e-6)
    trace = Trace(renamed, given, fields={"word": "id"}, children="kids")
    assert_allclose(evaluate(trace, Node(id=2, kids=[Node(id=1, kids=[])]))["out"], expected, rtol=1e-6)
    assert trace.accessors.source("word") == "id"
    assert not trace.accessors.renamed("other")


@pytest.mark.parametrize("wrong", [{"fields": {"x": 3}}, {"children": 3}, {"children": ("left", 3)}, {"children": ()}])
def test_wrong_declarations(wrong: Any) -> None:
    with pytest.raises(ModelError):
        Accessors(**wrong)


def test_a_list_has_to_be_iterable() -> None:
    with pytest.raises(StructureError, match="cannot be iterated"):
        Accessors().items(Node(children=3), "children")


def test_missing_attribute_of_a_real_node() -> None:
    @cortex.model
    def reads(node: Any, w: Any) -> Any:
        return w.emb[node.word] if node.op == "word" else reads(node.next, w)

    with pytest.raises(StructureError, match=r"reads 'op' of a Node that has no such attribute(.|\n)*node\.op"):
        Trace(reads, weights(emb=(7, H))).see([Node(word=1)])


def test_closures_become_parameters_by_identity() -> None:
    bias, table = np.ones(H), np.arange(12.0).reshape(3, H)

    @cortex.model
    def closed(node: Any) -> Any:
        row = cortex.embedding(table, node.word) + bias
        return row if node.is_leaf else row * bias + closed(node.only) + np.float64(2)

    trace = Trace(closed, {"const_0": np.zeros(1)})
    assert [p.name for p in checked(trace).params] == ["const_1", "const_2"]
    assert_array_equal(trace.weights.arrays(["const_1"])["const_1"], table)
    tree = Node(word=1, only=Node(word=2, only=None))
    assert_allclose(evaluate(trace, tree)["out"], (table[1] + 1) + (table[2] + 1) + 2)


def test_dotted_weights() -> None:
    @cortex.model
    def dotted(node: Any, w: Any) -> Any:
        assert "cell" in w
        assert "gate" not in w.cell
        assert list(w.cell) == ["0", "1"]
        assert not hasattr(w, "bias")
        return w.cell[0].W @ w["cell.1.b"] + w.cell["1"].b

    given = {"cell.0.W": np.eye(H), "cell.1.b": np.arange(H)}
    assert_allclose(evaluate(Trace(dotted, given), Node())["out"], 2 * np.arange(H))


def test_further_arguments_are_constants() -> None:
    @cortex.model
    def scaled(node: Any, w: Any, factor: float = 3.0) -> Any:
        return w.b if node.is_leaf else factor * scaled(node.only, w, factor=3.0) + scaled(node.only)

    given = weights(b=(H,))
    tree = Node(only=Node(only=None))
    assert_allclose(evaluate(Trace(scaled, given), tree)["out"], 4 * given["b"], rtol=1e-6)


class Parameter:
    """Looks like a torch tensor."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def detach(self) -> Parameter:
        return self

    def cpu(self) -> Parameter:
        return self

    def float(self) -> Parameter:
        return Parameter(self.array.astype(np.float32))

    def is_floating_point(self) -> bool:
        return True

    def numpy(self) -> Any:
        return self.array


def test_weights_become_float32() -> None:
    w = Weights({"half": np.ones(2, np.float16), "double": np.ones(2), "int": [1, 2], "torch": Parameter(np.ones(3))})
    assert {array.dtype for array in w.arrays(w.names).values()} == {np.dtype(np.float32)}
    assert w.shape("torch") == (3,)
    assert Weights.of(w) is w


@pytest.mark.parametrize("wrong", [{"a": "text"}, {"a": np.array([2**24 + 1])}, {"a": [[1], [2, 3]]}, [1], "none.npz"])
def test_wrong_weights(wrong: Any) -> None:
    with pytest.raises(ModelError):
        Weights(wrong)


def test_weight_files(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    given = weights(W=(2, 3), b=(2,))
    np.savez(tmp_path / "w.npz", **given)
    save_file(given, tmp_path / "w.safetensors")
    for name in ("w.npz", "w.safetensors"):
        found = Weights(tmp_path / name)
        assert_array_equal(found.arrays(["W"])["W"], given["W"])
    (tmp_path / "w.txt").write_text("")
    with pytest.raises(ModelError, match=r"only \.npz and \.safetensors"):
        Weights(tmp_path / "w.txt")

"""One golden text for every way in which a model can be wrong: the message, the user's line and the caret."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex
from cortex.frontend.beyond import Beyond
from cortex.frontend.foreign import EQUIVALENT
from cortex.frontend.trace import Trace

WEIGHTS = {
    "W": np.ones((4, 3)), "U": np.ones((4, 4)), "V": np.ones((2, 4, 4)), "b": np.ones(4), "emb": np.ones((9, 4)),
    "cell.bias": np.ones(4),
}  # fmt: skip

LEAF = "if node.is_leaf:\n    return w.b\n"

BODIES = {
    # shapes
    "matmul": "return w.W @ w.b",
    "matmul_vector_vector": "return w.b @ w.emb",
    "matmul_rank": "return w.V @ w.b",
    "broadcast": "return w.b + w.W",
    "axis": "return cortex.sum(w.b, axis=2)",
    "axis_of_items": "return cortex.sum([w.b, w.b], axis=0)",
    "axis_of_scalar": "return cortex.softmax(w.b[0])",
    "concat_axes": "return cortex.concat([w.b, w.W])",
    "concat_sizes": "return cortex.concat([w.U, w.W])",
    "concat_one_tensor": "return cortex.concat(w.U)",
    "concat_nothing": "return cortex.concat([])",
    "stack_shapes": "return cortex.stack([w.b, w.W])",
    "reshape": "return w.b.reshape(3, -1)",
    "reshape_count": "return cortex.reshape(w.b, 3, 3)",
    "transpose": "return cortex.transpose(w.W, (0, 0))",
    "split_parts": "i, o, u = cortex.split(w.b, 3)\nreturn i",
    "split_sizes": "i, o = cortex.split(w.b, [1, 2])\nreturn i",
    "layer_norm": "return cortex.layer_norm(w.b, w.W)",
    "outer": "return cortex.outer(w.b, w.W)",
    "einsum_sizes": 'return cortex.einsum("ij,j->i", w.W, w.b)',
    "einsum_letters": 'return cortex.einsum("i->i", w.W)',
    "einsum_output": 'return cortex.einsum("ij->k", w.W)',
    "einsum_diagonal": 'return cortex.einsum("ii->i", w.U)',
    "einsum_ellipsis": 'return cortex.einsum("...i->...", w.U)',
    "einsum_operands": 'return cortex.einsum("ij,j", w.W)',
    "zeros_shape": "return cortex.zeros(w.b)",
    "power": "return w.b ** w.b",
    "where_condition": "return cortex.where(w.b, 1, 0)",
    "logical": "return w.b & (w.b > 0)",
    # indices
    "index_range": "return w.W[4]",
    "index_bool": "return w.W[True]",
    "index_count": "return w.b[0, 1]",
    "index_type": 'return w.b["x"]',
    "slice_step": "return w.b[::-1]",
    "embedding_float": "return w.emb[w.b[0]]",
    "embedding_second_axis": "return w.emb[:, node.word]",
    "numpy_index": "return table[node.word]",
    "index_minus": "return w.emb[node.word - 1]",
    "index_negated": "return w.emb[-node.word]",
    "index_from_the_end": "return w.emb[8 - node.word]",
    "index_scaled_and_negative": "return w.emb[3 * node.word - 2]",
    "index_beyond": "return w.emb[node.word + 9]",
    # weights
    "unknown_weight": "return w.embedding[node.word]",
    "unknown_weight_group": "return w.cell.bais",
    "weight_group_as_tensor": "return w.b + w.cell",
    # control flow on computed values (P.1)
    "if_tensor": "if w.b[0] > 0:\n    return w.b\nreturn -w.b",
    "while_tensor": "h = w.b\nwhile cortex.sum(h) > 1:\n    h = h / 2\nreturn h",
    "int_tensor": "return w.b[int(w.b[0])]",
    "float_tensor": "return float(w.b[0]) * w.b",
    "range_tensor": "return cortex.sum([w.b for _ in range(w.b[0])])",
    "numpy_ufunc": "return np.tanh(w.b)",
    "numpy_two": "return np.maximum(w.b, 0)",
    "numpy_dot": "return np.dot(w.U, w.b)",
    "numpy_other": "return np.sinh(w.b)",
    "numpy_other_function": "return np.fft.fft(w.b)",
    "numpy_reduce": "return np.add.reduce(w.b)",
    "numpy_state": "return w.b if node.is_leaf else np.tanh(f(node.left, w))",
    "math_function": "return w.b * math.tanh(w.b[0])",
    "math_function_by_name": "return w.b * tanh(w.b[0])",
    "numpy_function": "return np.concatenate([w.b, w.b])",
    # recursion that leads nowhere (P.2)
    "recursion_itself": "return f(node, w)",
    "recursion_parent": "return w.b if node.is_leaf else f(node.parent, w)",
    "recursion_other": 'return f("node", w)',
    "recursion_none": "if node.left is None:\n    return w.b\nreturn f(None, w)",
    "recursion_list": "return w.b if node.is_leaf else cortex.sum(f([k], w) for k in node.children)",
    "recursion_without_node": "return w.b if node.is_leaf else f()",
    "recursion_too_many": "return w.b if node.is_leaf else f(node.left, w, 3)",
    # arguments that depend on siblings or parents (P.3)
    "argument_tensor": LEAF + "left = f(node.left, w)\nreturn f(node.right, left)",
    "argument_from_above": LEAF + "h = cortex.tanh(w.b)\nreturn cortex.sum(f(k, h) for k in node.children)",
    "argument_node": "return w.b if node.is_leaf else f(f(node.left, w), w)",
    "argument_weights": "return w.b if node.is_leaf else f(node.left, w.cell)",
    # children
    "sum_of_nodes": LEAF + "return cortex.sum(k for k in node.children)",
    "slot_and_list": LEAF + "return f(node.kids, w) + cortex.sum(f(k, w) for k in node.kids)",
    # nodes and their attributes
    "node_as_tensor": "return w.b + node",
    "node_iterated": "return cortex.sum(f(k, w) for k in node)",
    "node_indexed": 'return w.emb[node["word"]]',
    "node_method": "return w.b if node.is_root() else w.b * 2",
    "tag_object": "return w.b if node.op == object else w.b * 2",
    "tag_nan": "return w.b if node.cost in (1, math.nan) else w.b * 2",
    # states
    "return_nothing": "h = cortex.tanh(w.b)",
    "return_dict": 'return {"h": w.b}',
    "return_empty": "return ()",
    "state_empty": "return cortex.state()",
    "state_names": "return cortex.state(h=w.b) if node.is_leaf else cortex.state(c=w.b)",
    "state_shapes": "return cortex.state(h=w.b) if node.is_leaf else cortex.state(h=w.W)",
    "state_forms": "return w.b if node.is_leaf else (w.b, w.b)",
    "state_unknown": "return cortex.state(h=w.b) if node.is_leaf else f(node.left, w).c",
    "state_as_tensor": "return cortex.state(h=w.b, c=w.b) if node.is_leaf else cortex.tanh(f(node.left, w))",
    "state_ambiguous": "return cortex.tanh(cortex.sum(f(k, w) for k in node.children))",
    "state_fits_nothing": "h = cortex.sum(f(k, w) for k in node.children)\nreturn cortex.tanh(w.W @ h)",
    "state_fits_nothing_named": "h = f(node.left, w).h\nreturn cortex.state(h=w.W @ h)",
    "state_fits_nothing_later": "h = w.U @ f(node.left, w)\nreturn cortex.tanh(h) + w.W",
    "state_wrong_anyway": "h = cortex.sum(f(k, w) for k in node.children)\nx = w.W @ w.b\nreturn h + x",
    "state_grows": "return cortex.concat([f(node.left, w), f(node.right, w)])",
    "state_of_other_size": "return w.b * (cortex.zeros(5) @ f(node.left, w))",
    # mistakes in models without a base case: said as if there were one
    "no_base_return_nothing": "h = w.b + cortex.sum(f(k, w) for k in node.children)",
    "no_base_return_dict": 'h = w.b + cortex.sum(f(k, w)["h"] for k in node.children)\nreturn {"h": h, "c": w.U @ h}',
    "no_base_numpy": "return np.tanh(w.b + cortex.sum(f(k, w) for k in node.children))",
    "no_base_if_tensor": "h = w.b + cortex.sum(f(k, w) for k in node.children)\nreturn h if h[0] > 0 else -h",
    "no_base_weight_columns": "return cortex.tanh(w.emb[node.word] + w.W @ cortex.sum(f(k, w) for k in node.children))",
    "no_base_weight_rows": "return w.W[0] + w.U @ cortex.sum(f(k, w) for k in node.children)",
    "no_base_form": "h = w.b + cortex.sum(f(k, w) for k in node.children)\nreturn cortex.state(h=h, c=w.U @ h)",
    "no_base_unknown_state": "return cortex.state(h=w.b + cortex.sum(f(k, w).c for k in node.children))",
    "no_base_raises": "h = w.b + cortex.sum(f(k, w) for k in node.children)\nreturn h.tanh()",
    "none_as_tensor": "return w.b * None",
    "list_as_tensor": "return w.b * [1, 2, 3, 4]",
    "object_as_tensor": 'return w.b * "x"',
    "kept_tensor": "kept.append(w.b)\nreturn w.b if node.is_leaf else f(node.left, w) + kept[0]",
    "needs_structure": "return w.W @ node.x",
    "unknown_function": "h = cortex.tanh(w.b)\nreturn cortex.argmax(h)",
}


def define(name: str, body: str) -> Any:
    """The model `f` with this body, as if it stood in a file model.py."""
    source = "@cortex.model\ndef f(node, w):\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    file = f"model_{name}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, Any] = {
        "cortex": cortex,
        "np": np,
        "math": math,
        "tanh": math.tanh,
        "table": np.ones((9, 4)),
        "kept": [],
    }
    exec(compile(source, file, "exec"), names)
    return names["f"]


def text(error: BaseException) -> str:
    kind = cortex.ModelError if isinstance(error, Beyond) else type(error)
    return f"{kind.__name__}: {error}"


@pytest.mark.parametrize("name", BODIES)
def test_wrong_model(name: str, golden: Callable[[str, str], None]) -> None:
    with pytest.raises(cortex.ModelError) as caught:
        Trace(define(name, BODIES[name]), WEIGHTS).model()
    golden(f"errors/model/{name}", text(caught.value))


NODES: dict[str, tuple[str, Any]] = {
    "node_list_as_child": ("return f(node.kids, w) if node.op else w.b", {"op": "x", "kids": [1, 2]}),
    "node_text_as_number": ("return w.b * node.label", {"label": "text"}),
    "node_float_as_index": ("return w.emb[node.label] if node.op else w.b", {"op": "x", "label": 0.5}),
    "node_missing_attribute": ("return w.b if node.label == 3 else -w.b", {}),
    "node_quotient_as_index": ("return w.emb[node.word / 2]", {"word": 4}),
    "node_unknown_function": ("return cortex.argmax(w.b)", {}),
    "node_sum_of_nothing": ("return w.b + cortex.sum([])", {}),
    "node_softmax_as_tensor": (
        "return cortex.softmax(f(k, w) for k in node.children) + 1 if node.children else w.b",
        {"children": [SimpleNamespace(children=[])]},
    ),
    "node_fact_of_nothing": (
        "return w.b + cortex.sum(w.V[i] @ f(k, w) for i, k in enumerate(node.children) if k.is_leaf)",
        {"children": []},
    ),
    "node_object_as_tag": ('return w.b if node.label == "x" else -w.b', {"label": object}),
}


@pytest.mark.parametrize("name", NODES)
def test_wrong_node(name: str, golden: Callable[[str, str], None]) -> None:
    body, attributes = NODES[name]
    with pytest.raises(cortex.CortexError) as caught:
        Trace(define(name, body), WEIGHTS).see([SimpleNamespace(**attributes)])
    golden(f"errors/model/{name}", text(caught.value))


UNCOMPILED = {
    "uncompiled_without_weights": ("return w.b", lambda f: f(SimpleNamespace())),
    "uncompiled_without_node": ("return w.b", lambda f: f(w=WEIGHTS)),
    "uncompiled_other_arguments": ("return w.b", lambda f: f(SimpleNamespace(), WEIGHTS, 3)),
    "uncompiled_none_computed": ("return cortex.tanh(node.x)", lambda f: f(SimpleNamespace(x=None), WEIGHTS)),
    "uncompiled_sum_of_nothing": ("return w.b", lambda f: cortex.sum([])),
}


@pytest.mark.parametrize("name", UNCOMPILED)
def test_wrong_uncompiled_call(name: str, golden: Callable[[str, str], None]) -> None:
    body, call = UNCOMPILED[name]
    with pytest.raises(cortex.ModelError) as caught:
        call(define("f", body))
    golden(f"errors/model/{name}", f"ModelError: {caught.value.message}")


def test_wrong_signature(golden: Callable[[str, str], None]) -> None:
    source = dedent("""\
        @cortex.model
        def f(node, w, *children):
            return w.b
        """)
    linecache.cache["signature.py"] = (len(source), None, source.splitlines(keepends=True), "signature.py")
    with pytest.raises(cortex.ModelError) as caught:
        exec(compile(source, "signature.py", "exec"), {"cortex": cortex})
    golden("errors/model/signature", text(caught.value))


def test_not_a_model() -> None:
    with pytest.raises(cortex.ModelError, match="decorate the function"):
        Trace(lambda node: node)  # type: ignore[arg-type]
    with pytest.raises(cortex.ModelError, match="decorates a function"):
        cortex.model(3)  # type: ignore[arg-type]


def test_model_inside_another(golden: Callable[[str, str], None]) -> None:
    other = define("other", "return w.b")

    @cortex.model
    def outer(node: Any, w: Any) -> Any:
        return other(node.left, w)

    with pytest.raises(cortex.ModelError, match="'f' is called inside model 'outer'") as caught:
        Trace(outer, WEIGHTS).model()
    golden("errors/model/model_inside_another", caught.value.message)


def test_signals_pass_through_the_users_handlers() -> None:
    """`except Exception` in a model must not hide that a kind has to be traced later."""

    @cortex.model
    def careful(node: Any, w: Any) -> Any:
        try:
            return w.b if node.op == "leaf" else careful(node.left, w)
        except Exception:
            return w.W

    assert [s.type.shape for s in Trace(careful, WEIGHTS).model().states] == [(4,)]


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("torch_function", "return torch.tanh(w.b)"),
        ("torch_functional", "return torch.nn.functional.softmax(w.b, dim=0)"),
        ("torch_cat", "return torch.cat([w.b, w.b])"),
    ],
)
def test_torch_functions(name: str, body: str, golden: Callable[[str, str], None]) -> None:
    pytest.importorskip("torch")
    with pytest.raises(cortex.ModelError) as caught:
        Trace(define(name, "import torch\n" + body), WEIGHTS).model()
    golden(f"errors/model/{name}", text(caught.value))


ARRAY = np.arange(4.0)


@cortex.model
def with_arrays(node: Any, w: Any) -> Any:
    h = (ARRAY + w.b) * (ARRAY - w.b) + ARRAY / (w.b + 1) + np.eye(4) @ w.b
    h = cortex.where(ARRAY < w.b * 2, h, np.float64(2.0) * h)  # noqa: SIM300 - the array has to come first
    return h + cortex.where(ARRAY >= w.b, 1, 0) + ARRAY[1] * w.b  # noqa: SIM300


def test_operators_of_arrays_are_those_of_tensors() -> None:
    b = WEIGHTS["b"]
    h = (ARRAY + b) * (ARRAY - b) + ARRAY / (b + 1) + b
    expected = np.where(ARRAY < b * 2, h, 2 * h) + np.where(ARRAY >= b, 1, 0) + b  # noqa: SIM300
    np.testing.assert_allclose(cortex.compile(with_arrays, WEIGHTS)(SimpleNamespace()).out, expected, rtol=1e-6)


def test_operators_of_torch_tensors_are_those_of_tensors() -> None:
    torch = pytest.importorskip("torch")
    matrix, vector = torch.arange(16.0).reshape(4, 4), torch.arange(4.0)

    @cortex.model
    def with_torch(node: Any, w: Any) -> Any:
        return matrix @ w.b + (vector - w.b) * vector + vector / (w.b + 1)

    b = WEIGHTS["b"]
    expected = matrix.numpy() @ b + (vector.numpy() - b) * vector.numpy() + vector.numpy() / (b + 1)
    np.testing.assert_allclose(cortex.compile(with_torch, WEIGHTS)(SimpleNamespace()).out, expected, rtol=1e-6)


def test_equivalents_exist() -> None:
    assert {own or name for name, own in EQUIVALENT.items()} <= set(cortex.__all__)

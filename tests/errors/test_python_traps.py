"""Python that means something else when it is traced: each use of a node either works as a fact or is refused.

The first table has the value that plain Python gives; the second has golden messages. Nothing may pass silently with
another value.
"""

from __future__ import annotations

import enum
import linecache
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex

NS = SimpleNamespace


class Op(str, enum.Enum):  # noqa: UP042 - the older way, which formats as its member
    JOIN = "Join"


def fields(**changed: Any) -> dict[str, Any]:
    return {"op": "Join", "k": 3, "flag": True, "size": 5.0, "none": None, "left": None, "right": None, **changed}


def define(name: str, expression: str) -> Any:
    """A model that returns w.b times the value of an expression of the node, as if it stood in a file."""
    body = f"if node.is_leaf:\n    return w.b\n{expression}" if "children" in expression else expression
    if "return" not in expression:
        body = body.replace(expression, f"return w.b * ({expression})")
    source = "@cortex.model\ndef f(node, w):\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    file = f"trap_{name}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, Any] = {"cortex": cortex, "np": np, "Op": Op}
    exec(compile(source, file, "exec"), names)
    return names["f"]


def structure(**changed: Any) -> Any:
    """A node with three leaves below it, all with the same fields."""
    return NS(children=[NS(children=[], **fields()) for _ in range(3)], **fields(**changed))


WEIGHTS = {"b": np.ones(2)}

# What each expression is for the node of `structure()`, in plain Python.
FACTS = {
    "text": ('{"Join": 2, "Scan": 3}[str(node.op)]', 2),
    "format": ('2 if f"{node.op}!" == "Join!" else 3', 2),
    "format_width": ('2 if f"{node.k:03d}" == "003" else 3', 2),
    "repr": ("2 if repr(node.op) == \"'Join'\" else 3", 2),
    "format_repr": ("2 if f'{node.op!r}' == \"'Join'\" else 3", 2),
    "key": ('{"Join": 2, "Scan": 3}[node.op]', 2),
    "in_set": ('2 if node.op in {"Join", "Scan"} else 3', 2),
    "in_tuple": ('2 if node.op in ("Scan", "Sort") else 3', 3),
    "in_text": ('2 if "oi" in node.op else 3', 2),
    "not_equal": ('2 if node.op != "Join" else 3', 3),
    "enum": ("2 if node.op == Op.JOIN else 3", 2),
    "match_value": ('match node.op:\n    case "Join":\n        return w.b * 2\n    case _:\n        return w.b * 3', 2),
    "match_class": ("match node.k:\n    case int():\n        return w.b * 2\n    case _:\n        return w.b * 3", 2),
    "match_several": ("match node.k:\n    case 1 | 3:\n        return w.b * 2\n    case _:\n        return w.b * 3", 2),
    "match_capture": ("match node.k:\n    case x if x > 9:\n        return -1\n    case x:\n        return w.b * x", 3),
    "method": ('2 if node.op.startswith("J") else 3', 2),
    "characters": ("len(node.op)", 4),
    "character": ('2 if node.op[0] == "J" else 3', 2),
    "slice_of_text": ('2 if node.op[1:] == "oin" else 3', 2),
    "greater": ("2 if node.size > 3 else 3", 2),
    "between": ("2 if 1 < node.k <= 3 else 3", 2),
    "bool": ("2 if bool(node.flag) else 3", 2),
    "truth_of_number": ("2 if node.k else 3", 2),
    "not": ("2 if not node.flag else 3", 3),
    "int": ("int(node.k)", 3),
    "float": ("float(node.k)", 3),
    "round": ("round(node.size)", 5),
    "remainder": ("2 if node.k % 2 == 1 else 3", 2),
    "quotient": ("node.k // 2", 1),
    "range": ("s = w.b\nfor _ in range(node.k):\n    s = s + 1\nreturn s", 4),
    "index_of_list": ("[5, 6, 7, 8][node.k]", 8),
    "times": ("node.k * 2", 6),
    "or_value": ('2 if (node.op or "x") == "Join" else 3', 2),
    "or_of_none": ('2 if (node.none or "x") == "x" else 3', 2),
    "none": ("2 if node.left is None else 3", 2),
    "none_equal": ("2 if node.left == None else 3", 2),
    "getattr": ('2 if getattr(node, "left", None) is None else 3', 2),
    "getattr_absent": ('2 if getattr(node, "nowhere", None) is None else 3', 2),
    "isinstance_of_field": ("2 if isinstance(node.op, str) else 3", 2),
    "isinstance_of_number": ("2 if isinstance(node.k, (str, bool)) else 3", 3),
    "bool_is_no_number": ('2 if str(node.flag) == "True" else 3', 2),
    "children_counted": ("len(node.children)", 3),
    "children_taken_one_by_one": ("s = 0\nfor k in node.children:\n    s = s + 1\nreturn w.b * s", 3),
    "children_enumerated": ("return cortex.sum([f(k, w) * i for i, k in enumerate(node.children)])", 3),
    "children_constant": ("return cortex.sum(w.b for k in node.children)", 3),
    "children_list": ("return cortex.sum([f(k, w) for k in node.children])", 3),
    "children_list_twice": ("hs = [f(k, w) for k in node.children]\nreturn cortex.sum(hs) + cortex.max(hs)", 4),
    "children_truth": ("2 if node.children else 3", 2),
    "children_reversed": ("return cortex.sum([f(k, w) for k in reversed(node.children)])", 3),
    "children_sorted": ("return cortex.sum([f(k, w) for k in sorted(node.children, key=lambda k: int(k.k))])", 3),
    "children_any": ("2 if any([k.k == 3 for k in list(node.children)]) else 3", 2),
    "list_constant": ("return cortex.sum([w.b for k in node.children])", 3),
    "list_numbers": ("sum([1 for k in node.children])", 3),
    "generator_numbers": ("sum(1 for k in node.children)", 3),
    "list_of_children": ("return cortex.sum([f(k, w) for k in [k for k in node.children]])", 3),
    "list_counted": ("len([f(k, w) for k in node.children])", 3),
    "list_counted_later": ("hs = [f(k, w) for k in node.children]\nreturn cortex.sum(hs) / len(hs)", 1),
    "list_tested": ("hs = [f(k, w) for k in node.children]\nreturn cortex.sum(hs) if hs else w.b", 3),
    "list_negated": ("hs = [f(k, w) for k in node.children]\nif not hs:\n    return w.b\nreturn cortex.sum(hs)", 3),
    "list_numbered": ("return cortex.sum([h * i for i, h in enumerate([f(k, w) for k in node.children])])", 3),
    "equal_nodes": ("2 if node == node.left else 3", 3),
    "equal_children": ("2 if node.children[0] == node.children[1] else 3", 2),
    "isinstance": ("2 if isinstance(node, str) else 3", 3),
    "isinstance_of_child": ("2 if isinstance(node.children[0], type(node)) else 3", 2),
    "isinstance_abstract": (
        "import collections.abc\nreturn w.b * 2 if isinstance(node, collections.abc.Sequence) else w.b * 3", 3
    ),
    "match_node": ("match node:\n    case Op():\n        return w.b * 2\n    case _:\n        return w.b * 3", 3),
    "type": ("2 if type(node) is Op else 3", 3),
    "type_name": ('2 if type(node).__name__ == "SimpleNamespace" else 3', 2),
    "type_of_child": ("s = w.b\nfor k in node.children:\n    s = s + (1 if type(k) is Op else 2)\nreturn s", 7),
    "class": ('2 if node.__class__.__name__ == "Op" else 3', 3),
    "dispatch": ("import functools\ng = functools.singledispatch(lambda n: 2)\nreturn w.b * g(node)", 2),
    "text_of_node": ('2 if str(node.children[0]).startswith("namespace(children=[]") else 3', 2),
    "repr_of_node": ('2 if "op=" in repr(node) else 3', 2),
    "format_of_node": ('2 if f"{node}" == "x" else 3', 3),
    "dir": ('2 if "op" in dir(node) else 3', 2),
    "set": ("node.seen = 2\nreturn w.b * node.seen", 2),
    "children_searched": ("2 if node.children[1] in node.children else 3", 2),
    "children_of_length": ("2 if len(node.children) == 3 and node else 3", 2),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTS)
def test_works_as_in_python(name: str) -> None:
    expression, value = FACTS[name]
    fast = cortex.compile(define(name, expression), WEIGHTS)
    np.testing.assert_array_equal(fast(structure()).out, np.full(2, value, np.float32))
    np.testing.assert_array_equal(fast([structure()] * 2).out, np.full((2, 2), value, np.float32))


REFUSED = {
    "hash": "2 if hash(node) else 3",
    "member": "2 if node in {1, 2} else 3",
    "equal": "2 if node == 3 else 3",
    "unequal": "2 if node != 3 else 3",
    "hasattr": '2 if hasattr(node, "left") else 3',
    "getattr_default": '2 if getattr(node, "left", 0) == 0 else 3',
    "try": "try:\n    x = node.left\nexcept AttributeError:\n    x = 0\nreturn w.b if x is None else -w.b",
    "node_numpy": "np.sqrt(node.size)",
    "children_searched_for_a_number": "2 if 3 in node.children else 3",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, golden: Callable[[str, str], None]) -> None:
    with pytest.raises(cortex.ModelError) as caught:
        cortex.compile(define(name, REFUSED[name]), WEIGHTS)(structure())
    golden(f"errors/traps/{name}", f"{type(caught.value).__name__}: {caught.value}")


# What only a real node shows to be wrong.
ON_A_NODE = {
    "node_unknown_key": ('{"Join": 2}[node.op]', {"op": "Scan"}),
    "node_division": ("1 // node.k", {"k": 0}),
}


@pytest.mark.parametrize("name", ON_A_NODE)
def test_refused_for_a_node(name: str, golden: Callable[[str, str], None]) -> None:
    expression, changed = ON_A_NODE[name]
    fast = cortex.compile(define(name, expression), WEIGHTS)
    with pytest.raises(cortex.CortexError) as caught:
        fast(structure(**changed))
    golden(f"errors/traps/{name}", f"{type(caught.value).__name__}: {caught.value}")


def test_isinstance_of_libraries_goes_on_working() -> None:
    """Only the user's own question about the class is refused."""
    import copy
    import pprint

    seen: list[str] = []

    @cortex.model
    def shown(node: Any, w: Any) -> Any:
        seen.append(pprint.pformat(node))
        copy.copy(w)
        return w.b

    cortex.compile(shown, WEIGHTS)(NS())
    assert seen
    assert set(seen) == {"<cortex place>"}


def test_equal_numbers_of_different_types() -> None:
    """1, 1.0 and True are equal in Python, and print differently."""
    f = define("types", '2 if str(node.k) == "1" else 3')
    fast = cortex.compile(f, WEIGHTS)
    for k, value in ((1, 2), (True, 3), (1.0, 3), (np.int64(1), 2), (np.bool_(True), 3), (1, 2)):
        assert fast(NS(k=k)).out[0] == value, repr(k)


def test_leaves_of_a_model_without_children() -> None:
    """Where nothing leads to children every node is a leaf, to the tracer and to the linearizer."""

    @cortex.model
    def alone(node: Any, w: Any) -> Any:
        return node.x + w.b if node.is_leaf else node.x - w.b

    np.testing.assert_array_equal(cortex.compile(alone, WEIGHTS)(NS(x=np.ones(2))).out, [2, 2])


def test_inner_nodes_that_need_a_structure() -> None:
    """The leaf can be compiled beforehand, the inner kind cannot; no tree may be taken for a leaf meanwhile."""

    @cortex.model
    def scaled(node: Any, w: Any) -> Any:
        if node.is_leaf:
            return w.b
        return node.x * cortex.sum(scaled(k, w) for k in node.children)

    leaf = NS(children=[])
    inner = NS(children=[leaf, leaf, leaf], x=np.full(2, 2.0))
    for order in ([inner], [leaf, inner], [leaf, leaf, inner, leaf], [[leaf, inner]]):
        fast = cortex.compile(scaled, WEIGHTS)
        for given in order:
            expected = [[1, 1], [6, 6]] if isinstance(given, list) else [1, 1] if given is leaf else [6, 6]
            np.testing.assert_array_equal(fast(given).out, expected)

"""Every test of a guard, on the node itself and along a path; and kinds that nobody has seen yet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cortex
from cortex import _native
from cortex.runtime.forest import Forest


def kinds_of(found: dict[str, Any]) -> list[int]:
    """The kind of every node in the user's order."""
    arrays = found["arrays"]
    kind = np.empty(found["sizes"]["num_nodes"], int)
    for g, start in enumerate(arrays["group_start"]):
        kind[start : start + arrays["group_len"][g]] = arrays["group_kind"][g]
    return list(kind[arrays["order"]])


def asking(linearizer: Any, test: tuple[Any, ...], answers: dict[Any, int]) -> _native.Linearizer:
    """Kind 0, but for nodes with `asked`: what `test` says."""
    count = 1 + max(answers.values())
    tree: Any = ("test", test, {answer: ("kind", k) for answer, k in answers.items()})
    tree = ("test", ("is_none", "asked", ()), {True: ("kind", 0), False: tree})
    none: list[list[str]] = [[] for _ in range(count)]
    return linearizer(["left"], ["children"], num_kinds=count, tree=tree, uses=none, needs=none)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("test", "attributes", "answer"),
    [
        (("is_none", "left", ()), {"left": None}, True),
        (("is_none", "left", ()), {}, True),
        (("is_none", "children", ()), {}, False),
        (("is_none", "op", ()), {}, True),
        (("is_none", "op", ()), {"op": 0}, False),
        (("length", "children", ()), {}, 2),
        (("has_length", "children", 2, ()), {}, True),
        (("has_length", "children", 3, ()), {}, False),
        (("has_length", "children", 1, (("item", "children", 1),)), {}, True),
        (("counts", "op", "children", ()), {"op": 2}, True),
        (("counts", "op", "children", ()), {"op": np.int64(2)}, True),
        (("counts", "op", "children", ()), {"op": 1}, False),
        (("counts", "op", "children", ()), {"op": 2.0}, False),
        (("counts", "op", "children", ()), {"op": 1 << 70}, False),
        (("counts", "op", "children", ()), {}, False),
        (("equals", "op", "Join", ()), {"op": "".join(["Jo", "in"])}, True),
        (("equals", "op", "Join", ()), {"op": "Scan"}, False),
        (("equals", "op", "Join", ()), {}, False),
        (("equals", "op", None, ()), {}, True),
        (("equals", "left", None, ()), {}, True),
        (("equals", "op", 3, ()), {"op": np.int64(3)}, True),
        (("value", "op", ()), {"op": "Scan"}, "Scan"),
        (("value", "op", ()), {"op": np.float32(0.5)}, 0.5),
        (("is_leaf", (("item", "children", 1),)), {}, False),
        (("is_leaf", (("item", "children", 1), ("item", "children", 0))), {}, True),
        (("is_none", "op", (("item", "children", 0),)), {}, False),
        (("equals", "op", "a", (("item", "children", 0),)), {}, True),
    ],
)
def test_answers(node: Any, linearizer: Any, test: Any, attributes: Any, answer: Any) -> None:
    inner = node(children=[node(op="x")], op="b")
    top = node(asked=True, children=[node(op="a"), inner], **attributes)
    assert kinds_of(asking(linearizer, test, {answer: 1}).linearize([top])) == [1, 0, 0, 0]
    with pytest.raises(_native.UnknownKind):
        asking(linearizer, test, {(not answer if isinstance(answer, bool) else 99): 1}).linearize([top])


def test_a_path_that_leads_nowhere_has_no_answer(node: Any, linearizer: Any) -> None:
    for path in ((("slot", "left"),), (("item", "children", 1),)):
        with pytest.raises(_native.UnknownKind):
            asking(linearizer, ("is_leaf", path), {True: 1, False: 1}).linearize([node(asked=True, children=[node()])])


def test_unknown_answers_name_the_node(node: Any, linearizer: Any) -> None:
    odd = node(asked=True, op="Odd")
    top = node(asked=True, children=[node(), odd], op="Join")
    with pytest.raises(_native.UnknownKind, match=r"root\.children\[1\]") as unknown:
        asking(linearizer, ("value", "op", ()), {"Join": 1}).linearize([top])
    assert unknown.value.node is odd
    assert unknown.value.where == "root.children[1]"


@pytest.mark.parametrize("value", [["a", "list"], float("nan"), None, object()])
def test_values_no_guard_can_hold_are_unknown(node: Any, linearizer: Any, value: Any) -> None:
    with pytest.raises(_native.UnknownKind):
        asking(linearizer, ("value", "op", ()), {"Join": 1}).linearize([node(asked=True, op=value)])


def test_a_model_without_kinds_knows_no_node(node: Any, linearizer: Any) -> None:
    empty = linearizer(num_kinds=0, tree=None, uses=[], needs=[])
    assert empty.linearize([])["sizes"]["num_nodes"] == 0
    with pytest.raises(_native.UnknownKind):
        empty.linearize([node()])


def test_unknown_nodes_of_a_forest_can_be_looked_at(linearizer: Any) -> None:
    forest = Forest.from_children([0, 2, 2, 2], [1, 2], fields={"op": ["Join", "a", "b"], "word": [5, 6, 7]})
    wanted = linearizer([], ["children"], tree=("test", ("equals", "op", "Join", ()), {False: ("kind", 0)}))
    with pytest.raises(_native.UnknownKind) as unknown:
        wanted.linearize(forest)
    top = unknown.value.node
    assert (unknown.value.where, top.op, top.word) == ("node 0", "Join", 5)
    assert [k.op for k in top.children] == ["a", "b"]
    assert not hasattr(top, "left")


def test_an_attribute_is_read_once(linearizer: Any) -> None:
    reads = []

    class Counting:
        def __init__(self, **attributes: Any) -> None:
            self.attributes = attributes

        def __getattr__(self, name: str) -> Any:
            reads.append((id(self), name))
            return self.__dict__["attributes"].get(name)

    kids = [Counting(word=3), Counting(word=4)]
    tree = ("test", ("is_none", "word", ()), {True: ("kind", 1), False: ("kind", 0)})
    found = linearizer(["left"], ["children"], tree=tree).linearize([Counting(children=kids)])
    assert found["arrays"]["field_word"].tolist() == [0, 3, 4]
    assert len(reads) == len(set(reads)) == 9


def test_examples_whose_kinds_were_forgotten() -> None:
    """Tracing anew for one request forgets kinds that only earlier ones have; predictions are made without these."""

    class Numbered:
        def __init__(self, k: int, *children: Numbered) -> None:
            self.k, self.children = k, list(children)

    @cortex.model
    def powers(node: Any, w: Any) -> Any:
        return w.b ** range(node.k)[-1] + cortex.sum(powers(c, w) for c in node.children)

    weights = {"b": np.full(3, 0.5, np.float32)}
    fast = cortex.compile(powers, weights, examples=[Numbered(2, Numbered(3))])
    fast._trace._forget()  # type: ignore[attr-defined]
    for structure in (Numbered(4), Numbered(2, Numbered(3)), Numbered(5, Numbered(2))):
        np.testing.assert_allclose(np.asarray(fast(structure)), powers(structure, weights), rtol=1e-6)

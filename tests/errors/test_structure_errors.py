"""A table of structures that break a rule: one golden message each, and the executable works on after every one.

What looks wrong and is right stands in the second table, with the value it has.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from small_models import SIZE, SMALL, Node, Pair, Small

import cortex
from cortex import Forest
from cortex.structures.conllu import read_conllu
from cortex.structures.ptb import read_ptb

NS = SimpleNamespace
NAN = float("nan")
LEAF = Node(word=1)


@dataclass(frozen=True)
class Case:
    """`model` is called with what `given` makes."""

    name: str
    model: str
    given: Callable[[], Any]


def cycle_of(length: int) -> Any:
    """A list of nodes, each a child of the one before, and the first of the last."""
    nodes = [Node() for _ in range(length)]
    for i, node in enumerate(nodes):
        node.children += [Node(word=2), nodes[(i + 1) % length]]
    return nodes[0]


def two_cycle() -> Any:
    below = Pair(Pair(word=1))
    top = Pair(below, Pair(word=2))
    below.right = top
    return top


def looped_chain() -> Any:
    first = last = NS(prev=None, word=1)
    for _ in range(100_000):
        last = NS(prev=last, word=1)
    first.prev = last
    return last


def with_word(word: Any) -> Callable[[], Any]:
    return lambda: Node(Node(word=1), Node(word=word))


def with_children(children: Any) -> Callable[[], Any]:
    return lambda: Node(Node(word=1), NS(children=children, word=2))


def with_x(x: Any, scale: Any = 1.0) -> Callable[[], Any]:
    return lambda: Node(Node(x=np.ones(SIZE), scale=1.0), Node(x=x, scale=scale), x=np.ones(SIZE), scale=1.0)


class Text(str):
    """A str that is equal to nothing."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 7


def with_op(op: Any) -> Callable[[], Any]:
    return lambda: NS(op="not", arg=NS(op=op, word=1))


def with_size(size: Any) -> Callable[[], Any]:
    return lambda: NS(size=1, next=NS(size=size, next=None))


def forest_with(x: Any) -> Forest:
    return Forest.from_parents([-1, 0], fields={"x": np.ma.asarray(x), "scale": [1.0, 1.0]})


class Slotted:
    __slots__ = ("children", "word")


class Fickle:
    """A tag that is new each time it is read."""

    def __init__(self) -> None:
        self.reads = 100
        self.next = None

    @property
    def size(self) -> int:
        self.reads += 1
        return self.reads


CASES = [
    # cycles
    Case("cycle_self", "tree", lambda: cycle_of(1)),
    Case("cycle_two", "pair", two_cycle),
    Case("cycle_long", "tree", lambda: cycle_of(50)),
    Case("cycle_chain", "chain", looped_chain),
    Case("cycle_in_batch", "tree", lambda: [LEAF, cycle_of(2)]),
    Case("cycle_of_batch", "graph", lambda: _graph_with_a_cycle()),
    # word ids
    Case("word_missing", "tree", lambda: Node(Node(word=1), Node())),
    Case("word_none", "tree", with_word(None)),
    Case("word_negative", "tree", with_word(-1)),
    Case("word_too_large", "tree", with_word(10)),
    Case("word_2_to_the_40", "tree", with_word(2**40)),
    Case("word_2_to_the_100", "tree", with_word(2**100)),
    Case("word_float", "tree", with_word(3.0)),
    Case("word_numpy_float", "tree", with_word(np.float32(3))),
    Case("word_nan", "tree", with_word(NAN)),
    Case("word_text", "tree", with_word("cat")),
    Case("word_bytes", "tree", with_word(b"cat")),
    Case("word_list", "tree", with_word([1])),
    Case("word_array", "tree", with_word(np.array([1, 2]))),
    Case("word_masked", "tree", with_word(np.ma.array(3, mask=True))),
    Case("word_unset_slot", "tree", Slotted),
    Case("word_of_inner_node", "graph", lambda: NS(args=[NS(args=[], word=1)])),
    # children
    Case("children_int", "tree", with_children(5)),
    Case("children_text", "tree", with_children("ab")),
    Case("children_dict", "tree", with_children({"left": LEAF})),
    Case("children_set", "tree", with_children({1, 2})),
    Case("children_stored_generator", "tree", lambda: _with_stored_generator()),
    Case("children_nested_list", "tree", with_children([[LEAF]])),
    Case("children_numbers", "tree", with_children([1, 2])),
    Case("children_number_array", "tree", with_children(np.zeros(3))),
    Case("children_function", "tree", with_children(lambda: [LEAF])),
    Case("slot_right_missing", "pair", lambda: Pair(Pair(word=1), None)),
    Case("slot_left_missing", "pair", lambda: Pair(None, Pair(word=1))),
    Case("slot_list", "pair", lambda: Pair([Pair(word=1)], Pair(word=1))),
    Case("slot_text", "pair", lambda: Pair("left", Pair(word=1))),
    # tags
    Case("tag_unknown", "typed", with_op("xor")),
    Case("tag_list", "typed", with_op(["word"])),
    Case("tag_array", "typed", with_op(np.array(["word", "not"]))),
    Case("tag_object", "typed", with_op(NS)),
    Case("tag_complex", "typed", with_op(1j)),
    Case("tag_str_subclass", "typed", with_op(Text("word"))),
    Case("size_missing", "sized", lambda: NS(next=None)),
    Case("size_nan", "sized", with_size(NAN)),
    Case("size_infinite", "sized", with_size(float("inf"))),
    Case("size_text", "sized", with_size("three")),
    Case("size_unhashable", "sized", with_size([3])),
    Case("size_changes", "sized", Fickle),
    # float fields
    Case("x_missing", "vector", lambda: Node(scale=1.0)),
    Case("x_none", "vector", with_x(None)),
    Case("x_short", "vector", with_x([1.0, 2.0, 3.0])),
    Case("x_matrix", "vector", with_x(np.ones((SIZE, SIZE)))),
    Case("x_scalar", "vector", with_x(1.0)),
    Case("x_empty", "vector", with_x([])),
    Case("x_ragged", "vector", with_x([[1, 2], [3]])),
    Case("x_text", "vector", with_x("1234")),
    Case("x_complex", "vector", with_x(np.ones(SIZE, complex))),
    Case("x_objects", "vector", with_x(np.array([1, 2, 3, None], dtype=object))),
    Case("x_dates", "vector", with_x(np.zeros(SIZE, "datetime64[s]"))),
    Case("x_too_large_for_float32", "vector", with_x([1e300, 0.0, 0.0, 0.0])),
    Case("x_masked", "vector", with_x(np.ma.array(np.ones(SIZE), mask=[0, 1, 0, 0]))),
    Case("scale_too_large_for_float32", "vector", with_x(np.ones(SIZE), scale=1e39)),
    Case("scale_too_large_integer", "vector", with_x(np.ones(SIZE), scale=10**39)),
    Case("scale_2_to_the_2000", "vector", with_x(np.ones(SIZE), scale=-(2**2000))),
    Case("scale_masked", "vector", with_x(np.ones(SIZE), scale=np.ma.masked)),
    Case("scale_vector", "vector", with_x(np.ones(SIZE), scale=[1.0])),
    Case("scale_none", "vector", with_x(np.ones(SIZE), scale=None)),
    # what is no request
    Case("request_none", "tree", lambda: None),
    Case("request_none_in_batch", "tree", lambda: [LEAF, None]),
    Case("request_int", "tree", lambda: 5),
    Case("request_text", "tree", lambda: "tree"),
    Case("request_dict", "tree", lambda: {"children": [], "word": 1}),
    Case("request_class", "tree", lambda: Slotted),
    Case("request_generator", "tree", lambda: (t for t in [LEAF])),
    Case("request_map", "tree", lambda: map(Node, [])),
    Case("request_batch_of_batches", "tree", lambda: [[LEAF, LEAF]]),
    Case("request_array", "tree", lambda: np.zeros(3)),
    # arrays
    Case("forest_x_too_large", "vector", lambda: forest_with(x=[[1.0] * SIZE, [0.0, 1e39, 0.0, 0.0]])),
    Case("forest_x_masked", "vector", lambda: forest_with(x=np.ma.array(np.ones((2, SIZE)), mask=True))),
    Case("forest_cycle", "tree", lambda: Forest.from_parents([1, 2, 0], fields={"word": [1, 1, 1]})),
    Case("forest_self_loop", "tree", lambda: Forest.from_parents([0], fields={"word": [1]})),
    Case("forest_parent_too_large", "tree", lambda: Forest.from_parents([-1, 7])),
    Case("forest_parent_too_small", "tree", lambda: Forest.from_parents([-1, -2])),
    Case("forest_parent_float", "tree", lambda: Forest.from_parents([-1.0, 0.0])),
    Case("forest_parent_nan", "tree", lambda: Forest.from_parents(np.array([NAN]))),
    Case("forest_parent_matrix", "tree", lambda: Forest.from_parents([[-1, 0]])),
    Case("forest_parent_huge", "tree", lambda: Forest.from_parents(np.array([2**63], np.uint64))),
    Case("forest_parent_ragged", "tree", lambda: Forest.from_parents([[-1], [0, 0]])),
    Case("forest_pointer_falls", "tree", lambda: Forest.from_children([0, 2, 1], [1])),
    Case("forest_pointer_empty", "tree", lambda: Forest.from_children([], [])),
    Case("forest_index_negative", "tree", lambda: Forest.from_children([0, 1, 1], [-1])),
    Case("forest_roots_range", "tree", lambda: Forest.from_children([0, 0], [], roots=[1])),
    Case("forest_slots_lengths", "pair", lambda: Forest.from_slots({"left": [-1], "right": [-1, -1]})),
    Case("forest_slots_none", "pair", lambda: Forest.from_slots({})),
    Case("forest_without_relation", "pair", lambda: Forest.from_parents([-1, 0], fields={"word": [1, 1]})),
    Case("forest_field_length", "tree", lambda: Forest.from_parents([-1, 0], fields={"word": [1]})),
    Case("forest_field_text", "tree", lambda: Forest.from_parents([-1, 0], fields={"word": "ab"})),
    Case("forest_field_missing", "tree", lambda: Forest.from_parents([-1, 0])),
    Case("forest_field_range", "tree", lambda: Forest.from_parents([-1, 0, 0], fields={"word": [-1, 3, 10]})),
    Case("forest_field_float", "tree", lambda: Forest.from_parents([-1, 0], fields={"word": [0.0, 1.0]})),
    Case("forest_field_objects", "tree", lambda: Forest.from_parents([-1, 0], fields={"word": [None, "x"]})),
    Case("forest_field_shape", "vector", lambda: _forest(x=np.ones((2, 3)), scale=np.ones(2))),
    Case("forest_tag", "typed", lambda: _typed_forest(["not", ["word"]])),
    # nested sequences and texts
    Case("nested_word_range", "tree", lambda: Forest.from_nested(((1, 2), 99))),
    Case("nested_text", "tree", lambda: Forest.from_nested((("cat", 2), 3))),
    Case("nested_in_itself", "tree", lambda: Forest.from_nested(_list_in_itself())),
    Case("ptb_open", "tree", lambda: read_ptb("(3 (2 good) (2 film)")),
    Case("ptb_close", "tree", lambda: read_ptb("(2 good))")),
    Case("ptb_empty_bracket", "tree", lambda: read_ptb("(3 (2 good) ())")),
    Case("ptb_word_unknown", "tree", lambda: read_ptb("(2 good)", words={"bad": 1})),
    Case("ptb_word_range", "tree", lambda: read_ptb("(2 good)", words=lambda word: 10**6)),
    Case("conllu_columns", "tree", lambda: read_conllu("1\tgood\n")),
    Case("conllu_cycle", "tree", lambda: read_conllu(_conllu((1, 2), (2, 1), (3, 0)))),
    Case("conllu_head_unknown", "tree", lambda: read_conllu(_conllu((1, 0), (2, 9)))),
    Case("conllu_two_roots", "tree", lambda: read_conllu(_conllu((1, 0), (2, 0)))),
]  # fmt: skip


def _graph_with_a_cycle() -> list[Any]:
    """Two structures of one batch, each below the other."""
    a, b = NS(args=[], word=1), NS(args=[], word=2)
    a.args.append(b)
    b.args.append(a)
    return [a, b]


def _with_stored_generator() -> Any:
    return NS(children=(Node(word=i) for i in (1, 2)), word=1)


def _list_in_itself() -> list[Any]:
    inner: list[Any] = [1]
    inner.append([2, inner])
    return inner


def _forest(**fields: Any) -> Forest:
    return Forest.from_parents([-1, 0], fields=fields)


def _typed_forest(ops: list[Any]) -> Forest:
    none = [-1] * len(ops)
    return Forest.from_slots(
        {"arg": [*range(1, len(ops)), -1], "left": none, "right": none}, fields={"op": ops, "word": [1] * len(ops)}
    )


def _conllu(*heads: tuple[int, int]) -> str:
    return "".join(f"{i}\tw{i}\t_\tX\t_\t_\t{head}\tdep\t_\t_\n" for i, head in heads)


def check_good(small: Small) -> None:
    """The executable still computes what it should."""
    good = small.good()
    fast = small.compiled()
    np.testing.assert_allclose(fast(good).out, small.value(good), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(fast([good, good]).out[1], fast(good).out)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_wrong_structure(case: Case, golden: Callable[[str, str], None]) -> None:
    small = SMALL[case.model]
    fast = small.compiled()
    check_good(small)
    before = fast.compilations
    with pytest.raises(cortex.CortexError) as caught:
        fast(case.given())
    error = caught.value
    assert isinstance(error, cortex.StructureError | cortex.ModelError)
    check_good(small)
    if case.name != "size_changes":
        assert fast.compilations == before, "what is refused compiles nothing"
    golden(f"errors/structure/{case.name}", f"{type(error).__name__}: {error}")


def test_the_table_is_large_enough() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 45


class Fresh:
    """Children that are new objects each time they are read."""

    def __init__(self, depth: int, word: int = 1) -> None:
        self.depth = depth
        self.word = word

    @property
    def children(self) -> Any:
        return (Fresh(self.depth - 1, word) for word in (1, 2)) if self.depth else None


def _shared() -> Any:
    below = Node(word=3)
    both = Node(below, below)
    return Node(both, below, both)


def _diamonds() -> Any:
    """As a tree it would have 2**60 leaves."""
    node = NS(args=[], word=1)
    for i in range(60):
        node = NS(args=[node, node], word=i % 10)
    return node


RIGHT: list[tuple[str, str, Callable[[], Any], Callable[[], Any] | None]] = [
    ("shared", "tree", _shared, None),
    ("fresh_children", "tree", lambda: Fresh(5), lambda: _fresh_tree(5)),
    ("children_tuple", "tree", lambda: NS(children=(LEAF, LEAF)), None),
    ("children_object_array", "tree", lambda: NS(children=np.array([LEAF, Node(word=2)], dtype=object)),
     lambda: Node(LEAF, Node(word=2))),
    ("children_none", "tree", lambda: NS(children=None, word=4), None),
    ("children_absent", "tree", lambda: NS(word=4), lambda: Node(word=4)),
    ("word_bool", "tree", lambda: Node(word=True), None),
    ("word_numpy_bool", "tree", lambda: Node(Node(word=np.True_), Node(word=np.False_)), None),
    ("word_numpy", "tree", lambda: Node(Node(word=np.int8(3)), Node(word=np.array(5))), None),
    ("word_of_inner_node_is_not_read", "tree", lambda: Node(LEAF, word="not a number"), None),
    ("right_of_a_leaf_is_not_needed", "pair", lambda: NS(left=None, word=1), None),
    ("tag_numpy", "typed", lambda: NS(op=np.str_("word"), word=2), lambda: NS(op="word", word=2)),
    ("size_numpy", "sized", with_size(np.int64(2)), None),
    ("size_bool", "sized", with_size(True), None),
    ("size_float", "sized", with_size(2.5), None),
    ("x_nan", "vector", with_x(np.full(SIZE, NAN)), None),
    ("x_infinite", "vector", with_x([1.0, float("inf"), 0.0, 0.0]), None),
    ("x_with_nothing_masked", "vector", with_x(np.ma.array(np.ones(SIZE), mask=False)), None),
    ("x_integers", "vector", with_x(np.arange(SIZE)), None),
    ("x_strided", "vector", with_x(np.arange(2.0 * SIZE)[::2]), None),
    ("x_float16", "vector", with_x(np.ones(SIZE, np.float16)), None),
    ("scale_nan", "vector", with_x(np.ones(SIZE), NAN), None),
    ("scale_largest", "vector", with_x(np.ones(SIZE), float(np.finfo(np.float32).max)), None),
    ("scale_infinite", "vector", with_x(np.ones(SIZE), float("inf")), None),
    ("scale_large_integer", "vector", with_x(np.ones(SIZE), 10**30), None),
    ("scale_bool", "vector", with_x(np.ones(SIZE), True), None),
    ("single_node", "graph", lambda: NS(args=[], word=0), None),
]  # fmt: skip


def _fresh_tree(depth: int, word: int = 1) -> Any:
    return Node(*(_fresh_tree(depth - 1, w) for w in (1, 2)), word=word) if depth else Node(word=word)


@pytest.mark.parametrize(("model", "given", "means"), [row[1:] for row in RIGHT], ids=[row[0] for row in RIGHT])
def test_right_answer(model: str, given: Callable[[], Any], means: Callable[[], Any] | None) -> None:
    small = SMALL[model]
    out = small.compiled()(given()).out
    np.testing.assert_allclose(out, small.value((means or given)()), rtol=1e-5, atol=1e-6)
    check_good(small)


def test_a_graph_that_is_exponential_as_a_tree() -> None:
    fast = SMALL["graph"].compiled()
    out = fast(_diamonds())
    assert out.nodes.out.shape == (61, SIZE)
    assert np.isfinite(out.out).all()


@pytest.mark.parametrize("name", SMALL)
def test_an_empty_batch(name: str) -> None:
    fast = SMALL[name].compiled()
    check_good(SMALL[name])
    assert fast([]).out.shape == (0, SIZE)
    assert fast(()).nodes.out.shape == (0, SIZE)


def test_an_empty_forest() -> None:
    assert SMALL["tree"].compiled()(Forest.from_parents([], fields={"word": []})).out.shape == (0, SIZE)


def test_a_chain_of_a_million_nodes() -> None:
    small = SMALL["chain"]
    last = None
    for i in range(1_000_000):
        last = NS(prev=last, word=i % 10)
    np.testing.assert_allclose(small.compiled()(last).out, small.value(last), rtol=1e-5, atol=1e-6)
    while last is not None:
        last = last.prev


@pytest.mark.parametrize("name", ["children", "word"])
@pytest.mark.parametrize("error", [ValueError("mine"), AttributeError("mine"), StopIteration("mine"), SystemExit(3)])
def test_errors_of_the_nodes_pass_unchanged(name: str, error: BaseException) -> None:
    class Raising:
        children = ()
        word = 1

    def failing(_: object) -> Any:
        raise error

    setattr(Raising, name, property(failing))
    with pytest.raises(type(error)) as caught:
        SMALL["tree"].compiled()(Node(LEAF, Raising()))
    assert caught.value is error
    check_good(SMALL["tree"])


def test_errors_of_the_nodes_pass_unchanged_while_a_kind_is_traced() -> None:
    class Raising:
        next = None

        @property
        def size(self) -> int:
            raise OSError("mine")

    with pytest.raises(OSError, match="mine"):
        SMALL["sized"].compiled()(Raising())
    check_good(SMALL["sized"])


def test_nodes_that_change_while_they_are_walked() -> None:
    class Eating:
        """Empties the list it stands in."""

        word = 1

        def __init__(self, siblings: list[Any]) -> None:
            self.siblings = siblings

        @property
        def children(self) -> Any:
            self.siblings.clear()
            gc.collect(0)
            return []

    siblings: list[Any] = []
    siblings += [Eating(siblings) for _ in range(100)]
    out = SMALL["tree"].compiled()(Node(*siblings))
    expected = SMALL["tree"].value(Node(*[LEAF] * 100))
    np.testing.assert_allclose(out.out, expected, rtol=1e-5, atol=1e-6)


def test_children_without_end(monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]) -> None:
    """Native walks and the walks of the tracer both end."""

    class Endless:
        word = 1
        size = 77

        @property
        def children(self) -> list[Any]:
            return [Endless()]

        next = property(lambda self: Endless())

    monkeypatch.setattr("cortex.runtime.linearize.MAX_OBJECTS", 10_000)
    monkeypatch.setattr("cortex.frontend.postorder.MAX_OBJECTS", 10_000)
    for name in ("tree", "sized"):
        small = SMALL[name]
        fast = cortex.compile(small.model, {"emb": np.eye(4), "U": np.eye(4)})
        with pytest.raises(cortex.StructureError) as caught:
            fast(Endless())
        golden("errors/structure/endless", f"{type(caught.value).__name__}: {caught.value}")
        with pytest.raises(cortex.StructureError, match="more than 10000 nodes"):
            fast([Endless(), Endless()])


def test_wrong_calls() -> None:
    fast = SMALL["tree"].compiled()
    for wrong in (lambda: fast(), lambda: fast(LEAF, LEAF), lambda: fast(tree=LEAF)):  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="__call__"):
            wrong()  # type: ignore[no-untyped-call]
    with pytest.raises(AttributeError, match="no state 'h'; the model's states are out"):
        _ = fast(LEAF).h
    with pytest.raises(KeyError, match="no state 'h'"):
        fast(LEAF)["h"]
    with pytest.raises(IndexError):
        fast(LEAF)[1]
    check_good(SMALL["tree"])

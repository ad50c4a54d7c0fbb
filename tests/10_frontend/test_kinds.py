"""Which kinds a model has, and what they compute: compared with the same recursion in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from frontend_meaning import Node, checked, evaluate, sigmoid, weights
from numpy.testing import assert_allclose

import cortex
from cortex.frontend.trace import Trace
from cortex.ra.ir import Each, Equals, Fact, IsLeaf, IsNone, Length, OverChildren, State, Value

H = 4
TREE = Node(children=[Node(word=1), Node(children=[Node(word=2), Node(word=0), Node(word=3)]), Node(word=4)])


def guards(trace: Trace) -> dict[str, tuple[Fact, ...]]:
    return {kind.name: kind.guard for kind in checked(trace).kinds}


@cortex.model
def tree_lstm(node: Any, w: Any) -> Any:
    if node.is_leaf:
        i, o, u = cortex.split(w.W @ w.emb[node.word] + w.b, 3)
        c = cortex.sigmoid(i) * cortex.tanh(u)
    else:
        kids = node.children
        i, o, u = cortex.split(w.U @ cortex.sum(tree_lstm(k, w).h for k in kids) + w.b, 3)
        c = cortex.sigmoid(i) * cortex.tanh(u) + cortex.sum(
            cortex.sigmoid(w.Uf @ tree_lstm(k, w).h + w.bf) * tree_lstm(k, w).c for k in kids
        )
    return cortex.state(h=cortex.sigmoid(o) * cortex.tanh(c), c=c)


LSTM = weights(W=(3 * H, 5), U=(3 * H, H), b=(3 * H,), emb=(7, 5), Uf=(H, H), bf=(H,))


def numpy_tree_lstm(node: Any) -> tuple[Any, Any]:
    w = Node(**{name: array.astype(np.float64) for name, array in LSTM.items()})
    kids = [numpy_tree_lstm(k) for k in getattr(node, "children", [])]
    x = w.U @ sum(h for h, _ in kids) if kids else w.W @ w.emb[node.word]
    i, o, u = np.split(x + w.b, 3)
    c = sigmoid(i) * np.tanh(u) + sum(sigmoid(w.Uf @ h + w.bf) * c for h, c in kids)
    return sigmoid(o) * np.tanh(c), c


def test_design_example() -> None:
    trace = Trace(tree_lstm, LSTM)
    m = checked(trace)
    assert guards(trace) == {"leaf": (Fact(IsLeaf(), True),), "inner": (Fact(IsLeaf(), False),)}
    assert (m.slots, m.lists) == ((), ("children",))
    assert [(f.name, f.type.dtype, f.limit) for f in m.fields] == [("word", "i64", 7)]
    assert [(s.name, s.type.shape) for s in m.states] == [("h", (H,)), ("c", (H,))]
    assert [p.name for p in m.params] == ["W", "emb", "b", "U", "Uf", "bf"]
    out = evaluate(trace, TREE)
    h, c = numpy_tree_lstm(TREE)
    assert_allclose(out["h"], h, rtol=1e-6)
    assert_allclose(out["c"], c, rtol=1e-6)


def test_seeing_what_is_known_changes_nothing() -> None:
    trace = Trace(tree_lstm, LSTM)
    before = checked(trace)
    assert trace.see([TREE, TREE.children[0]]) is False
    assert checked(trace) == before


def test_equal_operations_share_a_let() -> None:
    inner = checked(Trace(tree_lstm, LSTM)).kinds[1]
    assert sum(let.op == State("h", (Each("children"),)) for let in inner.lets) == 1


def test_every_let_knows_its_line() -> None:
    for kind in checked(Trace(tree_lstm, LSTM)).kinds:
        for let in kind.lets:
            assert let.span is not None
            assert let.span.file.endswith("test_kinds.py")
    lets = checked(Trace(tree_lstm, LSTM)).kinds[0].lets
    product = next(let.span for let in lets if type(let.op).__name__ == "Contract")
    assert product is not None
    assert product.text[product.column : product.end] == "w.W @ w.emb[node.word]"


def test_attention_over_children() -> None:
    @cortex.model
    def attend(node: Any, w: Any) -> Any:
        if node.is_leaf:
            return w.emb[node.word]
        a = cortex.softmax(w.q @ attend(k, w) for k in node.children)
        return cortex.tanh(cortex.sum(a_k * attend(k, w) for a_k, k in zip(a, node.children, strict=True)))

    given = weights(emb=(7, H), q=(H,))

    def expected(node: Any) -> Any:
        if not hasattr(node, "children"):
            return given["emb"][node.word].astype(np.float64)
        kids = [expected(k) for k in node.children]
        scores = np.array([given["q"] @ k for k in kids])
        a = np.exp(scores - scores.max())
        return np.tanh(sum(x * k for x, k in zip(a / a.sum(), kids, strict=True)))

    trace = Trace(attend, given)
    assert list(guards(trace)) == ["leaf", "inner"]
    assert_allclose(evaluate(trace, TREE)["out"], expected(TREE), rtol=1e-6)


def test_mean_max_min_and_constants_over_children() -> None:
    @cortex.model
    def reduce(node: Any, w: Any) -> Any:
        if node.is_leaf:
            return w.emb[node.word]
        found = [reduce(k, w) for k in node.children]
        return cortex.mean(found) + cortex.max(found) * cortex.min(found) + cortex.sum(w.b for _ in node.children)

    given = weights(emb=(7, H), b=(H,))

    def expected(node: Any) -> Any:
        if not hasattr(node, "children"):
            return given["emb"][node.word].astype(np.float64)
        kids = np.array([expected(k) for k in node.children])
        return kids.mean(0) + kids.max(0) * kids.min(0) + len(kids) * given["b"]

    assert_allclose(evaluate(Trace(reduce, given), TREE)["out"], expected(TREE), rtol=1e-6)


def test_one_kind_without_a_base_case() -> None:
    """Every node has a word and calls the model: the states are found by supposing them."""

    @cortex.model
    def words(node: Any, w: Any) -> Any:
        s = cortex.sum(words(k, w).h for k in node.preds)
        return cortex.state(h=cortex.tanh(w.U @ s + w.W @ w.emb[node.word] + w.b))

    given = weights(emb=(7, 5), W=(H, 5), U=(H, H), b=(H,))
    trace = Trace(words, given)
    assert guards(trace) == {"node": ()}
    assert checked(trace).lists == ("preds",)
    shared = Node(word=1, preds=[])
    root = Node(word=2, preds=[shared, Node(word=3, preds=[shared])])

    def expected(node: Any) -> Any:
        s = sum((expected(k) for k in node.preds), np.zeros(H))
        return np.tanh(given["U"] @ s + given["W"] @ given["emb"][node.word] + given["b"])

    assert_allclose(evaluate(trace, root)["h"], expected(root), rtol=1e-5)


def test_base_case_may_be_missing_for_other_state_forms() -> None:
    @cortex.model
    def bare(node: Any, w: Any) -> Any:
        return cortex.tanh(w.U @ cortex.sum(bare(k, w) for k in node.children) + w.b)

    @cortex.model
    def pair(node: Any, w: Any) -> Any:
        kids = [pair(k, w) for k in node.children]
        return cortex.tanh(w.U @ cortex.sum(h for h, _ in kids) + w.b), w.V @ cortex.sum(c for _, c in kids) + w.d

    assert [s.type.shape for s in checked(Trace(bare, weights(U=(H, H), b=(H,)))).states] == [(H,)]
    m = checked(Trace(pair, weights(U=(H, H), b=(H,), V=(3, 3), d=(3,))))
    assert [(s.name, s.type.shape) for s in m.states] == [("0", (H,)), ("1", (3,))]


def test_typed_nodes() -> None:
    @cortex.model
    def plan(node: Any, w: Any) -> Any:
        if node.op == "Scan":
            return w.emb[node.table]
        if node.op == "Join":
            return cortex.tanh(w.J @ cortex.concat([plan(node.left, w), plan(node.right, w)]))
        if node.op in ("Sort", "Hash"):
            return cortex.relu(w.S @ plan(node.left, w))
        raise ValueError(f"unknown operator {node.op}")

    given = weights(emb=(7, H), J=(H, 2 * H), S=(H, H))
    trace = Trace(plan, given)
    assert list(guards(trace)) == ["op_Scan", "op_Join", "op_Sort", "op_Hash"]
    not_none = Fact(IsNone("op"), False)
    assert guards(trace)["op_Join"] == (not_none, Fact(Equals("op", "Scan"), False), Fact(Equals("op", "Join"), True))
    scans = [Node(op="Scan", table=i) for i in range(2)]
    root = Node(op="Hash", left=Node(op="Join", left=scans[0], right=scans[1]))
    joined = np.tanh(given["J"] @ given["emb"][:2].ravel())
    assert_allclose(evaluate(trace, root)["out"], np.maximum(given["S"] @ joined, 0), rtol=1e-5)


def test_missing_slots() -> None:
    @cortex.model
    def optional(node: Any, w: Any) -> Any:
        h = w.emb[node.word]
        if node.left is not None:
            h = h + w.L @ optional(node.left, w)
        if node.right is not None:
            h = h + w.R @ optional(node.right, w)
        return cortex.tanh(h)

    given = weights(emb=(7, H), L=(H, H), R=(H, H))
    trace = Trace(optional, given)
    assert set(guards(trace)) == {"has_left_has_right", "no_left", "no_right", "no_left_no_right"}
    leaf = Node(word=1, left=None, right=None)
    root = Node(word=2, left=None, right=Node(word=3, left=leaf, right=None))

    def expected(node: Any) -> Any:
        h = given["emb"][node.word].astype(np.float64)
        h = h if node.left is None else h + given["L"] @ expected(node.left)
        h = h if node.right is None else h + given["R"] @ expected(node.right)
        return np.tanh(h)

    assert_allclose(evaluate(trace, root)["out"], expected(root), rtol=1e-6)


def test_sequence() -> None:
    @cortex.model
    def rnn(node: Any, w: Any) -> Any:
        h = cortex.zeros(H) if node.prev is None else rnn(node.prev, w)
        return cortex.tanh(w.W @ h + w.emb[node.word])

    given = weights(emb=(7, H), W=(H, H))
    trace = Trace(rnn, given)
    assert guards(trace) == {"no_prev": (Fact(IsNone("prev"), True),), "has_prev": (Fact(IsNone("prev"), False),)}
    node, h = None, np.zeros(H)
    for word in (1, 5, 2):
        node = Node(word=word, prev=node)
        h = np.tanh(given["W"] @ h + given["emb"][word])
    assert_allclose(evaluate(trace, node)["out"], h, rtol=1e-6)


def test_very_deep_structures_can_be_seen() -> None:
    @cortex.model
    def count(node: Any) -> Any:
        return cortex.ones(1) if node.prev is None else count(node.prev) + 1

    node = None
    for _ in range(20_000):
        node = Node(prev=node)
    assert Trace(count).see([node]) is False


def test_grandchildren() -> None:
    @cortex.model
    def deep(node: Any, w: Any) -> Any:
        if node.left is None:
            return w.emb[node.word]
        if node.left.left is None:
            return cortex.tanh(deep(node.left, w)) + w.emb[node.left.word]
        return cortex.tanh(w.W @ deep(node.left.left, w))

    given = weights(emb=(7, H), W=(H, H))
    trace = Trace(deep, given)
    a = Node(word=1, left=None)
    c = Node(word=3, left=Node(word=2, left=a))
    x = given["emb"][1].astype(np.float64)
    assert_allclose(evaluate(trace, c)["out"], np.tanh(given["W"] @ x), rtol=1e-6)
    assert_allclose(evaluate(trace, c.left)["out"], np.tanh(x) + x, rtol=1e-6)


def test_loop_statement_takes_children_one_by_one() -> None:
    """What is carried from child to child makes one kind for each number of children."""

    @cortex.model
    def ordered(node: Any, w: Any) -> Any:
        h = w.emb[node.word]
        for position, k in enumerate(node.kids):
            h = cortex.tanh(w.W @ h + (position + 1) * ordered(k, w))
        for k in node.kids:
            h = h * 2 + ordered(k, w)
        return h

    given = weights(emb=(7, H), W=(H, H))
    root = Node(word=1, kids=[Node(word=2, kids=[]), Node(word=3, kids=[Node(word=4, kids=[])])])

    def expected(node: Any) -> Any:
        h = given["emb"][node.word].astype(np.float64)
        for position, k in enumerate(node.kids):
            h = np.tanh(given["W"] @ h + (position + 1) * expected(k))
        for k in node.kids:
            h = h * 2 + expected(k)
        return h

    trace = Trace(ordered, given)
    assert_allclose(evaluate(trace, root)["out"], expected(root), rtol=1e-6)
    assert set(guards(trace)) == {"kids_0", "kids_1", "kids_2"}
    assert Fact(Length("kids"), 2) in guards(trace)["kids_2"]


def test_unpacking_and_indexing_children() -> None:
    @cortex.model
    def pair(node: Any, w: Any) -> Any:
        if len(node.kids) == 0:
            return w.emb[node.word]
        first, *rest = node.kids
        return pair(first, w) - pair(node.kids[-1], w) * len(rest)

    given = weights(emb=(7, H))
    root = Node(kids=[Node(word=i, kids=[]) for i in range(3)])
    assert_allclose(evaluate(Trace(pair, given), root)["out"], given["emb"][0] - 2 * given["emb"][2], rtol=1e-6)


def test_dispatch_by_value() -> None:
    @cortex.model
    def dispatch(node: Any, w: Any) -> Any:
        weight = {"neg": -1.0, "dup": 2.0, "leaf": 0.0}[node.kind]
        return w.b if not node.kids else weight * cortex.sum(dispatch(k, w) for k in node.kids)

    given = weights(b=(H,))
    trace = Trace(dispatch, given)
    root = Node(kind="dup", kids=[Node(kind="neg", kids=[Node(kind="leaf", kids=[])])])
    assert_allclose(evaluate(trace, root)["out"], -2 * given["b"], rtol=1e-6)
    assert Fact(Value("kind"), "dup") in guards(trace)["kind_dup"]


def test_truth_of_a_list_is_the_leaf_test_while_it_is_the_only_relation() -> None:
    @cortex.model
    def one(node: Any, w: Any) -> Any:
        return cortex.sum(one(k, w) for k in node.children) if node.children else w.b

    @cortex.model
    def two(node: Any, w: Any) -> Any:
        s = cortex.sum(two(k, w) for k in node.children) if node.children else w.b
        return s if node.next is None else s + two(node.next, w)

    given = weights(b=(H,))
    present = Fact(IsNone("children"), False)
    assert guards(Trace(one, given)) == {
        "no_children": (Fact(IsNone("children"), True),),
        "leaf": (present, Fact(IsLeaf(), True)),
        "inner": (present, Fact(IsLeaf(), False)),
    }
    trace = Trace(two, given)
    last = Node(children=[], next=None)
    root = Node(children=[last], next=Node(children=[], next=last))
    assert_allclose(evaluate(trace, root)["out"], 3 * given["b"], rtol=1e-6)
    assert all(not isinstance(f.test, IsLeaf) for guard in guards(trace).values() for f in guard)


def test_leaf_by_missing_list() -> None:
    @cortex.model
    def missing(node: Any, w: Any) -> Any:
        if node.kids is None:
            return w.emb[node.word]
        return cortex.tanh(cortex.sum(missing(k, w) for k in node.kids))

    given = weights(emb=(7, H))
    trace = Trace(missing, given)
    assert set(guards(trace)) == {"no_kids", "has_kids"}
    root = Node(kids=[Node(word=1, kids=None), Node(word=2, kids=None)])
    assert_allclose(evaluate(trace, root)["out"], np.tanh(given["emb"][1:3].sum(0)), rtol=1e-6)


def test_optional_field_has_a_kind_of_its_own() -> None:
    @cortex.model
    def maybe(node: Any, w: Any) -> Any:
        x = cortex.zeros(H) if node.word is None else w.emb[node.word]
        return x + cortex.sum(maybe(k, w) for k in node.children)

    given = weights(emb=(7, H))
    trace = Trace(maybe, given)
    assert set(guards(trace)) == {"no_word", "has_word"}
    root = Node(word=None, children=[Node(word=3, children=[])])
    assert_allclose(evaluate(trace, root)["out"], given["emb"][3], rtol=1e-6)


def test_attributes_may_be_absent() -> None:
    @cortex.model
    def absent(node: Any, w: Any) -> Any:
        if getattr(node, "word", None) is not None:
            return w.emb[node.word]
        return absent(node.only, w) * (2.0 if getattr(node, "scale", None) is None else node.scale)

    given = weights(emb=(7, H))
    root = Node(only=Node(only=Node(word=1), scale=3.0))
    assert_allclose(evaluate(Trace(absent, given), root)["out"], 6 * given["emb"][1], rtol=1e-6)


def test_reductions_do_not_depend_on_the_number_of_children() -> None:
    trace = Trace(tree_lstm, LSTM)
    wide = Node(children=[Node(word=i % 7) for i in range(50)])
    assert trace.see([wide]) is False
    inner = checked(trace).kinds[1]
    assert sum(isinstance(let.op, OverChildren) for let in inner.lets) == 2


def test_a_state_may_be_a_childs_state() -> None:
    @cortex.model
    def same(node: Any, w: Any) -> Any:
        return cortex.state(h=w.b, c=w.d) if node.is_leaf else same(node.only, w)

    given = weights(b=(H,), d=(2,))
    out = evaluate(Trace(same, given), Node(only=Node(only=None)))
    assert_allclose(out["c"], given["d"])

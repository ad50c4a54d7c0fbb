"""Requests bound to a compiled model, and arrays of the caller's for results."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex
from cortex import _native
from cortex.cost.choose import ALWAYS
from cortex.errors import ModelError, StructureError
from cortex.recursion.dedup import Dedup
from cortex.recursion.tabulate import Tabulate
from cortex.recursion.unroll import UnrollRecursion
from cortex.runtime.executable import Executable

WORDS, SIZE = 20, 5  # rows of 5 are padded


@cortex.model
def cell(node: Any, w: Any) -> Any:
    """Leaves have a word; inner nodes mix their children by what `op` says and add their own numbers."""
    if node.is_leaf:
        x = w.embedding[node.word]
        return cortex.state(h=x, c=x * 0.5)
    left, right = cell(node.children[0]), cell(node.children[1])
    total = left.h + right.h
    h = cortex.tanh(w.U @ total + node.x) if node.op == 1 else cortex.tanh(total + node.x)
    return cortex.state(h=h, c=left.c + right.c)


@cortex.model
def plain(node: Any, w: Any) -> Any:
    """One state, without a name."""
    x = w.embedding[node.word]
    return x if node.is_leaf else cortex.tanh(x + cortex.sum(plain(k) for k in node.children))


def weights() -> dict[str, Any]:
    random = np.random.default_rng(0)
    return {"embedding": random.normal(size=(WORDS, SIZE)) / 2, "U": random.normal(size=(SIZE, SIZE)) / 3}


def tree(random: np.random.Generator, leaves: int) -> Any:
    nodes = [SimpleNamespace(children=[], word=int(random.integers(WORDS))) for _ in range(leaves)]
    while len(nodes) > 1:
        i = int(random.integers(len(nodes) - 1))
        x = random.normal(size=SIZE).astype(np.float32)
        nodes[i : i + 2] = [SimpleNamespace(children=nodes[i : i + 2], x=x, op=int(random.integers(2)))]
    return nodes[0]


def trees(count: int = 4) -> list[Any]:
    random = np.random.default_rng(count)
    return [tree(random, int(random.integers(2, 12))) for _ in range(count)]


def preorder(node: Any) -> list[Any]:
    return [node, *(below for k in node.children for below in preorder(k))]


STEPS: dict[str, tuple[Any, ...]] = {
    "usual": (),
    "dedup": (Dedup(),),
    "tables": (Tabulate(),),
    "dedup and tables": (Dedup(), Tabulate()),
}


@cache
def compiled(steps: str = "usual", model: Any = cell) -> Executable:
    examples = trees(8) if model is cell else None
    given = weights() if model is cell else {"embedding": weights()["embedding"]}
    return cortex.compile(model, given, examples=examples, recursion=(*ALWAYS, *STEPS[steps]))


def words(*given: int) -> Any:
    leaves = [SimpleNamespace(children=[], word=word) for word in given[1:]]
    return SimpleNamespace(children=leaves, word=given[0])


@pytest.mark.parametrize("steps", STEPS)
def test_a_bound_request_is_a_call(steps: str) -> None:
    fast, request = compiled(steps), trees()
    want, run = fast(request), fast.bind(request)
    out = run()
    assert (out.h == want.h).all()
    assert (out.c == want.c).all()
    assert (out.nodes.h == want.nodes.h).all()
    assert run() is out
    assert run().h is out.h
    assert run.num_nodes == sum(len(preorder(t)) for t in request)
    one = fast.bind(request[1])()
    assert one.h.shape == (SIZE,)
    assert (one.h == want.h[1]).all()


@pytest.mark.parametrize("steps", STEPS)
def test_fields_change_between_calls(steps: str) -> None:
    fast, request = compiled(steps), trees()
    run = fast.bind(request)
    before = run().h.copy()
    nodes = [node for t in request for node in preorder(t)]
    assert run.fields["word"].tolist() == [getattr(node, "word", 0) for node in nodes]
    assert all((run.fields["x"][i] == getattr(node, "x", 0)).all() for i, node in enumerate(nodes))
    random = np.random.default_rng(5)
    for i, node in enumerate(nodes):
        if hasattr(node, "word"):
            node.word = run.fields["word"][i] = int(random.integers(WORDS))
        else:
            node.x = random.normal(size=SIZE).astype(np.float32)
            run.fields["x"][i] = node.x
    want, out = fast(request), run()
    assert (out.h == want.h).all()
    assert (out.nodes.c == want.nodes.c).all()
    assert (out.h != before).any()


def test_fields_of_nodes_that_are_inlined() -> None:
    """Two levels run together: code of a node reads fields of the node below."""

    @cortex.model
    def chain(node: Any, w: Any) -> Any:
        x = w.embedding[node.word]
        return x if node.next is None else cortex.tanh(w.U @ chain(node.next) + x)

    def make(*given: int) -> Any:
        made = None
        for word in reversed(given):
            made = SimpleNamespace(next=made, word=word)
        return made

    fast = cortex.compile(chain, weights(), recursion=(*ALWAYS, UnrollRecursion()))
    run = fast.bind([make(*range(7)), make(*range(4))])
    assert (run()[0] == fast([make(*range(7)), make(*range(4))])[0]).all()
    run.fields["word"] = [*range(6, 13), *range(9, 13)]
    assert (run()[0] == fast([make(*range(6, 13)), make(*range(9, 13))])[0]).all()


def test_fields_are_set_at_once() -> None:
    run = compiled(model=plain).bind(words(0, 1, 2))
    run.fields["word"] = [3, 4, 5]
    assert (run()[0] == compiled(model=plain)(words(3, 4, 5))[0]).all()
    assert (set(run.fields), len(run.fields)) == ({"word"}, 1)
    with pytest.raises(KeyError, match="no field 'nope'; the model reads word"):
        run.fields["nope"]
    for wrong in ([1.5, 2, 3], [1, 2], "abc"):
        with pytest.raises(StructureError, match=r"field 'word' is set to values .* int64 values of shape \(3,\)"):
            run.fields["word"] = wrong
    assert repr(run) == "<bound request of 3 nodes, BoundFields(word: int64[3])>"


def test_integers_are_checked_where_they_are_read() -> None:
    run = compiled().bind(trees())
    want = run().h.copy()
    is_leaf = [not node.children for t in trees() for node in preorder(t)]
    for value in (WORDS, -1, 2**40):
        at = is_leaf.index(True)
        good = int(run.fields["word"][at])
        run.fields["word"][at] = value
        with pytest.raises(StructureError, match=f"node {at}: field 'word' is {value}; it must be an integer from 0"):
            run()
        run.fields["word"][at] = good
        run.fields["word"][is_leaf.index(False)] = value  # nobody reads it there
        assert (run().h == want).all()


def test_fields_of_control_flow_are_fixed() -> None:
    @cortex.model
    def chosen(node: Any, w: Any) -> Any:
        x = w.embedding[node.word]
        return -x if node.word == 3 else x

    run = cortex.compile(chosen, {"embedding": weights()["embedding"]}).bind(SimpleNamespace(word=3))
    want = run()[0].copy()
    with pytest.raises(ValueError, match="read-only"):
        run.fields["word"][0] = 4
    with pytest.raises(StructureError, match=r"field 'word' of a bound request .* cannot change; bind the changed"):
        run.fields["word"] = [4]
    run.fields["word"].flags.writeable = True
    run.fields["word"][0] = 4
    assert (run()[0] == want).all()


def test_arrays_that_were_changed_otherwise_are_refused() -> None:
    run = compiled(model=plain).bind(words(0, 1, 2))
    run.fields["word"].resize((1,), refcheck=False)
    with pytest.raises(StructureError, match="the array of field 'word' is no longer as it was"):
        run()


def test_forests_and_empty_requests() -> None:
    fast = compiled(model=plain)
    forest = cortex.Forest.from_parents([-1, 0, 0, -1], {"word": [1, 2, 3, 4]})
    run = fast.bind(forest)
    assert (run()[0] == fast(forest)[0]).all()
    run.fields["word"] = [4, 3, 2, 1]
    changed = cortex.Forest.from_parents([-1, 0, 0, -1], {"word": [4, 3, 2, 1]})
    assert (run()[0] == fast(changed)[0]).all()
    assert (run().nodes[0] == fast(changed).nodes[0]).all()
    assert fast.bind([])()[0].shape == (0, SIZE)


def test_new_kinds_are_compiled_when_bound() -> None:
    fast = cortex.compile(cell, weights(), examples=SimpleNamespace(children=[], word=1))
    known, request = fast.bind([SimpleNamespace(children=[], word=1)]), trees()
    count = fast.compilations
    run = fast.bind(request)
    assert fast.compilations > count
    assert (run().h == fast(request).h).all()
    assert (known().h[0] == weights()["embedding"][1].astype(np.float32)).all()


def test_out() -> None:
    fast, request = compiled(), trees()
    want = fast(request)
    both = np.full((4, 2, SIZE), np.nan, np.float32)
    h, c = both[:, 0], both[:, 1]
    out = fast(request, out={"h": h, "c": c})
    assert out.h is h
    assert out["c"] is c
    assert (both == np.stack([want.h, want.c], axis=1)).all()
    assert (out.nodes.h == want.nodes.h).all()
    for given in (
        (np.zeros_like(h), None),
        {"h": np.zeros((SIZE, 4), np.float32).T},
        (np.zeros((8, SIZE), "f")[::-2], None),
    ):
        out = fast(request, out=given)
        assert out.h is (given["h"] if isinstance(given, dict) else given[0])
        assert (out.h == want.h).all()
        assert (out.c == want.c).all()
    one = np.zeros(SIZE, np.float32)
    assert compiled(model=plain)(words(1, 2), out=one)[0] is one
    assert (one == compiled(model=plain)(words(1, 2))[0]).all()
    run = fast.bind(request, out=(h, c))
    both[:] = 0
    assert run().h is h
    assert (h == want.h).all()


def shared() -> Any:
    a = np.zeros((4, SIZE), np.float32)
    return {"h": a, "c": a[:]}


def fixed() -> Any:
    a = np.zeros((4, SIZE), np.float32)
    a.flags.writeable = False
    return {"h": a}


WRONG: dict[str, Callable[[], Any]] = {
    "dtype": lambda: {"h": np.zeros((4, SIZE))},
    "byte order": lambda: {"h": np.zeros((4, SIZE), ">f4")},
    "shape": lambda: {"c": np.zeros((3, SIZE), "f")},
    "no array": lambda: {"h": [1.0]},
    "name": lambda: {"x": np.zeros(3)},
    "too few": lambda: (np.zeros((4, SIZE), "f"),),
    "one of two": lambda: np.zeros((4, SIZE), "f"),
    "shared": shared,
    "read only": fixed,
    "unaligned": lambda: {"h": np.zeros(4 * SIZE * 4 + 1, np.uint8)[1:].view("f").reshape(4, SIZE)},
    "strides": lambda: {"h": np.lib.stride_tricks.as_strided(np.zeros(99, "f"), (4, SIZE), (8, 4))},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_out_refused(wrong: str, golden: Callable[[str, str], None]) -> None:
    for call in (compiled(), compiled().bind):
        with pytest.raises(StructureError) as caught:
            call(trees(), out=WRONG[wrong]())
        golden(f"errors/out/{wrong.replace(' ', '_')}", f"{caught.value}\n")
    with pytest.raises(ModelError, match="threads=0"):
        compiled().bind(trees(), threads=0)


def test_a_copy_stays_as_it_is() -> None:
    """`np.array(out)` is the caller's own, also where the next call writes to the same arrays."""
    run = cortex.compile(plain, {"embedding": weights()["embedding"]}).bind(SimpleNamespace(children=[], word=3))
    out = run()
    copy, view = np.array(out), np.asarray(out)
    before = view.copy()
    run.fields["word"][0] = 4
    run()
    assert np.array_equal(copy, before) and not np.array_equal(view, before)
    assert not np.shares_memory(np.array(out), out[0]) and np.shares_memory(np.asarray(out), out[0])
    assert np.asarray(out, dtype=np.float64).dtype == np.float64


def test_two_threads_at_once_are_refused(node: Any, linearizer: Any) -> None:
    """The second call is made while the first is inside the compiled function."""
    inside, go_on = threading.Event(), threading.Event()
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(
        lambda arrays, sizes: (inside.set(), go_on.wait(20), None)[2]
    )
    layout = {"entry": ctypes.cast(function, ctypes.c_void_p).value, "keepalive": function, "sizes": ["num_nodes"]}
    program = _native.Program(linearizer(), layout | {"arrays": [("state", "h", (), 1)]})
    bound = _native.Bound(program, [node(word=1)], True)
    for early in (bound.root, bound.nodes):
        with pytest.raises(RuntimeError, match="has not been run"):
            early(0)
    first = threading.Thread(target=bound.run)
    first.start()
    assert inside.wait(20)
    for second in (bound.run, lambda: bound.nodes(0), lambda: bound.root(0)):
        with pytest.raises(RuntimeError, match="used by two threads at once"):
            second()
    go_on.set()
    first.join()
    bound.run()
    assert bound.nodes(0).shape == (1,)
    roots = bound.root(0)
    inside.clear(), go_on.clear()
    again = threading.Thread(target=bound.run)
    again.start()
    assert inside.wait(20)
    assert bound.root(0) is roots  # it is there already
    go_on.set()
    again.join()


def test_native_arrays_are_checked_again(node: Any, linearizer: Any) -> None:
    nothing = ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value
    layout = {"entry": nothing, "sizes": ["num_nodes"], "arrays": [("state", "h", (2,), 16)]}
    program = _native.Program(linearizer(), layout)
    for out in ([np.zeros(3, "f")], [np.zeros(2)], [[1, 2]], [], [np.zeros((1, 2), "f")]):
        with pytest.raises(ValueError, match=r"out|given for state 0"):
            program.run([node(word=1)], True, 1, out)
    given = np.zeros(2, np.float32)
    bound = _native.Bound(program, [node(word=1)], True, 1, [given])
    given.resize((1,), refcheck=False)
    with pytest.raises(ValueError, match="given for state 0"):
        bound.run()


def test_cycles_through_bound_requests_are_collected() -> None:
    def make() -> weakref.ref[Any]:
        owner: Any = SimpleNamespace()
        embedding = {"embedding": weights()["embedding"]}
        fast = cortex.compile(plain, embedding, fields={"word": lambda n: n.word if owner else 0})
        owner.run = fast.bind(words(1, 2, 3))
        owner.run()
        return weakref.ref(owner.run.fields["word"])

    gone = make()
    gc.collect()
    assert gone() is None


def test_numbers_that_fields_cannot_hold(golden: Callable[[str, str], None]) -> None:
    @cortex.model
    def scaled(node: Any, w: Any) -> Any:
        return node.x * w.emb[0] + cortex.sum(scaled(k, w) for k in node.children)

    nodes = [SimpleNamespace(x=1.0, children=[]) for _ in range(2)]
    bound = cortex.compile(scaled, {"emb": np.eye(4)}, fields={"x": cortex.field()}).bind(nodes)
    for name, values in {"too_large": [1.0, 1e39], "masked": np.ma.array([1.0, 2.0], mask=[0, 1])}.items():
        with pytest.raises(cortex.StructureError) as caught:
            bound.fields["x"] = values
        golden(f"errors/structure/bound_{name}", f"{type(caught.value).__name__}: {caught.value}")
    assert bound.fields["x"].tolist() == [1, 1]
    bound.fields["x"] = np.float64(3)
    assert bound().out[:, 0].tolist() == [3, 3]

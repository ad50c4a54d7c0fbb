"""Calling a compiled function: what it is given, what comes back, threads, memory.

The functions here are Python callbacks through ctypes, which take the GIL again; nothing of the compiler is needed.
"""

from __future__ import annotations

import ctypes
import gc
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from process_memory import growth, mapped, needs_proc

from cortex import _native
from cortex.errors import StructureError

Function = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int64))
SIZES = ["num_nodes", "num_groups", "num_roots", "max_group", "num_children_edges", "max_children_edges"]


def view(address: int, shape: tuple[int, ...], dtype: Any = ctypes.c_float) -> Any:
    """The memory behind a pointer as an array."""
    if 0 in shape:
        return np.zeros(shape, np.float32 if dtype is ctypes.c_float else np.int32)
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(dtype)), shape)


def program(linearizer: Any, body: Callable[[Any, Any], object], arrays: list[Any], sizes: Any = None) -> Any:
    function = Function(body)
    layout = {
        "entry": ctypes.cast(function, ctypes.c_void_p).value,
        "keepalive": function,
        "sizes": SIZES[:1] if sizes is None else sizes,
        "arrays": arrays,
    }
    return _native.Program(linearizer, layout)


def add_words(linearizer: Any) -> Any:
    """State h of a node is the sum of the words below it, twice; rows are padded."""

    def body(arrays: Any, sizes: Any) -> None:
        n, edges = sizes[0], sizes[1]
        word, child, parent = (view(arrays[i], s, ctypes.c_int32) for i, s in ((0, (n,)), (1, (edges,)), (2, (edges,))))
        h = view(arrays[3], (n, 16))
        h[:] = word[:, None]
        for e in reversed(range(edges)):
            h[parent[e]] += h[child[e]]

    arrays = [("field", "word"), ("index", "children_child"), ("index", "children_parent"), ("state", "h", (2,), 16)]
    return program(linearizer(lists=["children"]), body, arrays, ["num_nodes", "num_children_edges"])


def random_tree(node: Any, random: np.random.Generator, leaves: int) -> Any:
    nodes = [node(word=int(random.integers(1000)), children=[]) for _ in range(leaves)]
    while len(nodes) > 1:
        i = int(random.integers(len(nodes) - 1))
        nodes[i : i + 2] = [node(children=nodes[i : i + 2])]
    return nodes[0]


def total(tree: Any) -> int:
    return tree.word if not tree.children else sum(total(k) for k in tree.children)


def test_states_come_back(node: Any, linearizer: Any) -> None:
    adding = add_words(linearizer)
    a, b = node(word=1, children=[]), node(word=2, children=[])
    tree = node(children=[a, node(children=[b, a])])
    run = adding.run([tree], True)
    assert run.root(0).tolist() == [4, 4]
    assert run.nodes(0).tolist() == [[4, 4], [1, 1], [3, 3], [2, 2]]
    assert run.num_nodes == 4
    run = adding.run([tree, b, tree], False)
    assert run.root(0).tolist() == [[4, 4], [2, 2], [4, 4]]
    assert run.root(0).dtype == np.float32
    assert run.root(0).flags.c_contiguous
    with pytest.raises(IndexError, match=r"the program has states 0 to 1 \(not included\), not 1"):
        run.root(1)
    with pytest.raises(StructureError, match="one structure was asked for, and there are 2"):
        adding.run([a, b], True)


def test_an_empty_batch_runs_nothing(linearizer: Any) -> None:
    called = []
    arrays = [("state", "h", (3, 2), 12), ("state", "s", (), 1)]
    idle = program(linearizer(lists=["children"]), lambda a, s: called.append(1), arrays)
    run = idle.run([], False)
    assert (run.root(0).shape, run.nodes(0).shape, run.root(1).shape) == ((0, 3, 2), (0, 3, 2), (0,))
    assert not called


def test_what_the_function_is_given(node: Any, linearizer: Any) -> None:
    weight = np.arange(5, dtype=np.float32)
    seen: dict[str, Any] = {}

    def body(arrays: Any, sizes: Any) -> None:
        seen["sizes"] = sizes[:6]
        seen["addresses"] = arrays[:8]
        seen["weight"] = view(arrays[0], (5,)).copy()
        seen["start"] = view(arrays[1], (sizes[1],), ctypes.c_int32).copy()
        seen["x"] = view(arrays[2], (3, 2, 8))[:, :, :3].copy()
        for i, rows in ((4, 3), (5, sizes[5]), (6, 1), (7, 3)):
            view(arrays[i], (rows, 64))[:] = np.nan  # every array is as long as it was asked to be
        view(arrays[3], (3, 2, 8))[:] = np.arange(48).reshape(3, 2, 8)

    arrays = [
        ("weight", weight),
        ("index", "group_start"),
        ("field", "x"),
        ("state", "m", (2, 3), 16),
        ("scratch", "num_nodes", 64),
        ("scratch", "max_children_edges", 64),
        ("scratch", None, 64),
        ("state", "s", (), 64),
    ]
    spec = {"int_fields": [], "float_fields": [("x", (2, 3), 16)], "uses": [["x"], ["x"]]}
    running = program(linearizer(lists=["children"], **spec), body, arrays, SIZES)
    x = [np.full((2, 3), i, np.float32) for i in range(3)]
    run = running.run([node(x=x[0], children=[node(x=x[1]), node(x=x[2])])], True)
    assert seen["sizes"] == [3, 2, 1, 2, 2, 2]
    assert all(address % 64 == 0 for address in seen["addresses"][1:])
    assert seen["weight"].tolist() == weight.tolist()
    assert seen["start"].tolist() == [1, 0]
    assert (seen["x"] == np.stack(x)).all()
    assert run.root(0).tolist() == [[0, 1, 2], [8, 9, 10]]
    assert run.nodes(0)[2].tolist() == [[32, 33, 34], [40, 41, 42]]
    form = run.linear_form()
    assert form["sizes"]["max_children_edges"] == 2
    assert form["arrays"]["children_parent"].tolist() == [0, 0]
    assert (form["fields"]["x"] == np.stack(x)).all()


def test_a_run_is_the_same_in_any_batch(node: Any, linearizer: Any) -> None:
    random = np.random.default_rng(1)
    adding = add_words(linearizer)
    trees = [random_tree(node, random, int(random.integers(1, 30))) for _ in range(20)]
    together = adding.run(trees, False).root(0)
    assert together[:, 0].tolist() == [total(t) for t in trees]
    assert all((adding.run([t], True).root(0) == together[i]).all() for i, t in enumerate(trees))


def test_results_are_copies(node: Any, linearizer: Any) -> None:
    adding = add_words(linearizer)
    first = adding.run([node(word=1, children=[])], True)
    root, nodes = first.root(0), first.nodes(0)
    second = adding.run([node(word=2, children=[])], True)
    assert (root.tolist(), first.nodes(0).tolist(), second.root(0).tolist()) == ([1, 1], [[1, 1]], [2, 2])
    del first
    adding.run([node(word=3, children=[])], True)
    assert (root.tolist(), nodes.tolist()) == ([1, 1], [[1, 1]])


def test_a_run_outlives_its_program(node: Any, linearizer: Any) -> None:
    run = add_words(linearizer).run([node(word=5, children=[])], True)
    gc.collect()
    assert run.nodes(0).tolist() == [[5, 5]]
    assert run.linear_form()["sizes"]["num_nodes"] == 1


def test_threads(node: Any, linearizer: Any) -> None:
    adding = add_words(linearizer)
    wrong: list[Any] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(60):
            tree = random_tree(node, random, int(random.integers(1, 60)))
            run = adding.run([tree], True)
            if run.root(0)[0] != total(tree) or run.nodes(0)[0, 1] != total(tree):
                wrong.append(tree)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_the_gil_is_free_while_the_function_runs(node: Any, linearizer: Any) -> None:
    both = threading.Barrier(2, timeout=20)
    meeting = program(linearizer(), lambda a, s: both.wait(), [("state", "h", (), 1)])
    threads = [threading.Thread(target=meeting.run, args=([node(word=1)], True)) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not both.broken


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_fork(node: Any, linearizer: Any) -> None:
    adding = add_words(linearizer)
    kept = adding.run([node(word=5, children=[])], True)
    child = os.fork()
    if child == 0:
        good = adding.run([node(word=6, children=[])], True).root(0)[0] == 6 and kept.nodes(0)[0, 0] == 5
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0


@needs_proc
def test_no_leaks(node: Any, linearizer: Any) -> None:
    nothing = ctypes.CDLL(None).getpid  # takes no arguments and minds none
    layout = {"entry": ctypes.cast(nothing, ctypes.c_void_p).value, "sizes": SIZES[:1]}
    arrays = [("field", "word"), ("field", "x"), ("state", "h", (8,), 16), ("scratch", "num_nodes", 512)]
    spec = {"float_fields": [("x", (2,), 16)], "uses": [["word", "x"], []]}
    running = _native.Program(linearizer(lists=["children"], **spec), layout | {"arrays": arrays})
    word = 10**3 - 1
    tree = [node(children=[node(word=word, x=[1, 2], children=()) for _ in range(3)])]
    bad = [node(children=[node(word=word, x=[1], children=())])]
    out = [np.zeros(8, np.float32)]
    apart = [np.zeros((8, 2), np.float32)[:, 0]]  # results pass through an array of their own
    bound = _native.Bound(running, tree, True, 1, out)

    def call(times: int) -> None:
        for _ in range(times):
            run = running.run(tree, True)
            run.nodes(0)
            run.linear_form()
            running.run(tree, True, 1, apart)
            _native.Bound(running, tree, True, 1, [None]).run()
            for fail in (lambda: running.run(bad, True), lambda: _native.Bound(running, bad, True)):
                with pytest.raises(StructureError):
                    fail()
            bound.fields()["word"][1] = word + 1
            with pytest.raises(StructureError):
                bound.run()
            bound.fields()["word"][1] = word

    def everything() -> None:
        call(750)
        for _ in range(25_000):
            running.run(tree, True)
            running.run(tree, True, 1, out)
        for _ in range(250_000):
            bound.run()

    call(2_000)
    gc.collect()
    objects = len(gc.get_objects())
    assert growth(everything) < 1 << 20
    assert len(gc.get_objects()) - objects < 100


@needs_proc
def test_large_workspaces_are_given_back(node: Any, linearizer: Any) -> None:
    row = 64 << 20
    large = program(linearizer(), lambda a, s: None, [("scratch", "num_nodes", row)])
    gc.collect()
    before = mapped()
    run = large.run([node(word=1), node(word=2)], False)
    assert mapped() - before > 4 * row
    del run
    assert mapped() - before < 4 * row


def test_answers_are_wrapped_in_classes(node: Any, linearizer: Any) -> None:
    adding = add_words(linearizer)
    for given in (5, object()):
        with pytest.raises(TypeError, match="in a class"):
            adding.answer(given, [node(word=1, children=[])], True, 1)


@pytest.mark.parametrize("elements", [2**44, 2**62])
def test_too_much_memory(node: Any, linearizer: Any, elements: int) -> None:
    greedy = program(linearizer(), lambda a, s: None, [("scratch", "num_nodes", elements)])
    with pytest.raises(MemoryError, match=r"cannot allocate \d+ bytes for a request of 2 nodes; split it"):
        greedy.run([node(word=1), node(word=2)], False)


@pytest.mark.parametrize(
    ("arrays", "error"),
    [
        ([("index", "nope")], "unknown index array 'nope'"),
        ([("field", "nope")], "unknown field 'nope'"),
        ([("scratch", "nope", 4)], "unknown size 'nope'"),
        ([("nope",)], "unknown array kind 'nope'"),
        ([("state", "h", (4,), 3)], "not a padding of its shape"),
        ([("weight", np.zeros((4, 4))[:, ::2])], "contiguous"),
        ([("weight", [1.0])], "contiguous"),
    ],
)
def test_layouts_refused(linearizer: Any, arrays: Any, error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        program(linearizer(), lambda a, s: None, arrays)


@pytest.mark.parametrize("keeps_program", [True, False])
def test_reference_cycles_are_collected(node: Any, linearizer: Any, keeps_program: bool) -> None:
    class Owner:
        pass

    def make() -> weakref.ref[Any]:
        owner: Any = Owner()
        reading = linearizer(accessors={"word": lambda n: 1 if owner else 0})
        running = program(reading, lambda a, s: None, [("state", "h", (), 1)])
        owner.run = running.run([node()], True)
        if keeps_program:
            owner.program = running
        return weakref.ref(owner)

    gone = make()
    gc.collect()
    assert gone() is None

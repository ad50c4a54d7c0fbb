"""Forests: constructors, what they refuse, and large ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_time import least

from cortex.errors import StructureError
from cortex.options import Options
from cortex.runtime.forest import Forest
from cortex.structures import read_aiger

HYP = Options.from_environment().data.resolve() / "aig" / "hyp.aig"


def test_parents() -> None:
    forest = Forest.from_parents([2, 2, -1, 0, -1, 2])
    pointer, index = forest.lists["children"]
    assert pointer.tolist() == [0, 1, 1, 4, 4, 4, 4]
    assert index.tolist() == [3, 0, 1, 5]
    assert forest.roots.tolist() == [2, 4]


def test_default_roots_are_nobodys_children() -> None:
    assert Forest.from_slots({"left": [-1, 0, 0], "right": [-1, -1, 0]}).roots.tolist() == [1, 2]
    assert Forest.from_children([0, 0, 1], [0], relation="kids").roots.tolist() == [1]
    assert Forest.from_parents([]).num_nodes == 0


def test_nested() -> None:
    forest = Forest.from_nested(((1, "x"), [], (2, (None, 2.5))))
    pointer, index = forest.lists["children"]
    kids = [index[pointer[i] : pointer[i + 1]].tolist() for i in range(forest.num_nodes)]
    assert kids == [[1, 4, 5], [2, 3], [], [], [], [6, 7], [], [8, 9], [], []]
    assert forest.fields["word"] == (None, None, 1, "x", None, None, 2, None, None, 2.5)
    assert Forest.from_nested(5).num_nodes == 1


def test_nested_data_are_trees_even_if_python_shares_them(linearizer: Any) -> None:
    pair = (3, 4)
    forest = Forest.from_nested((pair, pair))
    assert linearizer([], ["children"]).linearize(forest)["arrays"]["field_word"].tolist() == [0, 0, 0, 3, 4, 3, 4]


def test_nested_data_inside_themselves() -> None:
    loop: list[Any] = [1, [2]]
    loop[1].append(loop)
    with pytest.raises(StructureError, match=r"^nested data must not contain themselves, but a list does$"):
        Forest.from_nested(loop)


def test_deeply_nested_data() -> None:
    data: Any = 1
    for _ in range(100_000):
        data = (data,)
    assert Forest.from_nested(data).num_nodes == 100_001
    while type(data) is tuple:
        (data,) = data


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Forest.from_parents([-1, 2]), r"parents\[1\] is 2, which is no node; the forest has nodes 0 to 1"),
        (lambda: Forest.from_parents([0]), "cycle, but node 0 is below itself: 0 -> 0"),
        (lambda: Forest.from_parents([1, 2, 0, -1]), "cycle, but node 0 is below itself: 0 -> 2 -> 1 -> 0"),
        (lambda: Forest.from_parents([[1]]), "parents has 2 dimensions"),
        (lambda: Forest.from_parents([0.5]), "parents has elements of type float64; it must be an array of integers"),
        (lambda: Forest.from_parents([True]), "elements of type bool"),
        (lambda: Forest.from_parents(np.array([2**63], np.uint64)), "parents holds 9223372036854775808"),
        (lambda: Forest.from_parents([2**40]), r"parents\[0\] is 1099511627776, which is no node"),
        (lambda: Forest.from_children([], []), "pointer is empty"),
        (lambda: Forest.from_children([0, 2, 1, 2], [1, 2]), "and falls after entry 1"),
        (lambda: Forest.from_children([1, 2], [0, 0]), r"must rise from 0 to the number of children \(2\)"),
        (lambda: Forest.from_children([0, 1], [-1]), r"index\[0\] is -1, which is no node"),
        (lambda: Forest.from_children([0, 1], [0]), "node 0 is below itself"),
        (lambda: Forest.from_slots({}), "slots is empty"),
        (lambda: Forest.from_slots({"left": [-1], "right": []}), "lengths are {'left': 1, 'right': 0}"),
        (lambda: Forest.from_slots({"left": [1, -1], "right": [-1, 0]}), "node 0 is below itself: 0 -> 1 -> 0"),
        (lambda: Forest.from_slots({"left": [-2]}), r"slot 'left'\[0\] is -2, which is no node; .*\(-1 for none\)"),
        (lambda: Forest.from_slots({"left": [-1]}, roots=[1]), r"roots\[0\] is 1, which is no node"),
        (lambda: Forest.from_parents([-1], fields={"x": [1, 2]}), "field 'x' has 2 entries; it must have one for each"),
        (lambda: Forest.from_parents([-1], fields={"x": 5}), "field 'x' is a int; it must be an array or a list"),
        (lambda: Forest.from_parents([-1], fields={"x": "a"}), "field 'x' is a str; it must have one entry per node"),
    ],
)
def test_refused(make: Any, message: str) -> None:
    with pytest.raises(StructureError, match=message):
        make()


def test_a_relation_that_the_forest_has_not(linearizer: Any) -> None:
    with pytest.raises(StructureError, match=r"follows 'left', and the forest has only the relations \['children'\]"):
        linearizer(["left"]).linearize(Forest.from_parents([-1]))
    with pytest.raises(StructureError, match=r"the list 'kids', .* \['left'\]; make it with relation='kids'"):
        linearizer([], ["kids"]).linearize(Forest.from_slots({"left": [-1]}))


def test_slots_as_a_list(linearizer: Any) -> None:
    forest = Forest.from_slots({"left": [1, -1, -1], "right": [2, -1, -1]}, fields={"word": [0, 5, 6]})
    found = linearizer([], ["children"], accessors={"children": ("left", "right")}).linearize(forest)
    assert found["arrays"]["children_child"].tolist() == [1, 2]


def test_arrays_changed_behind_our_back(linearizer: Any) -> None:
    forest = Forest.from_slots({"left": [1, 2, -1]}, fields={"word": [1, 1, 1]})
    left = forest.slots["left"]
    left.flags.writeable = True
    for bad, message in ((5, "has no node 5"), (-7, "has no node -7"), (0, "below itself")):
        left[2] = bad
        with pytest.raises(StructureError, match=message):
            linearizer(["left"]).linearize(forest)
    changes: Any = ({"left": left[:2]}, {"left": left.astype(np.int64)}, {"left": left[::-1]}, {"left": [1]})
    for changed in changes:
        with pytest.raises(StructureError, match="is not the array that it was made with"):
            linearizer(["left"]).linearize(Forest(3, changed, {}, {}, forest.roots))
    pointers = np.array([0, 9, 1, 0], np.int32)
    with pytest.raises(StructureError, match="must rise from 0"):
        linearizer([], ["c"]).linearize(Forest(3, {}, {"c": (pointers, pointers[:0])}, {}, forest.roots))
    with pytest.raises(StructureError, match="'word' is not the one"):
        linearizer().linearize(Forest(3, {}, {}, {"word": np.zeros(2, np.int64)}, forest.roots))


ANY = st.lists(st.integers(-3, 6), max_size=7)


@settings(max_examples=400)
@given(ANY, ANY, ANY)
def test_any_arrays_give_a_form_or_an_error(linearizer: Any, a: list[int], b: list[int], roots: list[int]) -> None:
    makers: tuple[Any, ...] = (
        lambda: (linearizer([], ["children"], uses=[[], []]), Forest.from_parents(a)),
        lambda: (linearizer([], ["children"], uses=[[], []]), Forest.from_children(sorted(a), b, roots=roots)),
        lambda: (linearizer(["left", "right"], uses=[[], []]), Forest.from_slots({"left": a, "right": b})),
    )
    for make in makers:
        try:
            reading, forest = make()
        except StructureError:
            continue
        form = reading.linearize(forest)
        arrays, n = form["arrays"], forest.num_nodes
        assert sorted(arrays["order"].tolist()) == list(range(n))
        if "children_child" in arrays:
            assert (arrays["children_child"] > arrays["children_parent"]).all()


def check_large(linearizer: Any, left: Any, right: Any, depth: int) -> None:
    forest = Forest.from_slots({"left": left, "right": right}, fields={"word": np.arange(len(left)) % 1000})
    reading = linearizer(["left", "right"])
    found = reading.linearize(forest)
    took = least(lambda: reading.linearize(forest), 3)
    print(f"{len(left)} nodes from arrays: {took * 1e3:.1f} ms")
    assert found["sizes"]["num_groups"] == depth + 1
    ids = np.arange(len(left))
    for name, given_children in (("child_left", left), ("child_right", right)):
        child = found["arrays"][name]
        assert ((child > ids) | (child == -1)).all()
        order = found["arrays"]["order"]
        assert (child[order] == np.where(given_children < 0, -1, order[given_children])).all()
    assert took < 0.5  # 20 ms; to look at all nodes at each depth would take seconds


@pytest.mark.skipif(not HYP.exists(), reason="the circuit is not part of the repository")
def test_hyp(linearizer: Any) -> None:
    circuit = read_aiger(HYP)
    assert (circuit.left >= 0).sum() == 214_335
    check_large(linearizer, circuit.left, circuit.right, 24_801)


def test_a_large_deep_graph(linearizer: Any) -> None:
    n, leaves = 214_592, 257
    random = np.random.default_rng(0)
    left, right = np.full(n, -1), np.full(n, -1)
    gates = np.arange(leaves, n)
    left[leaves:] = gates - 1 - random.integers(0, 8, n - leaves)
    right[leaves:] = random.integers(0, gates)
    depth = np.zeros(n, np.int64)
    for g in gates:
        depth[g] = 1 + max(depth[left[g]], depth[right[g]])
    check_large(linearizer, left, right, int(depth.max()))


@pytest.mark.parametrize("order", ["children before", "children after", "mixed"])
def test_heights_do_not_depend_on_the_order_of_nodes(linearizer: Any, order: str) -> None:
    random = np.random.default_rng(3)
    n = 300
    left, right = (np.array([-1 if i < 5 else random.integers(-1, i) for i in range(n)]) for _ in range(2))
    place = {"children before": np.arange(n), "children after": np.arange(n)[::-1], "mixed": random.permutation(n)}[
        order
    ]
    moved = [np.empty(n, np.int64) for _ in range(2)]
    for to, child in zip(moved, (left, right), strict=True):
        to[place] = np.where(child < 0, -1, place[child])
    forest = Forest.from_slots(dict(zip(("left", "right"), moved, strict=True)), {"word": np.zeros(n, np.int64)})
    form = linearizer(slots=["left", "right"]).linearize(forest)
    heights = np.zeros(n, np.int64)
    for i in range(n):
        heights[i] = 1 + max((heights[c] for c in (left[i], right[i]) if c >= 0), default=-1)
    want = [int((heights == h).sum()) for h in range(int(heights.max()) + 1)]
    assert form["arrays"]["group_len"].tolist() == want


def test_fields_that_nobody_can_write_are_not_copied() -> None:
    x, word = np.ones((2, 3), np.float32), np.arange(2)
    fixed = {"x": x.copy(), "word": word.copy()}
    for array in fixed.values():
        array.flags.writeable = False
    view = x[:]
    view.flags.writeable = False
    kept = Forest.from_parents([-1, 0], fixed)
    copied = Forest.from_parents([-1, 0], {"x": view, "word": word})
    assert all(kept.fields[name] is fixed[name] for name in fixed)
    x[:], word[:] = 7, 7
    assert copied.fields["x"].tolist() == kept.fields["x"].tolist()
    assert copied.fields["word"].tolist() == [0, 1]

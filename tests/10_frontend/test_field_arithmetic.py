"""What Python computes from fields: the same numbers and decisions as Python, or an error that says where."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cortex

T = 1_700_000_000
W = {"one": np.ones(3, np.float32), "U": np.eye(3, dtype=np.float32)}


class Text(str):
    """A text with its own equality."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str(self).lower() == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


class Op(enum.StrEnum):
    A = "a"
    B = "b"


class Node:
    def __init__(self, *children: Node, **fields: Any) -> None:
        self.left, self.right = children or (None, None)
        vars(self).update(fields)


def each(*names: str) -> Callable[..., list[dict[str, Any]]]:
    return lambda *rows: [dict(zip(names, row if isinstance(row, tuple) else (row,), strict=True)) for row in rows]


Case = tuple[Callable[[Any], Any], list[dict[str, Any]]]
ab, x = each("a", "b"), each("x")
NUMBERS: dict[str, Case] = {
    "minutes": (lambda n: (n.a - n.b) / 60, ab((T + 135, T), (T + 0.5, T), (T, T + 1.25))),
    "large": (lambda n: n.a - n.b, ab((2**31 + 5, 2**31), (2**53 + 1, 2**53), (10**400 + 7, 10**400))),
    "of_child": (lambda n: 0.0 if n.left is None else n.a - n.left.a, ab((T + 135, 0), (T, 0), (T, 0))),
    "of_children": (lambda n: 0.0 if n.left is None else (n.left.a - n.right.a) / 60, ab((0, 0), (T, 0), (T + 9, 0))),
    "mixed": (lambda n: n.a * n.b - 2**32, ab((2**20 + 1, 2**12), (1.5, 2**33), (3, 2**31))),
    "root": (lambda n: n.x**0.5, x(2.0, 100, 3.5)),
    "power": (lambda n: 2**n.x, x(2.0, 10, 3)),
    "rounded_down": (lambda n: n.x // 2 + n.x % 7 + divmod(n.x, 5)[1], x(2**24 + 1, -7, 9.5)),
    "signs": (lambda n: -n.x + abs(n.x) + abs(-n.x - 1) + (+n.x), x(7, -7, 2.5)),
    "rounded": (lambda n: round(n.x) + round(n.x, 1) + math.floor(n.x), x(7.66, -7.5, 2.25)),
    "python_numbers": (lambda n: int(n.a - n.b) + float(n.a - n.b), ab((2**24 + 1, 2**24), (3, 1), (7.5, 2))),
    "logarithms": (lambda n: math.log(n.a / n.b) + math.log1p(n.a), ab((7.5, 2), (3, 1), (0.5, 0.25))),
    "least": (lambda n: min(n.a, n.b) + max(n.a - n.b, 0), ab((2**24 + 1, 2**24), (1, 2), (2.5, 2.5))),
    "truth": (lambda n: n.a * 2 + (1 - n.a) + n.a + n.b, ab((True, 2), (False, 1.5), (True, True))),
    "beyond_float32": (lambda n: n.x * 1e30 * 1e-30, x(1e20, 2.5, 3)),
    "numpy": (lambda n: n.a - n.b, ab((np.float64(T + 0.5), T), (np.int64(2**40 + 1), 2**40), (np.float32(1.5), 1))),
    "fractions": (lambda n: float(n.a - n.b), ab((Fraction(1, 3), 1), (Decimal("0.5"), Decimal("0.25")), (2, 1))),
    "bits": (lambda n: (n.x & 255) + (n.x >> 3) + (n.x ^ 1) + ~n.x, x(1027, 3, 2**20)),
}
DECISIONS: dict[str, Case] = {
    "order": (lambda n: n.a > n.b, ab((2**24 + 1, 2**24), (1, 2), (2**53 + 1, 2.0**53))),
    "equality": (lambda n: n.a == n.b, ab((2**24 + 1, 2**24), (2, 2.0), (math.nan, math.nan))),
    "sums": (lambda n: n.a == n.b + 1, ab((2**24 + 1, 2**24), (1, 2), (2, 1))),
    "chained": (lambda n: 0 <= n.a < n.b, ab((2**24, 2**24 + 1), (-1, 5), (1, 1))),
    "large_constant": (lambda n: n.x == 2**24 + 1, x(2**24 + 1, 2**24, 2**24 + 1.0)),
    "of_itself": (lambda n: n.x == n.x, x(1, math.nan, 2.0)),
    "truth_of_number": (lambda n: n.a - n.b, ab((2**24 + 1, 2**24), (1, 1), (2, 1))),
    "truth_as_number": (lambda n: n.x == 1 and str(n.x) == "True", x(True, 1, 1.0)),
    "texts": (lambda n: n.x == "add", x("add", Text("ADD"), "ADD")),
    "members": (lambda n: n.x == Op.A, x("a", Op.A, Op.B)),
    "lists": (lambda n: n.x == ("a",), x(["a"], ("a",), ["b"])),
    "single_precision": (lambda n: n.x == 0.1, x(0.1, np.float32(0.1), np.float64(0.2))),
    "single_precision_constant": (lambda n: n.x == np.float32(0.1), x(0.1, np.float32(0.1), 0.2)),
    "other_classes": (lambda n: n.x > 0.3, x(Fraction(1, 3), Decimal("0.25"), 0.25)),
    "text_and_number": (lambda n: n.x == "1", x(1, "1", 1.0)),
    "remainder": (lambda n: n.x % 2 == 0, x(4, 3, -2)),
    "sum_of_texts": (lambda n: n.x + "s" == "adds", x("add", "s", "adds")),
}  # fmt: skip


def trees(rows: list[dict[str, Any]]) -> list[Node]:
    """Each row once at the root, of which the first is seen first."""
    orders = [(0, 1, 2), (1, 2, 0), (2, 1, 0)]
    return [Node(Node(**rows[j]), Node(**rows[k]), **rows[i]) for i, j, k in orders]


def total(value: Callable[[Any], Any], n: Any) -> float:
    below = 0.0 if n.left is None else 2.0 * total(value, n.left) + 4.0 * total(value, n.right)
    return float(value(n)) + below


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    value, rows = NUMBERS[name]

    @cortex.model
    def f(n: Any, w: Any) -> Any:
        h = w.one * value(n)
        return h if n.left is None else h + 2.0 * f(n.left, w) + 4.0 * f(n.right, w)

    for tree in trees(rows):
        want = total(value, tree)
        np.testing.assert_allclose(cortex.compile(f, W)(tree).out, want, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", DECISIONS)
def test_decisions(name: str) -> None:
    decide, rows = DECISIONS[name]

    @cortex.model
    def f(n: Any, w: Any) -> Any:
        h = w.one * (10.0 if decide(n) else 3.0)
        return h if n.left is None else h + 2.0 * f(n.left, w) + 4.0 * f(n.right, w)

    for tree in trees(rows):
        fast = cortex.compile(f, W)
        assert fast(tree).out[0] == total(lambda n: 10.0 if decide(n) else 3.0, tree), rows


def test_identity_with_true_and_false() -> None:
    @cortex.model
    def f(n: Any, w: Any) -> Any:
        flag = n.x
        h = w.one * (10.0 if flag is True else 5.0 if n.x is not False else 3.0)
        return h if n.left is None else h + 2.0 * f(n.left, w) + 4.0 * f(n.right, w)

    for rows in (x(True, 1, False), x(0, 1.0, True), x(False, "True", 1)):
        for tree in trees(rows):
            want = total(lambda n: 10.0 if n.x is True else 5.0 if n.x is not False else 3.0, tree)
            assert cortex.compile(f, W)(tree).out[0] == want


@pytest.mark.parametrize("divide", [lambda n: 1 / n.x, lambda n: 2.0 / n.x, lambda n: 1 // n.x, lambda n: 1 % n.x])
def test_division_by_zero(divide: Callable[[Any], Any]) -> None:
    @cortex.model
    def f(n: Any, w: Any) -> Any:
        h = w.one * divide(n)
        return h if n.left is None else h + f(n.left, w) + f(n.right, w)

    fast = cortex.compile(f, W)
    fast(Node(Node(x=1), Node(x=2), x=4))
    for zero in (0, 0.0, False):
        with pytest.raises(cortex.StructureError, match=r"root\.right.*ZeroDivisionError") as caught:
            fast(Node(Node(x=1), Node(x=zero), x=4))
        assert "lambda n:" in str(caught.value)


def test_errors_that_the_model_handles() -> None:
    @cortex.model
    def f(n: Any, w: Any) -> Any:
        try:
            share = n.a / n.b
        except ZeroDivisionError:
            share = -1.0
        return w.one * share

    fast = cortex.compile(f, W)
    for a, b in ((1, 2), (3, 0), (3.0, 4), (0, 0.0)):
        assert fast(Node(a=a, b=b)).out[0] == (a / b if b else -1.0)


class Post:
    def __init__(self, t: float, *replies: Post) -> None:
        self.t, self.replies = t, list(replies)


POSTS = [
    Post(T, Post(T + 135), Post(T + 1.5)),
    Post(2**60, Post(2**60 + 1), Post(2**60 - 1), Post(2**60 + 300)),
    Post(T + 0.5, *(Post(T + i) for i in range(7))),
]


def test_numbers_of_a_node_and_its_children() -> None:
    @cortex.model
    def looped(n: Any, w: Any) -> Any:
        h = w.one * 0.0
        for r in n.replies:
            h = h + w.U @ (looped(r, w) + (r.t - n.t) / 60)
        return h

    @cortex.model
    def together(n: Any, w: Any) -> Any:
        return w.one * 0.0 + cortex.sum(w.U @ (together(r, w) + (r.t - n.t) / 60) for r in n.replies)

    for model in (looped, together):
        fast = cortex.compile(model, W)
        for post in POSTS:
            want = sum((r.t - post.t) / 60 for r in post.replies)
            np.testing.assert_allclose(fast(post).out, want, rtol=2e-6, atol=1e-6)
        assert len(fast.traced.kinds) <= 2, "a kind of any number of children"


def test_comparisons_of_a_node_with_its_children() -> None:
    @cortex.model
    def later(n: Any, w: Any) -> Any:
        return w.one * 0.0 + cortex.sum(
            cortex.where(r.t > n.t, w.U @ later(r, w) + 1.0, w.U @ later(r, w)) for r in n.replies
        )

    fast = cortex.compile(later, W)
    for post in POSTS:
        assert fast(post).out[0] == sum(r.t > post.t for r in post.replies)


def test_computed_rows_of_tables() -> None:
    table = np.arange(12.0, dtype=np.float32)

    @cortex.model
    def f(n: Any, w: Any) -> Any:
        return w.one * w.table[n.a * 4 + n.b]

    fast = cortex.compile(f, W | {"table": table})
    assert [fast(Node(a=a, b=b)).out[0] for a, b in ((0, 3), (2, 1))] == [3, 9]
    with pytest.raises(cortex.StructureError, match="12; it must be an integer from 0 to 11"):
        fast(Node(a=3, b=0))


def test_saved_and_loaded(tmp_path: Path) -> None:
    @cortex.model
    def f(n: Any, w: Any) -> Any:
        h = w.one * ((n.a - n.b) / np.float64(60)) if n.a != n.b else -w.one
        return h if n.left is None else h + f(n.left, w) + f(n.right, w) * (n.left.a - n.a)

    tree = Node(Node(a=T + 135, b=T), Node(a=5, b=5), a=T, b=T + 1.5)
    fast = cortex.compile(f, W, examples=tree)
    fast.save(tmp_path / "model.cortex")
    loaded = cortex.load(tmp_path / "model.cortex")
    assert np.array_equal(loaded(tree).out, fast(tree).out) and fast(tree).out[0] != 0
    with pytest.raises(cortex.StructureError, match="TypeError"):
        loaded(Node(a="1", b=2))

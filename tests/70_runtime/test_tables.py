"""Tables of states: which rows are computed when, and that nobody can tell."""

from __future__ import annotations

from threading import Barrier, Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex
from cortex import _native
from cortex.cost.choose import ALWAYS
from cortex.recursion.tabulate import Tabulate
from cortex.runtime.executable import Executable

WORDS, SIZE = 3000, 24


@cortex.model
def cell(node: Any, w: Any) -> Any:
    if node.is_leaf:
        return cortex.tanh(w.W @ w.emb[node.word])
    return cortex.tanh(w.U @ cortex.sum(cell(k, w) for k in node.children))


def compiled(*steps: Any) -> Executable:
    rng = np.random.default_rng(0)
    weights = {"emb": rng.normal(size=(WORDS, SIZE)), "W": rng.normal(size=(SIZE, SIZE)), "U": np.eye(SIZE)}
    # Unchecked: the check would look rows up.
    return cortex.compile(cell, weights, examples=[tree(0)], recursion=(*ALWAYS, *steps), check=False)


def tree(*words: int) -> Any:
    return SimpleNamespace(children=[SimpleNamespace(children=[], word=word) for word in words])


def rows_of(fast: Executable) -> Any:
    (rows,) = fast._require()._tables
    return rows


def test_rows_are_computed_when_they_are_first_looked_up() -> None:
    fast, plain = compiled(Tabulate()), compiled()
    rows = rows_of(fast)
    assert not rows.filled.any()
    for words in ((5, 2999, 5), (7, 5)):
        assert fast(tree(*words)).out.tobytes() == plain(tree(*words)).out.tobytes()
    # Nodes that look nothing up have the value 0.
    assert np.flatnonzero(rows.filled).tolist() == [0, 5, 7, 2999]


def test_rows_are_the_same_however_they_are_computed() -> None:
    one_by_one, at_once = compiled(Tabulate()), compiled(Tabulate())
    for word in (1, 1500, 2999):
        one_by_one(tree(word))
    (name,) = at_once.tables
    assert at_once.weights[name].tobytes() == one_by_one.weights[name].tobytes()
    assert rows_of(at_once).filled.all()


def test_a_request_may_need_more_rows_than_are_computed_at_a_time() -> None:
    words = range(WORDS - 1, -1, -1)
    assert compiled(Tabulate())(tree(*words)).out.tobytes() == compiled()(tree(*words)).out.tobytes()


def test_bound_requests_find_rows_for_fields_that_change() -> None:
    fast, plain = compiled(Tabulate()), compiled()
    run = fast.bind(tree(1, 2))
    run()
    run.fields["word"][1:] = [40, 41]
    assert run().out.tobytes() == plain(tree(40, 41)).out.tobytes()


def test_threads_find_rows_at_once() -> None:
    fast, plain = compiled(Tabulate()), compiled()
    want = [plain(tree(i, i + 1, i + 2)).out.tobytes() for i in range(200)]
    ready, wrong = Barrier(4), []

    def work() -> None:
        ready.wait()
        wrong.extend(i for i in range(200) if fast(tree(i, i + 1, i + 2)).out.tobytes() != want[i])

    threads = [Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_which_rows_are_there_must_be_said_by_bytes() -> None:
    loaded = compiled(Tabulate())._require()
    layout = {"entry": 1, "sizes": [], "arrays": [], "tables": [("word", np.zeros(3), None)]}
    with pytest.raises(TypeError, match="contiguous array of bytes"):
        _native.Program(loaded.linearizer, layout)

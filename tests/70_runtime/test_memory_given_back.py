"""Memory of models that are updated, loaded and dropped again."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex
from cortex.codegen.llvm.build import build
from cortex.codegen.llvm.load import LIBRARIES
from cortex.codegen.load import load

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
SIZE = 16
WEIGHTS = {"emb": np.ones((10, SIZE), np.float32), "U": np.eye(SIZE, dtype=np.float32)}


@cortex.model
def tree(node: Any, w: Any) -> Any:
    return cortex.tanh(w.emb[node.word] + w.U @ cortex.sum(tree(k, w) for k in node.children))


LEAF = SimpleNamespace(word=1, children=[])
TREE = SimpleNamespace(word=2, children=[LEAF, LEAF])


def growth(action: Callable[[], object], times: int) -> int:
    """Bytes that the process grows by."""

    def resident() -> int:
        gc.collect()
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(times // 5):
        action()
    before = resident()
    for _ in range(times):
        action()
    return resident() - before


def test_updates() -> None:
    fast = cortex.compile(tree, WEIGHTS)

    def update() -> None:
        fast.update(WEIGHTS)
        fast(TREE)

    assert growth(update, 500) < 4 << 20


def test_loaded_models(tmp_path: Path) -> None:
    path = tmp_path / "model.cortex"
    cortex.compile(tree, WEIGHTS).save(path)
    assert growth(lambda: cortex.load(path)(TREE), 300) < 3 << 20


def test_generated_code() -> None:
    compiled = cortex.compile(tree, WEIGHTS).compiled
    assert growth(lambda: build(compiled.func, compiled.object_code.target), 25) < 5 << 18


def test_code_is_valid_while_it_is_held() -> None:
    kept = [cortex.compile(tree, {**WEIGHTS, "U": U}) for U in (WEIGHTS["U"], 2 * WEIGHTS["U"])]
    first, second = (fast(TREE).out for fast in kept)
    code = kept[0].compiled.object_code
    assert load(code.code, code.entry) is load(code.code, code.entry)
    for i in range(2 * LIBRARIES + 1):  # linkers come and go

        @cortex.model
        def other(node: Any, w: Any, i: int = i) -> Any:
            return (i + 2) * w.emb[node.word]

        assert cortex.compile(other, WEIGHTS, table_bytes=0)(LEAF).out[0] == i + 2
    np.testing.assert_array_equal(kept[0](TREE).out, first)
    np.testing.assert_array_equal(kept[1](TREE).out, second)

"""Memory of weights: values, padding, alignment, and what is asked of the system for large ones."""

from __future__ import annotations

import gc
import mmap

import numpy as np
import pytest
from process_memory import mapped, needs_proc

from cortex.runtime import storage
from cortex.runtime.storage import ALIGNMENT, LARGE_PAGE, padded

ROW = 1000


@pytest.mark.parametrize("rows", [1, 7, LARGE_PAGE // 4 // 1008 + 1, 3 * LARGE_PAGE // 4 // 1008])
def test_padded(rows: int) -> None:
    value = np.random.default_rng(0).normal(size=(rows, ROW))
    array = padded(value, 16)
    assert array.shape == (rows, 1008)
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert (array[:, :ROW] == value.astype(np.float32)).all()
    assert (array[:, ROW:] == 0).all()
    assert array.ctypes.data % (LARGE_PAGE if array.nbytes >= LARGE_PAGE else ALIGNMENT) == 0


def test_a_system_without_large_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    value = np.ones(LARGE_PAGE, np.float32)
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE")
    assert (padded(value, 1) == value).all()
    monkeypatch.setattr(storage.mmap, "MADV_HUGEPAGE", 12345, raising=False)  # advice that the system refuses
    assert (padded(value, 1) == value).all()


@needs_proc
def test_memory_is_given_back() -> None:
    value = np.ones(8 * LARGE_PAGE, np.float32)
    gc.collect()
    before = mapped()
    for _ in range(20):
        view = padded(value, 1)[5:]
        assert view[0] == 1
        assert mapped() - before > view.nbytes
    del view
    gc.collect()
    assert mapped() - before < value.nbytes

"""The modules of this folder that are no tests, and a cache for PoCL that goes when the tests are done."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cortex.errors import ModelError
from cortex.runtime.opencl import UNKNOWN_PROCESSOR

sys.path.insert(0, str(Path(__file__).parent))
_BUILT = tempfile.TemporaryDirectory(prefix="cortex-pocl-")  # removed at exit
os.environ["POCL_CACHE_DIR"] = _BUILT.name


@contextmanager
def _skipped_where_pocl_is_too_old() -> Iterator[None]:
    try:
        yield
    except ModelError as error:
        if UNKNOWN_PROCESSOR not in str(error):
            raise
        pytest.skip(f"PoCL does not know this processor: {UNKNOWN_PROCESSOR}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with _skipped_where_pocl_is_too_old():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with _skipped_where_pocl_is_too_old():
        return (yield)

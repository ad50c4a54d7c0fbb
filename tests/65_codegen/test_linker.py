"""Object code that is linked without LLVM: the same function, and no object file leads outside of it."""

from __future__ import annotations

import ctypes
from pathlib import Path
from random import Random

import numpy as np
import pytest

from cortex import zoo
from cortex.codegen import linker
from cortex.codegen.linker import CannotLink, link, links_here, map_code
from cortex.codegen.llvm.load import load as link_by_llvm
from cortex.codegen.target import Target
from cortex.compiler import build
from cortex.cost.choose import ALWAYS
from cortex.frontend.trace import Trace
from cortex.frontend.weights import Weights
from cortex.plan import Plan
from cortex.schedule.default import DEFAULT

pytestmark = pytest.mark.skipif(not links_here(), reason="code for x86-64 on Linux only")


def object_of(name: str) -> tuple[bytes, str]:
    entry = zoo.load(name)
    trace = Trace(entry.model, Weights(entry.weights(8, 10)))
    trace.explore()
    trace.see(entry.structures(Random(0), 3, 10))
    code = build(trace.model(), Plan(Target.host(), ALWAYS, DEFAULT)).object_code
    return code.code, code.entry


@pytest.mark.parametrize("name", ["tree_lstm", "mv_rnn", "lstm"])
def test_models_need_no_other_linker(name: str) -> None:
    code, entry = object_of(name)
    mapped = map_code(code, entry)
    assert ctypes.string_at(mapped.address, 4) == ctypes.string_at(link_by_llvm(code, entry).address, 4)
    with pytest.raises(CannotLink, match="no function"):
        map_code(code, "other")


def test_code_cannot_be_written() -> None:
    mapped = map_code(*object_of("tree_lstm"))
    line = next(
        line
        for line in Path("/proc/self/maps").read_text().splitlines()
        if (lambda a: int(a[0], 16) <= mapped.address < int(a[1], 16))(line.split()[0].split("-"))
    )
    assert line.split()[1].startswith("r-x")


def test_objects_that_make_no_sense_are_refused() -> None:
    code, entry = object_of("tree_lstm")
    random, refused = Random(0), 0
    for number in range(400):
        changed = bytearray(code)
        for _ in range(1 + number % 4):  # mostly in the tables, which are at the ends
            at = random.choice((random.randrange(64), len(code) - 1 - random.randrange(min(len(code), 1500))))
            changed[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
        try:
            image, start = link(bytes(changed), entry)
            assert 0 <= start < len(image) <= linker.MOST_BYTES + len(code)
        except (CannotLink, ValueError, IndexError, OverflowError):
            refused += 1
        except Exception as error:
            assert type(error).__name__ == "error"  # of struct
            refused += 1
    assert refused > 30
    for length in range(0, len(code), 97):
        with pytest.raises(CannotLink):
            map_code(code[:length], entry)


def test_code_that_is_dropped_is_unmapped() -> None:
    code, entry = object_of("tree_lstm")

    def size() -> int:
        return int(Path("/proc/self/statm").read_text().split()[0])

    before = size()
    for _ in range(500):
        map_code(code, entry)
    assert size() - before < 50
    assert np.frombuffer(map_code(code, entry).memory, np.uint8).size > 0

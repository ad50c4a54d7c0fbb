"""All Stanford trees through an exported TreeLSTM, from a plain C program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from breadth import LONG
from c_program import Package, forest_of

import cortex
from cortex import zoo
from cortex.structures.tree import with_children

sys.path += [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "75_agreement")]
from zoo_structures import stanford

VOCABULARY = 1000


@pytest.mark.parametrize("sanitize", [False, True], ids=["plain", "sanitized"])
def test_same_bits(sanitize: bool, exported: Callable[..., tuple[Package, Any]]) -> None:
    trees = [with_children(tree) for tree in stanford("train" if LONG and not sanitize else "dev", VOCABULARY)]
    entry = zoo.load("tree_lstm")
    fast = cortex.compile(entry.model, entry.weights(32, VOCABULARY), examples=trees[:10], threads=2)
    package, program = exported(fast, "tree_lstm", sanitize=sanitize)
    batches = [trees[i : i + 1000] for i in range(0, len(trees), 1000)]
    answers, _ = package.run(program, [forest_of(fast, batch) for batch in batches], threads=2)
    for batch, answer in zip(batches, answers, strict=True):
        want = fast(batch)
        assert answer.roots["h"].tobytes() == want.h.tobytes()
        assert answer.nodes["c"].tobytes() == want.nodes.c.tobytes()

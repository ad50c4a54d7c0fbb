"""What guards tell about all nodes there may be."""

from __future__ import annotations

import pytest

from cortex.ra.guards import cover_all_nodes
from cortex.ra.ir import Equals, Fact, IsLeaf, IsNone, Length

LEAF, INNER = Fact(IsLeaf(), True), Fact(IsLeaf(), False)
NONE, SOME = Fact(IsNone("left"), True), Fact(IsNone("left"), False)
ONE, TWO = Fact(Length("children"), 1), Fact(Length("children"), 2)
WORD = Fact(Equals("tag", "word"), True)

ALL = [[()], [(LEAF,), (INNER,)], [(LEAF,), (INNER, NONE), (INNER, SOME)], [(NONE, LEAF), (SOME,), (NONE, INNER)]]
SOME_LEFT = [[], [(LEAF,)], [(LEAF,), (INNER, NONE)], [(LEAF, WORD), (INNER,)], [(LEAF,), (INNER, ONE), (INNER, TWO)]]


@pytest.mark.parametrize("guards", ALL, ids=len)
def test_every_node_fits_one(guards: list[tuple[Fact, ...]]) -> None:
    assert cover_all_nodes(guards)


@pytest.mark.parametrize("guards", SOME_LEFT, ids=len)
def test_some_node_fits_none(guards: list[tuple[Fact, ...]]) -> None:
    assert not cover_all_nodes(guards)

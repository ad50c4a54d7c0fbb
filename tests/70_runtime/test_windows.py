"""Windows of the linear form: neighbouring groups, at most so many nodes, and where their nodes stand by kind."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex import _native
from cortex.runtime.forest import Forest

KINDS = 3


def spec_of(policy: str, own: list[bool], windows: list[int], nodes: int, **more: Any) -> dict[str, Any]:
    by_tag = ("test", ("value", "tag", ()), {str(t): ("kind", t) for t in range(KINDS)})
    return {
        "slots": [], "lists": ["children"], "accessors": {}, "num_kinds": KINDS, "tree": by_tag, "int_fields": [],
        "float_fields": [], "batching": policy, "own_group": own, "windows": windows, "window_nodes": nodes, **more,
    }  # fmt: skip


@pytest.mark.parametrize("own", [[True, True, True], [False, True, False]], ids=str)
@pytest.mark.parametrize("policy", ["height", "depth", "agenda", "none"])
@settings(max_examples=40)
@given(data=st.data(), n=st.integers(0, 30), nodes=st.integers(1, 12), dedup=st.booleans())
def test_windows(policy: str, own: list[bool], data: Any, n: int, nodes: int, dedup: bool) -> None:
    below = [data.draw(st.lists(st.integers(v + 1, n - 1), max_size=2)) if v + 1 < n else [] for v in range(n)]
    kinds = [data.draw(st.integers(0, KINDS - 1)) for _ in range(n)]
    index = [c for each in below for c in each]
    forest = Forest.from_children(
        np.cumsum([0, *map(len, below)]), index, fields={"tag": [str(k) for k in kinds]}, roots=list(range(n))
    )
    listed = [2, 0]
    whole = _native.Linearizer(spec_of(policy, own, [], nodes, dedup=dedup)).linearize(forest)
    form = _native.Linearizer(spec_of(policy, own, listed, nodes, dedup=dedup)).linearize(forest)
    sizes, arrays = form["sizes"], form["arrays"]
    for name, array in whole["arrays"].items():
        np.testing.assert_array_equal(arrays[name], array)
    firsts = arrays["window_group"].tolist()
    groups = sizes["num_groups"]
    assert (firsts[0], firsts[-1], len(firsts)) == (0, groups, sizes["num_windows"] + 1)

    length = arrays["group_len"]
    held = [int(length[a:b].sum()) for a, b in pairwise(firsts)]
    assert sizes["max_window"] == max(held, default=0)
    for (a, b), many in zip(pairwise(firsts), held, strict=True):
        assert a < b and (many <= nodes or b == a + 1)
        assert b == groups or many + length[b] > nodes  # as many groups as fit
        ids = set(range(int(arrays["group_start"][b - 1]), int(arrays["group_start"][a] + length[a])))
        assert len(ids) == many
        w = firsts.index(a)
        for k in listed:
            first, after = arrays[f"window_kind_{k}"][w : w + 2]
            of_kind = arrays["kind_node"][arrays["kind_start"][k] : arrays["kind_start"][k + 1]]
            assert set(arrays["kind_node"][first:after].tolist()) == ids & set(of_kind.tolist())

"""fast.report and fast.explain: their numbers agree with the interpreter and with the clock."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import cortex
from cortex import zoo
from cortex.cost.machine import Machine
from cortex.cost.sites import Sites
from cortex.ilir.interp import run
from cortex.ilir.verify import verify
from cortex.runtime.report import size_text
from cortex.runtime.report_page import page
from cortex.runtime.timeline import STAMPS, instrument
from cortex.schedule.default import Choices

Golden = Callable[[str, str], None]


def test_report_adds_up(fast: Any, trees: list[Any]) -> None:
    r = fast.report(trees)
    form = fast.linearize(trees)
    counted = run(fast.compiled.func, form.sizes, form.arrays, fast.weights).counts
    assert sum(p.operations for p in r.phases) == sum(counted.flops.values())
    assert (r.structures, r.nodes, r.barriers) == (3, form.sizes["num_nodes"], 0)
    assert [g.nodes for g in r.groups] == form.arrays["group_len"].tolist()
    assert r.kinds == {"leaf": (r.nodes + 3) // 2, "inner": (r.nodes - 3) // 2}
    assert sum(p.predicted_us for p in r.phases) <= r.predicted_us
    assert sum(g.measured_us for g in r.groups) == pytest.approx(sum(p.measured_us for p in r.phases))
    assert min(g.measured_us for g in r.groups) > 0
    assert 0 < sum(p.measured_us for p in r.phases) <= r.measured_us * 1.001
    assert 0 < r.linearize_us < r.call_us


def test_spans_follow_each_other(fast: Any, trees: list[Any]) -> None:
    r = fast.report(trees)
    assert len(r.spans) == len(r.groups)  # one phase per group of inner nodes, one for all leaves
    assert all(begin <= end for *_, begin, end in r.spans)
    assert all(a[4] <= b[3] for a, b in zip(r.spans, r.spans[1:], strict=False))
    assert [(t, g) for t, g, *_ in r.spans] == [(0, g) for g in (None, *range(1, len(r.groups)))]


def test_every_thread_has_a_lane(trees: list[Any]) -> None:
    entry = zoo.load("tree_rnn")
    choices = Choices(parallel="trees")
    team = cortex.compile(entry.model, entry.weights(32, 50), examples=trees, threads=2, choices=choices)
    r = team.report(trees)
    form = team.linearize(trees)
    first, second = form.arrays["part_group"][1], form.arrays["part_group"][2]
    assert second == len(r.groups)
    ran = {thread: [g for t, g, *_ in r.spans if t == thread] for thread in (0, 1)}
    if not ran[1]:  # the team was busy, or the system gave no thread
        ran = {0: [g for g in ran[0] if g is None or g < first], 1: [None, *(g for g in ran[0] if g and g >= first)]}
    assert ran == {0: [None, *range(1, first)], 1: [None, *range(first + 1, second)]}
    assert r.barriers == 1
    assert "2 threads" in str(r)
    assert "2 threads" in team.explain()
    assert "1 structure, " in team.explain()
    assert page(r, form, team.compiled.func).count('class="lane"') == max(t for t, *_ in r.spans) + 1


def test_one_structure_and_none(fast: Any, trees: list[Any]) -> None:
    assert fast.report(trees[0]).structures == 1
    empty = fast.report([])
    assert (empty.nodes, empty.groups, empty.predicted_us < 1) == (0, (), True)
    assert "0 nodes" in str(empty)


def test_text(fast: Any, trees: list[Any], golden: Golden) -> None:
    # Times differ from run to run; counts, and what bounds a phase, with the vector width. The layout does not.
    text = re.sub(r" *[\d.,]+ (us|MB|kB|B)\b", r" # \1", str(fast.report(trees)))
    text = re.sub(r"us  [a-zA-Z][\w ]*$", "us  #", text, flags=re.M)
    golden("report/text", re.sub(r"( +)[\d,]{5,}", r"\1#", text))


def test_explain_without_structures(golden: Golden) -> None:
    entry = zoo.load("tree_lstm")
    target = cortex.codegen.target.Target.x86("avx512")
    fast = cortex.compile(
        entry.model, entry.weights(256, 50), examples=entry.structures(Random(0), 1, 50), target=target
    )
    golden("report/explain", fast.explain())


def test_explain_a_request(fast: Any, trees: list[Any]) -> None:
    nodes = fast.linearize(trees).sizes["num_nodes"]
    assert f"3 structures, {nodes} nodes" in fast.explain(trees)
    assert Machine.example().cpu in fast.explain(trees)


def test_instrumented_program_computes_the_same(fast: Any, trees: list[Any]) -> None:
    f = fast.compiled.func
    marked = instrument(f)
    verify(marked)
    form = fast.linearize(trees)
    plain, timed = (run(g, form.sizes, form.arrays, fast.weights) for g in (f, marked))
    np.testing.assert_array_equal(plain.buffers["state_h"], timed.buffers["state_h"])
    assert plain.counts.flops == timed.counts.flops
    phases = len(Sites.of(f).phases)
    assert timed.buffers[STAMPS].shape == (form.sizes["num_groups"] + 1, phases, 2)
    assert timed.counts.stores[STAMPS] == 2 * form.sizes["num_groups"]


def test_sizes_read_well() -> None:
    assert [size_text(n) for n in (0, 999, 1000, 123_456, 5_000_000, 2e10)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "123 kB",
        "5.0 MB",
        "20.0 GB",
    ]

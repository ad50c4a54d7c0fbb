"""The automatic scheduler, and what tuning leaves for the next compilation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex
from cortex import plan, zoo
from cortex.codegen.target import Target
from cortex.cost import choose
from cortex.cost.choose import ALWAYS, Considered, recursion_steps, sharing
from cortex.cost.machine import Machine
from cortex.cost.tuned import file_of, remember, remembered
from cortex.cost.typical import typical
from cortex.frontend.trace import Trace
from cortex.frontend.weights import Weights
from cortex.ir.step import apply
from cortex.ra import ir as ra
from cortex.ra.simplify import simplify
from cortex.recursion.batch import Batch
from cortex.recursion.dedup import Dedup
from cortex.recursion.inputs_inside import InputsInside
from cortex.recursion.tabulate import Tabulate
from cortex.recursion.tabulate_leaf_products import TabulateLeafProducts
from cortex.runtime.linearize import linearize
from cortex.schedule.default import Choices, default_schedule
from cortex.schedule.registers import Registers, TileChoice
from cortex.schedule.schedule import Schedule

UNREADABLE = ("", "{}", "[1]", '{"schedule": "Schedule((Nothing(),))"}', "__import__('os').abort()")
CHOSEN = Choices(nests=(("inner_t1_n", TileChoice(2, 3, 4)), ("leaf_t2_i", TileChoice())))


def considered(found: tuple[Considered, ...], what: str) -> Considered:
    return next(c for c in found if c.what.startswith(what))


def test_a_leaf_that_costs_much_becomes_a_table(program: Any) -> None:
    m = simplify(program("tree_lstm", 64).traced)
    steps, found = recursion_steps(m, Machine.example(), typical)
    assert steps == (*ALWAYS, Tabulate("leaf"))
    assert considered(found, "Tabulate").taken
    assert (considered(found, "Tabulate").ratio or 1) < 0.9


def test_input_products_become_tables(program: Any) -> None:
    m = simplify(program("lstm", 64).traced)
    steps, _ = recursion_steps(m, Machine.example(), typical)
    assert Tabulate("has_prev") in steps


def test_tables_stay_within_their_limit(program: Any) -> None:
    m = simplify(program("tree_lstm", 64).traced)
    steps, found = recursion_steps(m, Machine.example(), typical, table_bytes=1000)
    assert steps == ALWAYS
    assert considered(found, "Tabulate").text() == (
        "Tabulate(kind='leaf', limit_bytes=67108864): left, its table would take 15 kB and 1 kB are allowed"
    )


def test_tables_that_take_long_to_fill_are_left(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "FILLING_US", 1.0)
    steps, found = recursion_steps(simplify(program("tree_lstm", 64).traced), Machine.example(), typical)
    assert steps == ALWAYS
    assert "s to fill" in considered(found, "Tabulate").why


def test_inputs_stay_ahead_of_sequences(program: Any) -> None:
    """A group of a sequence is one node: inside, the weights of inputs would be read for each."""
    m = simplify(program("lstm", 64).traced)
    steps, found = recursion_steps(m, Machine.example(), typical, table_bytes=0)
    assert InputsInside() not in steps
    assert (considered(found, "InputsInside").ratio or 0) > 1.1


def test_barriers_are_saved_only_where_there_are_any(program: Any) -> None:
    m = simplify(program("simple_tree_gru", 64).traced)
    _, alone = recursion_steps(m, Machine.example(), typical)
    assert "one thread meets none" in considered(alone, "Refactor").why
    _, two = recursion_steps(m, Machine.example(), typical, threads=2)
    assert considered(two, "Refactor(").ratio is not None


def test_examples_that_repeat_themselves_are_computed_once(program: Any) -> None:
    p = program("tree_lstm", 64)
    same, other = ([p.small(Random(seed)) for seed in seeds] for seeds in ([2] * 12, range(12)))
    times = {}
    for name, structures in (("same", same), ("other", other)):
        steps, found = recursion_steps(
            simplify(p.traced),
            Machine.example(),
            lambda m, structures=structures: [linearize(m, structures)],  # type: ignore[misc]
            has_examples=True,
        )
        times[name] = considered(found, "Dedup").ratio or 1.0
        assert (Dedup() in steps) == considered(found, "Dedup").taken
    assert times["same"] < 0.8 < 1.0 < times["other"]


def _by_operation(hidden: int) -> Any:
    """A cell whose inner nodes are of two kinds, traced."""

    @cortex.model
    def by_operation(node: Any, w: Any) -> Any:
        if node.is_leaf:
            return w.E[node.word]
        left, right = by_operation(node.left, w), by_operation(node.right, w)
        if node.op == "a":
            return cortex.tanh(w.A @ left + w.B @ right)
        return cortex.tanh(w.C @ left + w.D @ right)

    weights = {name: np.zeros((hidden, hidden), np.float32) for name in "ABCD"}
    trace = Trace(by_operation, Weights(weights | {"E": np.zeros((5, hidden), np.float32)}))
    trace.explore()
    return simplify(trace.model())


def test_kinds_that_alternate_run_by_an_agenda_where_groups_cost_more_than_it() -> None:
    steps, found = recursion_steps(_by_operation(256), Machine.example(), typical)
    assert Batch("agenda") in steps
    assert any("agenda" in c.what and c.taken for c in found)
    steps, found = recursion_steps(_by_operation(8), Machine.example(), typical)
    assert Batch("agenda") not in steps
    assert any("agenda" in c.what and not c.taken for c in found)


def test_one_kind_of_inner_nodes_has_no_agenda(program: Any) -> None:
    _, found = recursion_steps(simplify(program("tree_lstm", 64).traced), Machine.example(), typical)
    assert not any("agenda" in c.what for c in found)


def test_an_agenda_of_typical_requests_has_fewer_groups_of_the_same_nodes() -> None:
    m = apply(_by_operation(8), ALWAYS)
    for height, agenda in zip(typical(m), typical(Batch("agenda").apply(m)), strict=True):
        assert agenda.sizes["num_nodes"] == height.sizes["num_nodes"]
        assert height.sizes["num_groups"] * 3 // 4 <= agenda.sizes["num_groups"] < height.sizes["num_groups"]
        for k in range(len(m.kinds)):
            mine = [f.arrays["group_len"][f.arrays["group_kind"] == k].sum() for f in (height, agenda)]
            assert mine[0] == mine[1]


def test_compile_chooses_and_says_why() -> None:
    entry = zoo.load("tree_lstm")
    weights, trees = entry.weights(64, 30), entry.structures(Random(0), 3, 30)
    chosen = cortex.compile(entry.model, weights, examples=trees)
    plain = cortex.compile(entry.model, weights, examples=trees, recursion=ALWAYS, choices=Choices())
    assert Tabulate("leaf") in chosen.schedule.steps
    assert Tabulate("leaf") not in plain.schedule.steps
    assert "Tabulate(kind='leaf', limit_bytes=67108864): taken" in chosen.explain()
    assert "steps considered" not in plain.explain()
    assert TabulateLeafProducts() in chosen.schedule.steps
    np.testing.assert_allclose(chosen(trees).h, plain(trees).h, rtol=1e-5, atol=1e-6)
    without = cortex.compile(entry.model, weights, examples=trees, table_bytes=0)
    assert not {Tabulate, TabulateLeafProducts} & {type(step) for step in without.schedule.steps}
    assert np.array_equal(without(trees).h, plain(trees).h)


def test_products_of_leaves_do_not_depend_on_threads() -> None:
    """They change the last bits of results, so that they are taken for any number of threads or for none."""
    entry = zoo.load("tree_lstm")
    weights, trees = entry.weights(64, 30), entry.structures(Random(0), 3, 30)
    fast = cortex.compile(entry.model, weights, examples=trees)
    alone = fast(trees).h
    assert np.array_equal(fast(trees, threads=2).h, alone)
    assert TabulateLeafProducts() in fast.schedule.steps
    assert np.array_equal(cortex.compile(entry.model, weights, examples=trees, threads=2)(trees).h, alone)


def with_examples(program: Any, **options: Any) -> tuple[Any, tuple[Considered, ...]]:
    return recursion_steps(simplify(program.traced), Machine.example(), typical, has_examples=True, **options)


def test_products_of_leaves_are_for_examples_and_stay_within_their_limit(program: Any) -> None:
    p = program("tree_lstm", 64)
    assert TabulateLeafProducts() in with_examples(p)[0]
    assert TabulateLeafProducts() not in recursion_steps(simplify(p.traced), Machine.example(), typical)[0]
    rows = 30 * 64 * 4
    assert TabulateLeafProducts(6 * rows) in with_examples(p, table_bytes=6 * rows)[0]
    steps, found = with_examples(p, table_bytes=6 * rows - 1)
    assert steps == (*ALWAYS, Tabulate("leaf"))
    assert considered(found, "TabulateLeafProducts").why == ("with it, tables would take 46 kB and 46 kB are allowed")


def test_tables_may_be_larger_than_usual(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "TABLE_BYTES", 1000)
    m, rows = simplify(program("tree_lstm", 64).traced), 30 * 64 * 4
    alone = recursion_steps(m, Machine.example(), typical, table_bytes=2 * rows)[0]
    assert alone == (*ALWAYS, Tabulate("leaf", 2 * rows))
    both = recursion_steps(m, Machine.example(), typical, has_examples=True, table_bytes=6 * rows)[0]
    assert both == (*alone, TabulateLeafProducts(6 * rows))


def test_products_of_leaves_that_take_long_to_fill_are_left(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "FILLING_US", 1.0)
    m = simplify(program("tree_fc", 64).traced)
    steps, found = recursion_steps(m, Machine.example(), typical, has_examples=True)
    assert steps == ALWAYS
    assert "s to fill" in considered(found, "TabulateLeafProducts").why


def test_products_of_leaves_are_left_where_other_leaves_may_turn_up(program: Any) -> None:
    """With them, results would change in their last bits."""
    m = simplify(program("tree_lstm", 64).traced)
    asked = ra.Fact(ra.Equals("tag", "word"), True)
    leaf = replace(m.kinds[0], guard=(*m.kinds[0].guard, asked))
    found = recursion_steps(replace(m, kinds=(leaf, *m.kinds[1:])), Machine.example(), typical, has_examples=True)[1]
    assert "a kind of leaves that turns up later would undo it" in considered(found, "TabulateLeafProducts").why


def test_products_of_leaves_are_left_where_few_nodes_are_above_leaves(program: Any) -> None:
    m = simplify(program("gru", 64).traced)
    steps, found = recursion_steps(m, Machine.example(), typical, has_examples=True)
    assert not considered(found, "TabulateLeafProducts").taken
    assert TabulateLeafProducts() not in steps


def test_products_of_leaves_are_left_where_kinds_turn_up_by_their_number_of_children() -> None:
    @cortex.model
    def by_number(node: Any, w: Any) -> Any:
        x = w.emb[node.word]
        for k in range(len(node.children)):
            x = x + w.U[k] @ by_number(node.children[k], w)
        return cortex.tanh(x)

    rng = np.random.default_rng(0)
    weights = {"emb": rng.normal(size=(10, 64)), "U": rng.normal(size=(3, 64, 64))}
    leaf = SimpleNamespace(children=(), word=1)
    fast = cortex.compile(by_number, weights, examples=[SimpleNamespace(children=(leaf, leaf), word=2)])
    assert not any(isinstance(step, TabulateLeafProducts) for step in fast.schedule.steps)
    assert "a request waits for every number of children" in fast.explain()


def test_products_of_leaves_can_be_settled(program: Any) -> None:
    m = simplify(program("gru", 64).traced)
    settled = recursion_steps(m, Machine.example(), typical, leaf_products=True)[0]
    assert TabulateLeafProducts() in settled
    assert TabulateLeafProducts() not in with_examples(program("tree_lstm", 64), leaf_products=False)[0]


def test_choices_are_values_that_print_as_python() -> None:
    assert eval(repr(CHOSEN)) == CHOSEN
    assert hash(eval(repr(CHOSEN))) == hash(CHOSEN)


def test_choices_reach_the_schedule(program: Any) -> None:
    p = program("tree_fc", 64)
    lowered = next(s.func for s in p.stages if s.name == "lowered")
    registers = Registers(32, 16)
    by_default = default_schedule(lowered, registers)
    assert default_schedule(lowered, registers, Choices()) == by_default
    lower = default_schedule(lowered, registers, Choices(tile=TileChoice(2, 3, 1)))
    assert lower != by_default
    nest = next(s.nest for s in by_default if hasattr(s, "nest"))
    assert default_schedule(lowered, registers, Choices(nests=((nest, TileChoice(2, 3, 1)),))) == lower
    assert default_schedule(lowered, registers, Choices(tile=None), lambda _: TileChoice(2, 3, 1)) == lower


def test_the_winner_is_remembered(program: Callable[..., Any], tmp_path: Path) -> None:
    p = program("tree_rnn")
    m, schedule = p.traced, p.stages[-1].schedule
    assert remembered(tmp_path, m, "cpu") is None
    remember(tmp_path, m, "cpu", schedule, {"rounds": 3})
    assert remembered(tmp_path, m, "cpu") == schedule
    assert remembered(tmp_path, m, "another cpu") is None
    assert remembered(tmp_path, program("tree_rnn", 5).traced, "cpu") is None


@pytest.mark.parametrize("text", UNREADABLE)
def test_an_unreadable_file_is_no_winner(text: str, program: Any, tmp_path: Path) -> None:
    m = program("tree_rnn").traced
    remember(tmp_path, m, "cpu", Schedule(ALWAYS), {})
    file_of(tmp_path, m, "cpu").write_text(text)
    assert remembered(tmp_path, m, "cpu") is None


def test_compile_uses_what_tuning_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORTEX_CACHE", str(tmp_path))
    entry = zoo.load("tree_rnn")
    weights, trees = entry.weights(20, 30), entry.structures(Random(0), 2, 30)
    before = cortex.compile(entry.model, weights, examples=trees)
    apart = cortex.compile(entry.model, weights, examples=trees, choices=Choices(fuse=False)).schedule
    remember(tmp_path, before.traced, Target.host().cpu, apart, {})
    after = cortex.compile(entry.model, weights, examples=trees)
    assert after.schedule == apart != before.schedule
    assert (after(trees).h == before(trees).h).all()
    assert after(trees, threads=2).h.tobytes() == before(trees).h.tobytes()


def test_threads_share_columns_of_one_tree_and_trees_of_many(program: Any) -> None:
    p = program("tree_lstm", 64)
    f = next(s.func for s in p.stages if s.name == "lowered")
    one, many = (p.linearize([p.small(Random(i)) for i in range(n)]) for n in (1, 64))
    wide, found = sharing(f, Machine.example(), [one], 2)
    assert wide == "columns"
    assert [c.what for c in found if c.taken] == ["2 threads share columns"]
    assert (considered(found, "2 threads share trees").ratio or 0) > 1.0, "one tree has work for one thread"
    assert sharing(f, Machine.example(), [many], 2)[0] == "trees"


def test_compile_for_threads_says_what_they_share() -> None:
    entry = zoo.load("tree_gru")
    weights, trees = entry.weights(64, 30), entry.structures(Random(0), 3, 30)
    fast = cortex.compile(entry.model, weights, examples=trees, threads=2)
    assert "2 threads share columns: " in fast.explain()
    assert fast(trees).h.tobytes() == fast(trees, threads=1).h.tobytes()


def test_examples_of_very_many_groups_are_not_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = zoo.load("lstm")
    weights, (chain,) = entry.weights(16, 30), entry.structures(Random(0), 1, 30)
    assert "Dedup()" in cortex.compile(entry.model, weights, examples=[chain]).explain()
    monkeypatch.setattr(plan, "MOST_GROUPS", 10)
    fast = cortex.compile(entry.model, weights, examples=[chain])
    assert "Dedup()" not in fast.explain()
    assert "Tabulate(kind='has_prev'" in fast.explain()

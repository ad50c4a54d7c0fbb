"""A saved model computes the same to the bit, without its function, and says what it cannot do."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cortex
from cortex import ModelError, StructureError, zoo
from cortex.codegen.target import Target
from cortex.cost.choose import ALWAYS
from cortex.ilir.show import show
from cortex.recursion.tabulate import Tabulate
from cortex.recursion.tabulate_leaf_products import TabulateLeafProducts
from cortex.saved.read import read
from cortex.schedule.alternate import Alternate, panel_loops
from cortex.schedule.barrier import PlaceBarriers
from cortex.schedule.schedule import Schedule
from cortex.structures import json_trees


def bits(fast: Any, requests: Any, **options: Any) -> list[bytes]:
    out = fast(requests, **options)
    return [a.tobytes() for a in (*out, *out.nodes)]


@pytest.mark.parametrize("name", sorted(zoo.ENTRIES))
def test_same_to_the_bit(name: str, make: Any, trees: Any, again: Any) -> None:
    requests = trees(name)
    fast = make(name, examples=requests, choices=None, recursion=None)
    got = again(fast)
    assert got.compilations == 0
    assert bits(got, requests) == bits(fast, requests)
    assert bits(got, requests[0]) == bits(fast, requests[0])
    assert got.compiled == fast.compiled and got.traced == fast.traced
    assert bits(again(got), requests) == bits(fast, requests)  # a loaded model can be saved


def test_no_compiler_no_torch_in_another_process(make: Any, trees: Any, file: Path) -> None:
    fast = make("tree_lstm", examples=trees("tree_lstm"))
    fast.save(file)
    program = (
        "import sys; from random import Random; import cortex, cortex.compiler; cortex.compiler._generate = None\n"
        f"fast = cortex.load({str(file)!r}); from cortex.structures.generators import *\n"
        "from cortex.zoo.structures import *; from cortex import zoo\n"
        "print(fast(zoo.load('tree_lstm').structures(Random(0), 3, 30)).h.tobytes().hex(), 'torch' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert said == [fast(trees("tree_lstm")).h.tobytes().hex(), "False"]


@pytest.mark.parametrize("threads", [1, 2])
def test_turned_panels(make: Any, trees: Any, again: Any, threads: int) -> None:
    plain, requests = make("lstm", 64, threads=threads), trees("lstm")
    steps = plain.schedule.steps
    at = next((i for i, s in enumerate(steps) if isinstance(s, PlaceBarriers)), len(steps))
    turns = tuple(Alternate(p.var, "g") for p in panel_loops(plain.compiled.func))
    fast = make("lstm", 64, threads=threads, schedule=Schedule((*steps[:at], *turns, *steps[at:])))
    got = again(fast)
    assert turns and got.schedule == fast.schedule != plain.schedule
    assert bits(got, requests) == bits(plain, requests)
    assert got.compiled.func == fast.compiled.func and "down where g is odd" in show(got.compiled.func)
    assert got.compilations == 0


def test_threads(make: Any, trees: Any, again: Any) -> None:
    fast = make("tree_lstm", 32)
    one, two = again(fast), again(make("tree_lstm", 32, threads=2))
    requests = trees("tree_lstm")
    want = bits(fast, requests)
    assert bits(one, requests) == bits(one, requests, threads=2) == want
    assert one.compilations == 1  # for several threads
    assert bits(two, requests) == bits(two, requests, threads=1) == want
    assert two.compilations == 0


def test_products_of_leaves_are_settled(make: Any, trees: Any, again: Any) -> None:
    """Who compiles a loaded model again for more threads has no examples, and gives the same bits."""
    requests = trees("tree_lstm")
    fast = make("tree_lstm", 32, examples=requests, recursion=None, choices=None)
    got = again(fast)
    assert bits(got, requests, threads=2) == bits(got, requests) == bits(fast, requests)
    assert got.compilations == 1
    for each in (fast, got):  # how they batch may differ, which changes no bits
        assert any(isinstance(step, TabulateLeafProducts) for step in each.schedule.steps)


def test_narrow_weights_and_tables(make: Any, trees: Any, again: Any) -> None:
    requests = trees("tree_lstm")
    steps = (*ALWAYS, Tabulate("leaf"))
    for options in ({"weights_dtype": "int16"}, {"recursion": steps}):
        fast = make("tree_lstm", 32, **options)
        got = again(fast)
        assert bits(got, requests) == bits(fast, requests)
        assert got.tables == fast.tables
        assert got.deviation(requests) == fast.deviation(requests)


def test_update(make: Any, trees: Any, again: Any) -> None:
    requests = trees()
    fast = make()
    got = again(fast)
    other = {name: array * 2 for name, array in zoo.load("tree_rnn").weights(8, 30).items()}
    before = bits(got, requests)
    for each in (fast, got):
        each.update({**other, "unused": np.zeros(3)})
    assert bits(got, requests) == bits(fast, requests) != before
    with pytest.raises(ModelError, match="lack"):
        got.update({})


def test_it_explains_itself(make: Any, trees: Any, again: Any) -> None:
    fast = make(choices=None, recursion=None)
    got = again(fast)
    assert got.explain() == fast.explain()
    assert str(got.report(trees())).splitlines()[0].startswith("tree_rnn")
    assert got.schedule == fast.schedule
    assert got.compiled.code.assembly() == fast.compiled.code.assembly()
    want = fast.interpret(trees())
    assert all(np.array_equal(a, want[name]) for name, a in got.interpret(trees()).items())


def test_another_processor_compiles_again(
    make: Any, trees: Any, again: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fast = make("tree_lstm", examples=trees("tree_lstm"))
    lesser = replace(Target.x86("sse2"), triple=Target.host().triple)
    monkeypatch.setattr(Target, "host", lambda: lesser)
    monkeypatch.setattr("cortex.codegen.cpu_flags.flags", lambda: frozenset())
    with caplog.at_level("WARNING", "cortex"):
        got = again(fast)
        assert got.compilations == 1
    assert re.search("'tree_lstm' is compiled again: its code is for .*, which this machine cannot run", caplog.text)
    assert got.compiled.code.target == lesser
    for a, b in zip(got(trees("tree_lstm")), fast(trees("tree_lstm")), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_code_for_a_lesser_processor_is_used(make: Any, trees: Any, again: Any) -> None:
    host = Target.host()
    for level in ("sse2", "avx2"):
        target = replace(Target.x86(level), triple=host.triple)
        if target.runs_here():
            fast = make(target=target)
            got = again(fast)
            assert got.compilations == 0 and got.compiled.code.target == target
            assert bits(got, trees()) == bits(fast, trees())
    assert host.runs_here()


def test_code_of_another_format_is_compiled_again(
    make: Any, trees: Any, again: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fast = make()
    for home in ("loader", "restore"):
        monkeypatch.setattr(f"cortex.{home}.CODE_FORMAT", 1000)
    with caplog.at_level("WARNING", "cortex"):
        got = again(fast)
        assert got.compilations == 1
    assert "compiled again: its code has format" in caplog.text and "uses format 1000" in caplog.text
    assert bits(got, trees()) == bits(fast, trees())


def test_code_that_is_not_trusted_is_not_run(
    make: Any, trees: Any, again: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fast = make("tree_lstm", examples=trees("tree_lstm"), choices=None, recursion=None)
    monkeypatch.setattr("cortex.saved.read._program", None)
    monkeypatch.setattr("cortex.loader.Recorded", None)
    got = again(fast, trust_code=False)
    assert got.compilations == 1 and "compiled again: trust_code=False" in caplog.text
    np.testing.assert_allclose(got(trees("tree_lstm")).h, fast(trees("tree_lstm")).h, atol=1e-5)


def test_bytes_and_open_files(make: Any, trees: Any, file: Path) -> None:
    fast = make("tree_lstm", examples=trees("tree_lstm"))
    fast.save(file)
    content, memory = file.read_bytes(), io.BytesIO()
    fast.save(memory)
    with file.open("rb") as opened:
        loaded = [cortex.load(x) for x in (str(file), content, bytearray(content), memoryview(content), opened)]
    loaded += [cortex.load(io.BytesIO(memory.getvalue()))]
    for each in loaded:
        assert bits(each, trees("tree_lstm")) == bits(fast, trees("tree_lstm"))
    for wrong, said in (
        (3, "give a path, bytes, or a file"),
        (io.StringIO("x"), "gives text"),
        (b"", "no saved model"),
    ):
        with pytest.raises(cortex.ModelError, match=said):
            cortex.load(wrong)
    with pytest.raises(cortex.ModelError, match="give a path, or a file that is open for writing bytes"):
        fast.save(3)


def test_several_processors_and_threads_in_one_file(make: Any, trees: Any, file: Path) -> None:
    fast = make(examples=trees())
    fast.save(file, cpus=["x86-64", "native"], threads=[1, 2])
    saved = read(file)
    assert [(p.target.lanes, p.threads) for p in saved.parts[0].programs][:2] == [(4, 1), (4, 2)]
    for threads in (1, 2):
        loaded = cortex.load(file, threads=threads)
        assert loaded.compilations == 0 and loaded.compiled.code.target == Target.host()
        assert bits(loaded, trees()) == bits(fast, trees())
        assert np.array_equal(loaded(trees(), threads=2)[0], fast(trees())[0])
        assert loaded.compilations <= 1  # the code for two threads is in the file
    with pytest.raises(cortex.ModelError, match="there is no such processor; there are native, x86-64-v3"):
        fast.save(file, cpus=["pentium"])
    assert read(file).parts[0].programs[0].threads == 1  # the file is as it was


def test_the_narrower_code_runs_where_the_wide_one_cannot(
    make: Any, trees: Any, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = make(examples=trees())
    fast.save(file, cpus=["x86-64-v4", "x86-64"])
    monkeypatch.setattr("cortex.codegen.cpu_flags.flags", lambda: frozenset({"sse", "sse2"}))
    monkeypatch.setattr(Target, "host", lambda: Target.x86("sse2"))
    loaded = cortex.load(file)
    np.testing.assert_allclose(loaded(trees())[0], fast(trees())[0], atol=1e-5)
    assert loaded.compilations == 0 and loaded.compiled.code.target.cpu == "x86-64"


@dataclass
class Tree:
    kids: tuple[Tree, ...] = ()
    token: int = 0
    op: str = ""


@cortex.model
def by_kind(node: Any, w: Any) -> Any:
    if node.is_leaf:
        return w.emb[node.word]
    total = cortex.zeros(4)
    for child in node.children:
        total = total + by_kind(child, w)
    return cortex.tanh(total) if node.op == "tanh" else total


WEIGHTS = {"emb": np.arange(40, dtype=np.float32).reshape(10, 4) / 40}
LEAVES = (Tree(token=1), Tree(token=2), Tree(token=3))


def test_names_of_attributes(again: Any) -> None:
    fast = cortex.compile(by_kind, WEIGHTS, children="kids", fields={"word": "token"}, examples=Tree(LEAVES))
    got = again(fast)
    for count in (*range(65), 70, 150, 256, 300):  # arities that nobody has seen
        tree = Tree(tuple(Tree(token=i % 10) for i in range(count)))
        assert bits(got, tree) == bits(fast, tree)


def test_kinds_that_are_not_known(again: Any) -> None:
    @cortex.model
    def by_value(node: Any, w: Any) -> Any:
        if node.is_leaf:
            return w.emb[node.word]
        return w.emb[len(node.op)] + cortex.sum(by_value(k, w) for k in node.children)

    known = Tree(LEAVES, op="a")
    fast = cortex.compile(by_value, WEIGHTS, children="kids", fields={"word": "token"}, examples=known)
    got = again(fast)
    assert bits(got, known) == bits(fast, known)
    with pytest.raises(
        StructureError,
        match=r"at root\.children\[1\], a Tree is .* \(node\.op is 'other', and known is 'a'\).* examples=\[tree",
    ):
        got(Tree((LEAVES[0], Tree(LEAVES, op="other")), op="a"))
    assert bits(got, known) == bits(fast, known)


def test_functions_are_given_again(file: Path) -> None:
    given = {"children": lambda x: x.kids, "fields": {"word": lambda x: x.token}}
    fast = cortex.compile(by_kind, WEIGHTS, examples=Tree(LEAVES), **given)
    fast.save(file)
    with pytest.raises(
        ModelError, match=r"node.children and node.word is, .* children=\.\.\., fields={'word': \.\.\.}"
    ):
        cortex.load(file)
    with pytest.raises(ModelError, match=r"fields={'word': \.\.\.}\)"):
        cortex.load(file, children="kids")
    with pytest.raises(ModelError, match=r"never reads node\.wrod"):
        cortex.load(file, fields={"wrod": "token"})
    assert bits(cortex.load(file, **given), Tree(LEAVES)) == bits(fast, Tree(LEAVES))
    renamed = cortex.load(file, children="kids", fields={"word": "token"})
    assert bits(renamed, Tree(LEAVES)) == bits(fast, Tree(LEAVES))


def test_nothing_to_save_yet(file: Path) -> None:
    @cortex.model
    def with_vectors(node: Any, w: Any) -> Any:
        if node.is_leaf:
            return w.emb[node.word]
        return cortex.tanh(node.vector) + cortex.sum(with_vectors(k, w) for k in node.children)

    fast = cortex.compile(with_vectors, WEIGHTS)
    with pytest.raises(ModelError, match="before any structure"):
        fast.save(file)
    assert not file.exists()


def test_bound_requests_and_forests(make: Any, trees: Any, again: Any) -> None:
    fast = make()
    got = again(fast)
    run = got.bind(trees())
    assert [a.tobytes() for a in run()] == [a.tobytes() for a in fast(trees())]


def test_adapters_are_given_again(file: Path) -> None:
    @cortex.model
    def plan(node: Any, w: Any) -> Any:
        x = w.emb[node.rows] + cortex.sum(plan(k, w) for k in node.children)
        return cortex.tanh(x) if node.op == "Join" else x

    tree = {"op": "Join", "rows": 3, "inputs": [{"op": "Scan", "rows": 1}, {"op": "Scan", "rows": 2}]}
    meaning = {"children": "inputs", "fields": {"op": "op", "rows": "rows"}}
    fast = cortex.compile(plan, WEIGHTS, examples=tree, **json_trees(**meaning))
    fast.save(file)
    with pytest.raises(ModelError, match="functions say what"):
        cortex.load(file)
    assert bits(cortex.load(file, **json_trees(**meaning)), tree) == bits(fast, tree)

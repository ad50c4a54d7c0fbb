"""Object code is found again where nothing that decides it has changed, and only there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cortex
from cortex import compiler, zoo
from cortex.cache import files, key
from cortex.codegen.llvm import host
from cortex.codegen.target import Target
from cortex.cost.choose import ALWAYS
from cortex.cost.machine import Machine
from cortex.cost.tuned import remember
from cortex.options import Options
from cortex.plan import Plan, Wishes
from cortex.recursion.tabulate import Tabulate
from cortex.runtime import measure_machine
from cortex.runtime.signature import Signature
from cortex.schedule.alternate import Alternate
from cortex.schedule.default import DEFAULT, Choices
from cortex.schedule.schedule import Schedule

PROGRAM = """
import sys
from random import Random
import cortex
from cortex import compiler, zoo
from cortex.cost.choose import ALWAYS
from cortex.schedule.default import DEFAULT
if "warm" in sys.argv:
    compiler.stages = None
entry = zoo.load("tree_lstm")
fast = cortex.compile(entry.model, entry.weights(16, 30), choices=DEFAULT, recursion=ALWAYS)
print(fast(entry.structures(Random(0), 3, 30)).h.tobytes().hex())
"""


@pytest.mark.parametrize("name", sorted(zoo.ENTRIES))
def test_warm_equals_cold(name: str, kept: Any, make: Any, trees: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = trees(name)
    options = {"examples": requests, "choices": None, "recursion": None}
    cold = make(name, **options)
    cold(requests)
    compiled = kept.compiled
    monkeypatch.setattr(compiler, "stages", None)  # nothing may ask for a stage
    warm = make(name, **options)
    assert [a.tobytes() for a in states(warm, requests)] == [a.tobytes() for a in states(cold, requests)]
    assert kept.compiled == compiled == len(kept.files) > 0
    monkeypatch.undo()
    for a, b in ((warm.compiled, cold.compiled), *zip(warm.compiled.tables, cold.compiled.tables, strict=True)):
        assert (a.model, a.schedule, a.considered, a.signature) == (b.model, b.schedule, b.considered, b.signature)
        assert a.code == b.code and a.func == b.func and a.code.text == b.code.text
        assert Signature.of(a.func) == a.signature
    assert warm.explain() == cold.explain()


def states(fast: Any, requests: list[Any]) -> list[Any]:
    out = fast(requests)
    return [value for name in fast.compiled.model.outputs for value in (out[name.name], out.nodes[name.name])]


def test_on_two_threads(kept: Any, make: Any, trees: Any) -> None:
    cold, warm = (make("tree_gru", 64, threads=2) for _ in range(2))
    assert kept.compiled == 1
    assert warm._require().shared_out
    assert warm(trees("tree_gru")).h.tobytes() == cold(trees("tree_gru")).h.tobytes()
    assert warm.compiled.func == cold.compiled.func


def test_turned_panels(kept: Any, make: Any, trees: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether panels are turned depends on the machine, which is in the key; the schedule that is kept says so."""

    def made(l2: int) -> Any:
        machine = replace(Machine.example(), l2=l2, reads=((l2 // 2, 100.0), (l2, 20.0)))
        monkeypatch.setattr(measure_machine, "here", lambda: machine)
        return make("lstm", 64, examples=trees("lstm"), choices=None)

    cold, warm, other = made(1 << 16), made(1 << 16), made(1 << 20)
    assert kept.compiled == len(kept.files) == 2
    assert [any(isinstance(s, Alternate) for s in fast.schedule) for fast in (cold, warm, other)] == [True, True, False]
    assert warm.schedule == cold.schedule and warm.compiled.func == cold.compiled.func
    assert states(warm, trees("lstm"))[0].tobytes() == states(other, trees("lstm"))[0].tobytes()


def test_programs_that_fill_tables_are_kept_too(kept: Any, make: Any, trees: Any) -> None:
    steps = (*ALWAYS, Tabulate("leaf"))
    cold, warm = (make("tree_lstm", recursion=steps) for _ in range(2))
    assert kept.compiled == len(kept.files) == 2
    assert warm.tables == cold.tables != {}
    assert warm(trees("tree_lstm")).h.tobytes() == cold(trees("tree_lstm")).h.tobytes()


OTHERS: dict[str, Callable[[], dict[str, Any]]] = {
    "shapes of weights": lambda: {"hidden": 9},
    "model": lambda: {"name": "tree_fc"},
    "target": lambda: {"target": Target.x86("sse2")},
    "features": lambda: {"target": replace(Target.host(), features=Target.host().features + ",-bmi2")},
    "choices": lambda: {"choices": Choices(fuse=False)},
    "recursion": lambda: {"recursion": ()},
    "schedule": lambda: {"schedule": Schedule(ALWAYS)},
    "threads": lambda: {"threads": 2},
}


@pytest.mark.parametrize("ingredient", OTHERS)
def test_another_ingredient_is_another_key(ingredient: str, kept: Any, make: Any) -> None:
    make()
    make(**OTHERS[ingredient]())
    assert kept.compiled == len(kept.files) == 2


def test_weights_of_other_values_share_code(kept: Any, make: Any) -> None:
    entry = zoo.load("tree_rnn")
    for seed in range(2):
        cortex.compile(entry.model, entry.weights(8, 30, seed), choices=DEFAULT, recursion=())
    assert kept.compiled == 1


def ingredients(m: Any, *, examples: Any = None, trace: Any = None, **options: Any) -> tuple[str, ...]:
    wishes = Wishes(trace, examples, options.pop("table_bytes", 1 << 20))
    return Plan(Target.host(), None, None, wishes=wishes, **options).ingredients(m)


def test_what_the_scheduler_looks_at_is_in_the_key(
    kept: Any, make: Any, trees: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = make(examples=trees())
    m, trace = fast.traced, fast._trace
    found = [
        ingredients(m),
        ingredients(m, table_bytes=1 << 10),
        ingredients(m, examples=trees(), trace=trace),
        ingredients(m, examples=trees()[:1], trace=trace),
        ingredients(m, examples=trees(seed=1), trace=trace),
    ]
    assert ingredients(m, examples=trees(), trace=trace) == found[2], "equal structures, other objects"
    slower = replace(measure_machine.here(), fma=1.0)
    with monkeypatch.context() as other:
        other.setattr(measure_machine, "here", lambda: slower)
        found.append(ingredients(m))
    with monkeypatch.context() as other:
        other.setenv("CORTEX_VERIFY", "0")
        found.append(ingredients(m))
    remember(Options.from_environment().cache, m, Target.host().cpu, fast.schedule, {})
    found.append(ingredients(m))
    assert len(set(found)) == len(found)


def test_another_compiler_is_another_key(kept: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make()
    monkeypatch.setattr(key, "COMPILER", "edited")
    make()
    monkeypatch.setattr(host, "llvm_version", lambda: "another")
    make()
    assert kept.compiled == len(kept.files) == 3


def test_any_edit_is_another_compiler(tmp_path: Path) -> None:
    (tmp_path / "passes").mkdir()
    file = tmp_path / "passes" / "one.py"
    file.write_text("x = 1\n")
    found = [key.files(tmp_path)]
    file.write_text("x = 12\n")
    found.append(key.files(tmp_path))
    os.utime(file, ns=(1, 1))  # as long as before, but written at another time
    found.append(key.files(tmp_path))
    file.rename(tmp_path / "passes" / "two.py")
    found.append(key.files(tmp_path))
    (tmp_path / "three.py").write_text("")
    found.append(key.files(tmp_path))
    assert len(set(found)) == 5
    assert "\nnative " in found[0] or found[0].startswith("native ")


def test_texts_cannot_run_into_each_other() -> None:
    assert key.key_of(["ab", "c"]) != key.key_of(["a", "bc"]) != key.key_of(["abc"])


def test_switched_off(kept: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORTEX_CACHE", "")
    monkeypatch.setattr(files, "write", None)
    monkeypatch.setattr(files, "read", None)
    assert Options.from_environment().code is None
    make(), make()
    assert kept.compiled == 2


def test_a_folder_that_cannot_be_made_is_no_error(kept: Any, make: Any, trees: Any, tmp_path: Path) -> None:
    kept.folder.write_text("a file where the folder should be")
    assert make()(trees()).h.shape == make()(trees()).h.shape
    assert kept.compiled == 2


def test_a_value_without_a_written_form_is_not_kept(kept: Any) -> None:
    @cortex.model
    def f(node: Any) -> Any:
        return cortex.zeros(4) if node.word == 10**5000 else cortex.ones(4)

    class Node:
        word, children = 1, ()

    fast = cortex.compile(f, examples=[Node()], choices=DEFAULT, recursion=())
    assert fast(Node()).out.tolist() == [1.0] * 4
    assert kept.files == []


def test_processes_at_once(kept: Any) -> None:
    def start(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    first = [start() for _ in range(3)]
    answers = [process.communicate()[0] for process in first]
    later = start("warm").communicate()
    assert [process.returncode for process in first] == [0, 0, 0]
    assert {*answers, later[0]} == {answers[0]} and answers[0].strip(), later[1]
    assert [f.name for f in kept.folder.iterdir()] == [f.name for f in kept.files] and len(kept.files) == 1

"""The format of compiled code has a version, which is raised when what code and its callers agree on changes.

For each version, `files/` has the interface as text and a file that was saved by it, with its numbers. A change of the
interface fails here: raise `CODE_FORMAT` in runtime/code_format.py, run with --update-golden, and remove the files of
versions that are used no more.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex
from cortex.codegen.linker import links_here
from cortex.codegen.llvm.module import module_text
from cortex.codegen.target import Target
from cortex.cost.choose import ALWAYS
from cortex.runtime.code_format import CODE_FORMAT
from cortex.saved.container import unpack
from cortex.schedule.default import Choices

FILES = Path(__file__).parent / "files"
CPUS = ["x86-64", "x86-64-v3"]


def Node(word: int, *children: Any, cost: float = 1.0) -> Any:
    return SimpleNamespace(word=word, children=list(children), left=children[0] if children else None, cost=cost)


@cortex.model
def tree(node: Any, w: Any) -> Any:
    """Lists, slots, fields of both types, kinds by comparisons, a table and derived weights."""
    if not node.children:
        return cortex.state(h=cortex.tanh(w.W @ w.emb[node.word]), c=w.emb[node.word] * 0.5)
    below = cortex.sum(tree(k, w).h for k in node.children)
    scaled = below * node.cost if node.cost > 2 else below
    return cortex.state(h=cortex.tanh(w.U @ scaled + w.b), c=tree(node.left, w).c + cortex.max(tree(node.left, w).h))


def weights() -> dict[str, Any]:
    """Small numbers that every machine adds exactly."""
    some = np.arange(-60, 60, dtype=np.float32) / 64
    return {
        "W": some[:25].reshape(5, 5),
        "U": some[50:75].reshape(5, 5),
        "b": some[:5],
        "emb": some[:60].reshape(12, 5),
    }


TREES = [
    Node(0, Node(1), Node(2, Node(3), Node(4), Node(5), cost=3.0), cost=0.5),
    Node(6),
    Node(7, Node(8, Node(9, Node(10))), cost=2.5),
]


def saved() -> bytes:
    target = Target.x86("sse2")
    options: dict[str, Any] = {"examples": TREES, "target": target, "recursion": ALWAYS, "choices": Choices()}
    fast = cortex.compile(tree, weights(), **options, check=False)
    file = io.BytesIO()
    fast.save(file, cpus=CPUS, threads=[1, 2])
    return file.getvalue()


def interface(content: bytes) -> str:
    """What code is given and what its linearizer is told: records without code, functions, the linear form."""
    head, sections, _ = unpack(content, "it")
    lines = [f"head {sorted(head)}"]
    for *machine, threads, number in head["records"]:
        record = json.loads(bytes(sections[number]))
        lines += ["", f"{machine[0]}, {machine[-1]} lanes, {threads} threads", *_lines(record)]
    fast = cortex.compile(tree, weights(), examples=TREES, target=Target.x86("sse2"), choices=Choices(), check=False)
    lines += [
        "",
        *(line for line in module_text(fast.compiled.func, Target.x86("sse2")).split("\n") if "define" in line),
    ]
    form = fast.linearize(TREES)
    lines += ["", *(f"{name} = {value}" for name, value in form.sizes.items())]
    lines += [f"{name} = {np.asarray(array).tolist()}" for name, array in form.arrays.items()]
    return "\n".join([*lines, *(f"{name} = {np.asarray(array).tolist()}" for name, array in form.fields.items())])


def _lines(record: dict[str, Any], indent: str = "") -> list[str]:
    lines = []
    for name, value in record.items():
        if name == "arrays":
            lines += [f"{indent}  {x[:1] + x[2:] if x[0] == 'weight' else x}" for x in value]
        elif name == "tables":
            for *form, inner in value:
                lines += [f"{indent}  table {form}", *_lines(inner, indent + "    ")]
        elif name == "spec":
            lines += [f"{indent}  {key} = {json.dumps(x)}" for key, x in value["dict"]]
        elif name != "code":
            lines.append(f"{indent}{name} {json.dumps(value)}")
    return lines


@pytest.mark.skipif(not links_here(), reason="the files are for x86-64 on Linux")
def test_the_interface_is_that_of_the_version(request: pytest.FixtureRequest) -> None:
    content = saved()
    text = interface(content) + "\n"
    path = FILES / f"interface_{CODE_FORMAT}.txt"
    if request.config.getoption("--update-golden") and not path.exists():
        FILES.mkdir(exist_ok=True)
        path.write_text(text)
        (FILES / f"model_{CODE_FORMAT}.cortex").write_bytes(content)
        out = cortex.load(content)(TREES)
        np.savez(FILES / f"numbers_{CODE_FORMAT}.npz", h=out.h, c=out.c, nodes=out.nodes.h)
    assert path.read_text() == text, "raise CODE_FORMAT: the interface of compiled code has changed"


@pytest.mark.skipif(not links_here(), reason="the files are for x86-64 on Linux")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("flags", ["sse2", "avx2"])
def test_code_of_this_version_still_gives_its_numbers(
    flags: str, threads: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The code in the file, which was compiled when the version began, by the runtime of now."""
    if flags == "sse2":
        monkeypatch.setattr("cortex.codegen.cpu_flags.flags", lambda: frozenset({"sse", "sse2"}))
    monkeypatch.setattr("cortex.restore.build", None)
    loaded = cortex.load(FILES / f"model_{CODE_FORMAT}.cortex", threads=threads)
    with np.load(FILES / f"numbers_{CODE_FORMAT}.npz") as want:
        for _ in range(2):  # by the record, then by all of the model
            out = loaded(TREES)
            np.testing.assert_allclose(out.h, want["h"], atol=1e-6)
            np.testing.assert_allclose(out.c, want["c"], atol=1e-6)
            np.testing.assert_allclose(out.nodes.h, want["nodes"], atol=1e-6)
            assert loaded.compilations == 0 and not caplog.records
            np.testing.assert_allclose(loaded.interpret(TREES)["h"], want["nodes"], atol=1e-6)

"""Targets "opencl" and "cuda" as users meet them: compile, call, report, the command line, and what is refused."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import cortex
from cortex import zoo
from cortex.cli.main import main
from cortex.errors import ModelError
from cortex.runtime import opencl
from cortex.runtime.device_report import DeviceReport
from cortex.schedule.default import Choices

ENTRY = zoo.load("tree_rnn")
WEIGHTS, TREES = ENTRY.weights(8, 20), ENTRY.structures(Random(0), 3, 20)


def compiled(target: Any, **more: Any) -> Any:
    return cortex.compile(ENTRY.model, WEIGHTS, examples=TREES, target=target, **more)


@pytest.fixture(scope="module")
def fast() -> Any:
    return compiled("opencl")


def test_calls(fast: Any) -> None:
    want = cortex.compile(ENTRY.model, WEIGHTS, examples=TREES)(TREES)
    got = fast(TREES)
    np.testing.assert_allclose(got.h, want.h, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(got.nodes.h, want.nodes.h, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(fast(TREES[0]).h, want.h[0], rtol=1e-5, atol=1e-5)
    out = np.zeros((3, 8), np.float32)
    fast(TREES, out=out)
    np.testing.assert_array_equal(out, got.h)
    assert fast([]).h.shape == (0, 8) and fast([]).nodes.h.shape == (0, 8)


def test_other_weights(fast: Any) -> None:
    other = ENTRY.weights(8, 20, seed=1)
    before = fast(TREES).h
    try:
        fast.update(other)
        np.testing.assert_allclose(
            fast(TREES).h, cortex.compile(ENTRY.model, other, examples=TREES)(TREES).h, rtol=1e-5, atol=1e-5
        )
    finally:
        fast.update(WEIGHTS)
    np.testing.assert_array_equal(fast(TREES).h, before)


def test_calls_from_several_threads(fast: Any) -> None:
    want = [fast(t).h for t in TREES]
    with ThreadPoolExecutor(3) as pool:
        got = list(pool.map(lambda n: fast(TREES[n % 3]).h, range(30)))
    for n, value in enumerate(got):
        np.testing.assert_array_equal(value, want[n % 3])


def test_report(fast: Any) -> None:
    report = fast.report(TREES)
    assert isinstance(report, DeviceReport)
    assert report.launches == 1 and report.structures == 3 and report.copied > 0
    assert "1 launches" in str(report) and "one kernel for all levels" in str(report)
    entry = zoo.load("tree_fc")  # its products read what other work-groups have computed
    trees, target = entry.structures(Random(0), 2, 20), cortex.gpu_target("opencl", persistent=False, groups=2)
    levels = cortex.compile(entry.model, entry.weights(16, 20), examples=trees, target=target).report(trees)
    assert levels.launches == levels.groups and "one kernel per level" in str(levels)


def test_explain(fast: Any) -> None:
    assert "1 launches, 0 barriers" in compiled(cortex.gpu_target("opencl", groups=1)).explain(TREES)
    assert fast.explain().count("launches") == 2  # a typical structure, and ten


def test_the_source_is_there(fast: Any) -> None:
    assert "__kernel" in fast.source and "target triple" in cortex.compile(ENTRY.model, WEIGHTS, examples=TREES).source


def refusal(call: Any) -> str:
    with pytest.raises(ModelError) as caught:
        call()
    return str(caught.value)


def test_what_is_for_processors(fast: Any, tmp_path: Path) -> None:
    assert "threads is for processors" in refusal(lambda: compiled("opencl", threads=2))
    assert "choices is for processors" in refusal(lambda: compiled("opencl", choices=Choices()))
    assert "weights_dtype is for processors" in refusal(lambda: compiled("opencl", weights_dtype="int8"))
    assert "tree_rnn runs on a device; leave it out" in refusal(lambda: fast(TREES, threads=2))
    assert "needs object code for a processor" in refusal(lambda: cortex.export(fast, tmp_path))
    assert "leave out `target`" in refusal(lambda: fast.bind(TREES))


def test_saved_models_are_compiled_for_the_device_when_they_are_loaded(fast: Any, tmp_path: Path) -> None:
    file = tmp_path / "model"
    fast.save(file)
    loaded = cortex.load(file)
    assert loaded.source == fast.source
    np.testing.assert_array_equal(loaded(TREES).h, fast(TREES).h)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == file.read_bytes()
    shown = CliRunner().invoke(main, ["inspect", str(file)])
    assert f"code       for {cortex.gpu_target('opencl')}, compiled when it is loaded" in shown.output
    assert "threads is for processors" in refusal(lambda: cortex.load(file, threads=2))


def test_a_model_for_a_device_that_is_not_here_is_loaded(tmp_path: Path) -> None:
    compiled("cuda", cpu="sm_80").save(tmp_path / "model")
    loaded = cortex.load(tmp_path / "model")
    assert "__global__" in loaded.source
    assert "tree_rnn was compiled for cuda (sm_80)" in refusal(lambda: loaded(TREES))


def test_targets_that_are_not_there() -> None:
    assert "there are x86-64-linux-gnu, aarch64-linux-gnu, opencl, cuda" in refusal(lambda: compiled("vulkan"))
    assert "there are opencl, cuda" in refusal(lambda: cortex.gpu_target("vulkan"))
    assert "an OpenCL device called 'abacus' was asked for" in refusal(lambda: compiled("opencl", cpu="abacus"))
    assert "at least one work-group" in refusal(lambda: cortex.gpu_target("opencl", groups=0))
    target = cortex.gpu_target("opencl")
    assert "the target has a processor already" in refusal(lambda: compiled(target, cpu="abacus"))
    if opencl.find_device().is_processor:
        assert "wait for each other; give no more" in refusal(lambda: cortex.gpu_target("opencl", groups=1000))


def test_without_pyopencl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    assert refusal(lambda: compiled("opencl")).endswith("pip install 'cortex-recursive[opencl]'.")


def test_pocl_without_a_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    """PoCL would end the process."""
    if opencl.find_device().name.endswith(f"({opencl.POCL})"):
        monkeypatch.setenv("PATH", "")
        new = ENTRY.weights(9, 20)  # nothing that was built before
        said = refusal(lambda: cortex.compile(ENTRY.model, new, examples=TREES, target="opencl"))
        assert said.endswith("PoCL links kernels with `ld`, which is not installed: install binutils.")


def test_without_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl, "devices", list)
    assert "there is no OpenCL device here, and PoCL is not installed: pip" in refusal(lambda: compiled("opencl"))


def test_cortex_targets() -> None:
    text = CliRunner().invoke(main, ["targets"], catch_exceptions=False).output
    assert "opencl: kernels; called from Python here" in text and "cuda: kernels;" in text and "NVRTC 12" in text
    listed = json.loads(CliRunner().invoke(main, ["targets", "--json", "-"], catch_exceptions=False).stdout)
    assert [each["target"] for each in listed][-2:] == ["opencl", "cuda"] and listed[-2]["devices"]


def test_cortex_targets_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    text = CliRunner().invoke(main, ["targets"], catch_exceptions=False).output
    assert "opencl: kernels; not called from Python here" in text and "[opencl]'" in text


def test_cortex_explain_shows_kernels() -> None:
    def run(*arguments: str) -> Any:
        return CliRunner().invoke(main, ["explain", "tree_rnn", *arguments])

    assert "__global__" in run("--target", "cuda", "--cpu", "sm_80", "--stage", "kernels").output
    assert "__kernel" in run("--target", "opencl", "--stage", "kernels").output
    assert "Items(" in run("--target", "opencl", "--stage", "schedule").output
    assert "there are no kernels for" in run("--stage", "kernels").output
    assert "there are no llvm for cuda" in run("--target", "cuda", "--stage", "llvm").output

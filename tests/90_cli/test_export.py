"""`cortex export` and `cortex targets`."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from cortex.cli.main import main
from cortex.codegen.gpu.program import DIALECTS
from cortex.codegen.target import CPUS, Target


def test_export_writes_a_package(tmp_path: Path) -> None:
    to = tmp_path / "package"
    command = ["export", "tree_fc", "--target", "aarch64-linux-gnu", "--cpu", "neoverse-v2", "--hidden", "8"]
    result = CliRunner().invoke(main, [*command, "-o", str(to)])
    assert result.exit_code == 0, result.output
    assert "for aarch64-unknown-linux-gnu (neoverse-v2)" in result.output
    assert {"tree_fc.h", "tree_fc.c", "tree_fc.o", "tree_fc.safetensors"} <= {file.name for file in to.iterdir()}
    assert (to / "tree_fc.o").read_bytes()[:4] == b"\x7fELF"


def test_a_model_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import cortex\n"
        "from cortex.structures.tree import Node\n"
        "@cortex.model\n"
        "def encode(node):\n"
        "    if node.is_leaf:\n"
        "        return cortex.ones(4)\n"
        "    return cortex.sum(encode(k) for k in node.children)\n"
        "examples = [Node((Node(),))]\n"
    )
    command = ["export", f"{file}:encode", "--examples", "examples", "--name", "class", "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "class_.h").exists()


def test_unknown_target_is_told_without_a_traceback(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["export", "tree_fc", "--target", "m68k", "-o", str(tmp_path)])
    assert result.exit_code == 1
    assert result.output.startswith("ModelError: target='m68k': there is no such target")


def test_targets_are_listed() -> None:
    result = CliRunner().invoke(main, ["targets", "--json", "-"])
    assert result.exit_code == 0, result.output
    found = {entry["target"]: entry for entry in json.loads(result.stdout)}
    assert set(found) == {*CPUS, *DIALECTS}
    for name in CPUS:
        entry = found[name]
        names = [cpu["cpu"] for cpu in entry["cpus"]]
        assert set(CPUS[name]) <= set(names)
        assert ("native" in names) == (next(iter(CPUS[name].values())).architecture == Target.host().architecture)
        assert all(cpu["runs_here"] for cpu in entry["cpus"] if cpu["cpu"] == "native")

"""The programs of the tutorial run, and the README shows the one that is tested."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem.startswith(("from_pytorch", "train_")):
        pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(path.parent))
    monkeypatch.setattr(sys, "argv", [str(path), *(["made-up"] if path.stem.startswith("train_") else [])])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed
    assert "False" not in printed
    assert "nan" not in printed


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_shown_model_is_the_tested_one(page: str) -> None:
    def model(text: str) -> str:
        found = re.search(r"@cortex\.model\ndef tree_lstm.*?c=c\)\n", text, re.DOTALL)
        assert found
        return re.sub(r"\s+", "", found.group())

    example = (ROOT / "examples" / "tree_lstm.py").read_text(encoding="utf-8")
    assert model((ROOT / page).read_text(encoding="utf-8")) == model(example)


def test_programs_of_the_readme_run_in_an_empty_folder(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    for number, block in enumerate(blocks):
        program = tmp_path / f"block{number}" / "program.py"
        program.parent.mkdir()
        program.write_text(block)
        done = subprocess.run([sys.executable, program.name], cwd=program.parent, capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, done.stderr
        assert done.stdout and "False" not in done.stdout


def test_stories_show_what_is_tested() -> None:
    page = (ROOT / "docs" / "from-pytorch.md").read_text(encoding="utf-8")
    stories = re.split(r"`examples/(from_pytorch_\w+\.py)`", page)
    assert len(stories) == 2 * 5 + 1
    for name, text in zip(stories[1::2], stories[2::2], strict=True):
        program = re.sub(r"\s+", "", (ROOT / "examples" / name).read_text(encoding="utf-8"))
        blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        assert len(blocks) == 2
        for block in blocks:
            assert re.sub(r"\s+", "", block) in program


def test_links_between_pages() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\((?!http)([^)#]+)", text):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_tables_have_a_rule_for_every_column() -> None:
    """Without one, a table is shown as text."""
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        lines = page.read_text(encoding="utf-8").splitlines()
        for above, rule in pairwise(lines):
            if re.fullmatch(r"\|( *:?-+:? *\|)+", rule):
                columns = re.sub(r"`[^`]*`", "", above).count("|")
                assert columns == rule.count("|"), f"{page.name}: {above}"

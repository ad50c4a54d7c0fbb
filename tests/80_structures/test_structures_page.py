"""docs/structures.md: every section runs, and prints what it says it prints. Adapters import no package."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "structures.md").read_text(encoding="utf-8")
TITLES = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
START, *SECTIONS = [
    "\n".join(re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL))
    for section in re.split(r"^## .*$", PAGE, flags=re.MULTILINE)
]
CODE = {title: code for title, code in zip(TITLES, SECTIONS, strict=True) if code}


@pytest.mark.parametrize("title", CODE)
def test_a_section_prints_what_it_says(title: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the package while it is imported
        if title == "spaCy":
            pytest.importorskip("spacy")
    if title == "PyTorch Geometric":
        request.getfixturevalue("torch_geometric")
    # A file, because a model's source is read when it is compiled.
    path = tmp_path / "section.py"
    path.write_text(START + CODE[title], encoding="utf-8")
    names: dict[str, Any] = {"__name__": "section"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    said = re.findall(r"^ *print\(.*\)  # (.*)$", CODE[title], re.MULTILINE)
    assert said
    assert printed.getvalue().splitlines() == said


def test_every_adapter_is_on_the_page() -> None:
    from cortex import structures

    missing = [name for name in structures.__all__ if name not in PAGE]
    assert missing == ["read_aiger", "read_listops"]


def test_no_adapter_imports_a_package() -> None:
    program = (
        "import sys, cortex.structures as s; [getattr(s, n) for n in s.__all__]; "
        "print(*{m.split('.')[0] for m in sys.modules})"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not set(loaded) & {"conllu", "dgl", "lark", "networkx", "nltk", "spacy", "torch", "tree_sitter"}
    assert "numpy" in loaded

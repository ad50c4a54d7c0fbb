"""The page of a report: self-contained, well-formed, with everything it promises."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from cortex import zoo
from cortex.cli.main import main
from cortex.lower.linear_form import LinearForm
from cortex.runtime.linearize import linearize
from cortex.runtime.report_page import outline, page
from cortex.runtime.tree_drawing import MOST_NODES, draw

VOID = {"meta", "rect", "path", "circle"}


class Nesting(HTMLParser):
    """Checks that tags close in the order they open, and collects what points elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [f"{tag} {name}={value}" for name, value in attrs if name in ("src", "href", "srcset", "action")]
        if tag not in VOID or (tag in ("rect", "circle") and not self.get_starttag_text().endswith("/>")):  # type: ignore[union-attr]
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()


def check(text: str) -> None:
    parser = Nesting()
    parser.feed(text)
    assert not parser.open and not parser.links
    assert not re.search(r"https?://|url\(|@import", text)


def test_page(fast: Any, trees: list[Any]) -> None:
    text = page(fast.report(trees), fast.linearize(trees), fast.compiled.func)
    check(text)
    assert "$" not in re.sub(r"<script>.*?</script>", "", text, flags=re.S)
    for heading in ("Timeline", "Phases", "Structure, by levels and groups", "Groups", "Schedule", "Loop nest"):
        assert heading in text
    form = fast.linearize(trees)
    assert text.count("<circle") == form.sizes["num_nodes"]
    assert text.count('class="edge"') == form.sizes["num_nodes"] - 3
    assert text.count('class="span"') == form.sizes["num_groups"]
    assert "prefers-color-scheme: dark" in text and "width=device-width" in text
    assert "Vectorize(loop=&#x27;" in text


def test_outline_is_short(fast: Any) -> None:
    assert "for g in 0..num_groups:" in outline(fast.compiled.func)
    assert not re.search(r"let m\d", outline(fast.compiled.func))


@pytest.mark.parametrize("name", ["dag_rnn", "lstm", "tree_lstm_words"])
def test_every_kind_of_structure_is_drawn(name: str) -> None:
    entry = zoo.load(name)
    form, kinds = linear_form(name, entry.structures(Random(0), 1, 50))
    text = draw(form, kinds)
    check(text)
    assert text.count("<circle") == form.sizes["num_nodes"]


def test_large_requests_are_drawn_in_part() -> None:
    form, kinds = linear_form("tree_rnn", zoo.load("tree_rnn").structures(Random(0), 40, 50))
    text = draw(form, kinds)
    drawn = text.count("<circle")
    assert MOST_NODES / 2 < drawn <= MOST_NODES < form.sizes["num_nodes"]
    assert f"{drawn} of {form.sizes['num_nodes']} nodes are drawn" in text


def linear_form(name: str, structures: list[Any]) -> tuple[LinearForm, list[str]]:
    from cortex.frontend.trace import Trace
    from cortex.frontend.weights import Weights

    entry = zoo.load(name)
    trace = Trace(entry.model, Weights(entry.weights(8, 50)))
    trace.see(structures)
    return linearize(trace.model(), structures), [k.name for k in trace.model().kinds]


def test_command_writes_a_page(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    result = CliRunner().invoke(main, ["report", "tree_rnn", "2", "--hidden", "16", "-o", str(file)])
    assert result.exit_code == 0, result.output
    check(file.read_text())


def test_command_reads_trees_in_brackets(tmp_path: Path) -> None:
    trees = tmp_path / "trees.txt"
    trees.write_text("(3 (2 It) (4 (2 works) (2 .)))\n(1 (1 Not) (1 this))\n")
    result = CliRunner().invoke(main, ["report", "tree_rnn", str(trees), "--hidden", "16"])
    assert result.exit_code == 0, result.output
    assert "2 structures, 8 nodes (5 leaf, 3 inner) in 3 groups" in result.output


def test_command_refuses_what_is_no_trees() -> None:
    result = CliRunner().invoke(main, ["report", "tree_rnn", "nowhere.txt"])
    assert result.exit_code == 2
    assert "'nowhere.txt' is neither a number of structures to generate nor a file of trees" in result.output

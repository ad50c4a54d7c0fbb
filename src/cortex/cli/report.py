"""`cortex report`: one page about a request: its structure, what ran when, and why it took that long."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import click

from cortex.cli.explain import VOCABULARY, subject_of

MOST_TREES = 20


@click.command()
@click.argument("model")
@click.argument("trees")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write an HTML page here.  [default: print text]")
@click.option("--weights", type=click.Path(path_type=Path), help="Weights of FILE.py:FUNCTION (.npz, .safetensors).")
@click.option("--hidden", type=click.IntRange(min=1), default=256, show_default=True, help="Hidden size, zoo models.")
@click.option("--threads", type=click.IntRange(1, 64), default=1, show_default=True, help="Threads to run on.")
def command(model: str, trees: str, output: Path | None, weights: Path | None, hidden: int, threads: int) -> None:
    """Report on running MODEL on TREES.

    MODEL is the name of a model of the zoo or FILE.py:FUNCTION. TREES is, for a model of the zoo, a number of
    structures to generate or a file of trees in brackets (Penn Treebank; the first 20 are used); for FILE.py:FUNCTION,
    the name of a list of structures in that file.
    """
    import cortex

    in_file = ":" in model
    function, its_weights, structures = subject_of(model, weights, trees if in_file else None, hidden)
    if not in_file:
        structures = _trees(model, trees)
    fast = cortex.compile(function, its_weights, examples=structures, threads=threads)
    report = fast.report(list(structures))
    if output is None:
        click.echo(str(report))
        return
    from cortex.runtime.report_page import page

    output.write_text(page(report, fast.linearize(list(structures)), fast.compiled.func), encoding="utf-8")
    click.echo(f"{output}: {report.nodes} nodes, {report.call_us:.0f} us a call")


def _trees(model: str, trees: str) -> list[Any]:
    """Structures for a model of the zoo."""
    from cortex import zoo
    from cortex.structures.ptb import read_ptb

    entry = zoo.load(model)
    if trees.isdigit() and int(trees) > 0:
        return entry.structures(Random(0), int(trees), VOCABULARY)
    if not Path(trees).is_file():
        raise click.BadParameter(
            f"{trees!r} is neither a number of structures to generate nor a file of trees", param_hint="TREES"
        )
    binary = hasattr(entry.structures(Random(0), 1, VOCABULARY)[0], "left")
    words = _hashed(VOCABULARY)
    return (read_ptb(Path(trees), words=words, binary=True) if binary else read_ptb(Path(trees), words=words))[
        :MOST_TREES
    ]


def _hashed(limit: int) -> Any:
    """Word ids below `limit`, the same in every process."""
    from zlib import crc32

    return lambda word: crc32(word.encode()) % limit

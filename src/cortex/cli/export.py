"""`cortex export`: write a model as a C package."""

from __future__ import annotations

from pathlib import Path

import click

from cortex.cli.explain import subject_of


@click.command()
@click.argument("model")
@click.option("--target", metavar="NAME", help="x86-64-linux-gnu or aarch64-linux-gnu.  [default: this machine]")
@click.option("--cpu", metavar="NAME", help="Processor, as neoverse-n1, or native; `cortex targets` lists them.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), required=True, help="Directory to write to."
)
@click.option("--name", help="What its functions begin with.  [default: the model's name]")
@click.option("--weights", type=click.Path(path_type=Path), help="Weights of FILE.py:FUNCTION (.npz, .safetensors).")
@click.option("--examples", metavar="NAME", help="List of structures in FILE.py, to find the kinds of nodes from.")
@click.option("--hidden", type=click.IntRange(min=1), default=256, show_default=True, help="Hidden size, zoo models.")
@click.option("--threads", type=click.IntRange(1, 64), default=1, show_default=True, help="Threads to compile for.")
def command(
    model: str,
    target: str | None,
    cpu: str | None,
    output: Path,
    name: str | None,
    weights: Path | None,
    examples: str | None,
    hidden: int,
    threads: int,
) -> None:
    """Write MODEL as a package that C and C++ programs use, with no Python.

    MODEL is the name of a model of the zoo or FILE.py:FUNCTION. The package has object code, a header, packed weights
    and a small runtime in C11 that needs pthreads and nothing else. Kinds of nodes that no example has are an error
    when it runs.
    """
    import cortex

    function, its_weights, structures = subject_of(model, weights, examples, hidden)
    fast = cortex.compile(
        function, its_weights, examples=list(structures) or None, target=target, cpu=cpu, threads=threads
    )
    written = cortex.export(fast, output, name)
    size = sum(file.stat().st_size for file in written)
    click.echo(f"{output}: {len(written)} files, {size:,} bytes, for {fast.compiled.code.target}")
    prefix = written[0].stem
    click.echo(f"cc -std=c11 -O2 program.c {prefix}.c cortex_*.c {prefix}.o -pthread -lm")

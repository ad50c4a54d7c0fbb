"""`cortex inspect`: what is in a file that `fast.save` wrote."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.errors import printable

if TYPE_CHECKING:
    from cortex.codegen.target import Target
    from cortex.ra.ir import TensorType
    from cortex.saved.read import Saved, SavedPart

NOTABLE = ("avx512bf16", "avx512vnni", "avx512f", "avx2", "fma", "sse2", "neon")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--schedule", "with_steps", is_flag=True, help="Print all steps of the schedule.")
def command(file: Path, with_steps: bool) -> None:
    """Print what is inside FILE, a saved model: kinds of nodes, states, fields, weights, code.

    Nothing in it is executed.
    """
    from cortex.saved.head import not_understood
    from cortex.saved.read import UNREADABLE, read

    saved = read(file, verify=True)
    try:
        found = list(lines(saved, with_steps))
    except UNREADABLE:
        raise not_understood(saved.what, saved.wanted.cortex) from None
    for line in found:
        click.echo(printable(line))


def lines(saved: Saved, with_steps: bool = False) -> Iterator[str]:
    """What is in a file, line by line."""
    what = "model" if saved.interface is None else "torch module"
    name = saved.parts[0].model.name if saved.interface is None else saved.interface.name
    yield f"{what} {name}, {saved.size:,} bytes, saved by Cortex {saved.wanted.cortex}"
    for part in saved.parts:
        if part.serving is not None:
            yield ""
            yield f"called with ({', '.join(_argument(*each) for each in part.serving.constants)})"
            yield f"returns    {part.serving.form.text()}"
        yield from _part(part)
        yield from _code(saved, part, with_steps)


def _part(part: SavedPart) -> Iterator[str]:
    m = part.model
    sources = part.names["sources"]
    functions = [name for name, source in sources.items() if source is None]
    yield f"kinds      {', '.join(k.name for k in m.kinds)}"
    yield f"children   {', '.join(_meaning(name, sources) for name in (*m.slots, *m.lists)) or 'none'}"
    yield f"fields     {', '.join(_meaning(f.name, sources) + _type(f.type) for f in m.fields) or 'none'}"
    yield f"states     {', '.join(s.name + _type(s.type) for s in m.outputs)}"
    if functions:
        yield f"to be given again when it is loaded, as functions: {', '.join(functions)}"
    numbers = sum(prod(array.shape) for array in part.weights.values())
    yield f"weights    {len(part.weights)} arrays, {numbers:,} numbers"


def _code(saved: Saved, part: SavedPart, with_steps: bool) -> Iterator[str]:
    if not part.programs:
        yield f"code       for {saved.wanted.device}, compiled when it is loaded"
    for saved_program in part.programs:
        program = saved_program.program()
        entry = program.entry
        yield f"code       {len(entry.code):,} bytes for {_machine(program.target)}; {_threads(saved_program.threads)}"
        yield f"schedule   {len(entry.schedule)} steps{'' if with_steps else ' (--schedule prints them)'}"
        if with_steps:
            yield from (f"  {step!r}" for step in entry.schedule)


def _argument(name: str, *what: object) -> str:
    return f"{name}: a {what[0]}" if len(what) == 1 else f"{name}={what[1]!r}"


def _meaning(name: str, sources: dict[str, str | list[str] | None]) -> str:
    source = sources.get(name, name)
    if source == name:
        return name
    return f"{name} = {'a function' if source is None else source if isinstance(source, str) else ' or '.join(source)}"


def _type(t: TensorType) -> str:
    return f": {t.dtype}{list(t.shape) if t.shape else ''}"


def _machine(target: Target) -> str:
    return f"{target.cpu} ({', '.join(f for f in NOTABLE if target.has(f)) or 'no vector instructions'})"


def _threads(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"

"""`cortex demo`: encode every function of Python's standard library with a child-sum TreeLSTM."""

from __future__ import annotations

import statistics
import time
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from cortex.cli import output

if TYPE_CHECKING:
    from rich.progress import Progress

    from cortex.zoo.entry import Weights

MODEL = "tree_lstm_words"
LATENCY_SAMPLE = 1000
AGREEMENT_SAMPLE = 20
EAGER_SAMPLE = 20


@dataclass(frozen=True)
class Report:
    """What the demo found."""

    functions: int
    nodes: int
    words: int
    hidden: int
    batch: int
    parse_s: float
    compile_s: float
    encode_s: float
    functions_per_s: float
    nodes_per_s: float
    p50_us: float
    p99_us: float
    groups_per_call: float
    nodes_per_group: float
    largest_group: int
    worst_error: float
    times_faster_than_torch_eager: float | None


@click.command()
@click.option("--limit", type=click.IntRange(min=1), help="Only the first so many functions.  [default: all]")
@click.option("--hidden", type=click.IntRange(min=1), default=256, show_default=True, help="Hidden size.")
@click.option("--batch", type=click.IntRange(min=1), default=64, show_default=True, help="Functions per call.")
@click.option("--json", "json_file", metavar="FILE", help="Write the numbers to FILE; - is standard output.")
def command(limit: int | None, hidden: int, batch: int, json_file: str | None) -> None:
    """Encode every function of Python's standard library.

    Syntax trees of any arity, a word (the node's type and name, hashed) at every node, a child-sum TreeLSTM. Shows
    throughput, latency, what was batched, agreement with the interpreter, and speed against PyTorch where it is
    installed.
    """
    console = output.console(json_file)
    with output.progress(console) as bar:
        report = _run(bar, limit, hidden, batch)
    output.print_table(console, "Python's standard library through a TreeLSTM", ("", "value"), _rows(report))
    output.write_json(json_file, asdict(report))


def _run(bar: Progress, limit: int | None, hidden: int, batch: int) -> Report:
    import cortex
    from cortex import zoo

    start = time.perf_counter()
    trees = _trees(bar, limit)
    parsed = time.perf_counter()
    entry = zoo.load(MODEL)
    weights = entry.weights(hidden, entry.vocab)
    begin = time.perf_counter()
    fast = cortex.compile(entry.model, weights)
    fast(trees[:1])
    compiled = time.perf_counter()

    calls = [trees[i : i + batch] for i in range(0, len(trees), batch)]
    encode = 0.0
    for call in bar.track(calls, description="encoding"):
        began = time.perf_counter()
        _ = fast(call).h
        encode += time.perf_counter() - began

    sample = trees[:: max(1, len(trees) // LATENCY_SAMPLE)]
    latencies = sorted(_microseconds(fast, tree) for tree in bar.track(sample, description="one at a time"))
    forms = [fast.linearize(call) for call in calls]
    groups = np.concatenate([form.arrays["group_len"] for form in forms])
    words = np.unique(np.concatenate([form.arrays["field_word"] for form in forms]))
    nodes = sum(form.sizes["num_nodes"] for form in forms)
    return Report(
        functions=len(trees),
        nodes=nodes,
        words=len(words),
        hidden=hidden,
        batch=batch,
        parse_s=parsed - start,
        compile_s=compiled - begin,
        encode_s=encode,
        functions_per_s=len(trees) / encode,
        nodes_per_s=nodes / encode,
        p50_us=statistics.median(latencies),
        p99_us=latencies[int(0.99 * (len(latencies) - 1))],
        groups_per_call=len(groups) / len(calls),
        nodes_per_group=float(groups.mean()),
        largest_group=int(groups.max()),
        worst_error=_worst_error(bar, fast, _spread(trees, AGREEMENT_SAMPLE)),
        times_faster_than_torch_eager=_against_eager(bar, fast, weights, _spread(trees, EAGER_SAMPLE)),
    )


def _trees(bar: Progress, limit: int | None) -> list[Any]:
    """The syntax trees of the library's functions."""
    from cortex.structures.python_ast import standard_library

    trees: list[Any] = []
    task = bar.add_task("parsing the standard library", total=limit)
    for _, tree in standard_library():
        trees.append(tree)
        bar.advance(task)
        if len(trees) == limit:
            break
    bar.remove_task(task)
    return trees


def _spread(trees: list[Any], count: int) -> list[Any]:
    """About `count` trees from all over the library."""
    return trees[:: max(1, len(trees) // count)][:count]


def _microseconds(fast: Any, tree: Any) -> float:
    start = time.perf_counter()
    _ = fast([tree]).h
    return 1e6 * (time.perf_counter() - start)


def _worst_error(bar: Progress, fast: Any, sample: list[Any]) -> float:
    """The largest difference between compiled code and the interpreter in double precision, over all nodes."""
    worst = 0.0
    for tree in bar.track(sample, description="interpreting"):
        worst = max(worst, float(np.abs(fast([tree]).nodes.h - fast.interpret([tree])["h"]).max()))
    return worst


def _against_eager(bar: Progress, fast: Any, weights: Weights, sample: list[Any]) -> float | None:
    """How many times less time Cortex takes than PyTorch node by node, both one tree at a time on one thread."""
    if find_spec("torch") is None:
        return None
    import torch

    from cortex import zoo

    torch.set_num_threads(1)
    theirs = ours = 0.0
    with torch.inference_mode():
        reference = zoo.load(MODEL).reference(weights)
        for tree in bar.track(sample, description="PyTorch, node by node"):
            start = time.perf_counter()
            reference(tree)
            theirs += time.perf_counter() - start
            ours += _microseconds(fast, tree) / 1e6
    return theirs / ours


def _rows(r: Report) -> list[tuple[str, str]]:
    rows = [
        ("functions", f"{r.functions:,}"),
        ("syntax nodes", f"{r.nodes:,} with {r.words:,} different words"),
        ("hidden size", str(r.hidden)),
        ("parsing, compiling", f"{r.parse_s:.1f} s, {r.compile_s:.2f} s"),
        ("encoding all", f"{r.encode_s:.2f} s, {r.batch} functions per call"),
        ("throughput", f"{r.functions_per_s:,.0f} functions/s, {r.nodes_per_s:,.0f} nodes/s"),
        ("latency of one function", f"p50 {r.p50_us:,.0f} us, p99 {r.p99_us:,.0f} us"),
        ("batched", f"{r.groups_per_call:.0f} groups a call, {r.nodes_per_group:.0f} nodes a group"),
        ("largest group", f"{r.largest_group:,} nodes"),
        ("largest error (interpreter)", f"{r.worst_error:.1e}"),
    ]
    if r.times_faster_than_torch_eager is not None:
        rows.append(("faster than PyTorch eager", f"{r.times_faster_than_torch_eager:.1f} times"))
    return rows

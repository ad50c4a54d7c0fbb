"""The words and tables of docs/performance.md and of the README, from the data of docs/performance.json."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import geometric_mean
from textwrap import wrap
from typing import Any

from performance_figures import LIMIT_WITH_TABLES, OURS, Cell, on, suite, thread_counts, worst

Lines = Iterator[str]
WIDTH = 120
BUSY = 1.0  # load average from which figures are not to be trusted
TABLES, SHARING = "cortex-tables", "cortex-tables-sharing"


def page(data: dict[str, Any]) -> str:
    """docs/performance.md."""
    cells = suite(data)
    parts = [_intro(data), _summary(data, cells), _worst(cells), _all_cells(cells), _by_hand(cells), _less_work(cells)]
    parts += [_narrow(data), _random(data), _memory(cells), _callers(data), _compiling(data), _how(data)]
    return "\n".join(line for part in parts for line in part) + "\n"


def readme(data: dict[str, Any]) -> str:
    """The part of the README: the summary, one line per cell, and where it comes from."""
    cells = suite(data)
    lines = [_where(data), "", *_summary(data, cells), *_others(data, cells)]
    lines += ["![Latency of every cell](docs/performance.svg)", ""]
    counts = thread_counts(cells)
    header = ["model", "H", "batch"]
    for t in counts:
        header += [f"cortex, {_threads(t)}", "cortex / limit", "eager / cortex", "best peer / cortex"]
    table = []
    for first in on(cells, counts[0]):
        line = [first.model, str(first.hidden), str(first.batch)]
        for c in (next(c for c in on(cells, t) if c.name == first.name) for t in counts):
            line += [f"{c.us[OURS]:,.0f}", f"{c.over_limit:.2f}", f"{c.gain('torch-eager'):.1f}", f"{c.over_best:.2f}"]
        table.append(line)
    return "\n".join([*lines, *_table(header, table), "", "`docs/performance.md` has the rest."])


def _intro(data: dict[str, Any]) -> Lines:
    yield "# Performance"
    yield ""
    yield from _wrapped(
        "This page is made by `make performance`, which measures everything on it; the figures are in "
        f"`performance.json`. {_where(data)}"
    )
    yield ""
    yield "![Latency of every cell](performance.svg)"
    yield ""


def _where(data: dict[str, Any]) -> str:
    m = data["machine"]
    caches = ", ".join(f"{level} {size}" for level, size in m["caches"].items())
    reads = ", ".join(f"{size} {rate:.0f}" for size, rate in m["read_gbs"].items())
    busy = (
        f" **Others kept the machine busy (load average {data['load']:.1f} at the start): these figures are no claims, "
        "only a sample of the page.**"
    )
    return (
        f"Measured on {data['date']} on {m['name']}, {m['cores']} cores, {m['lanes']} lanes ({caches}); one core does "
        f"{m['peak_gflops']:.0f} GFLOP/s and reads, in GB/s by size: {reads}."
    ) + (busy if data["load"] > BUSY else "")


def _summary(data: dict[str, Any], cells: list[Cell]) -> Lines:
    counts = thread_counts(cells)
    rows: list[list[str]] = [[] for _ in range(7)]
    for t in counts:
        mine = on(cells, t)
        far, near = worst(mine, lambda c: c.over_limit)[0], min(mine, key=lambda c: c.over_best)
        chance = [r["over_limit"] for r in data["random"] if r["threads"] == t]
        values = [
            f"{geometric_mean(c.over_limit for c in mine):.2f}",
            f"{far.over_limit:.2f} ({far.name})",
            f"{geometric_mean(c.least_over_limit for c in mine):.2f}",
            f"{geometric_mean(c.gain('torch-eager') for c in mine):.1f}x",
            f"{geometric_mean(c.over_best for c in mine):.2f}x",
            f"{near.over_best:.2f}x ({near.name}: {near.best_peer})",
            f"{geometric_mean(chance):.2f}" if chance else "",
        ]
        for row, value in zip(rows, values, strict=True):
            row.append(value)
    names = (
        f"time over the limit, geometric mean of {len(on(cells, counts[0]))} cells",
        "time over the limit, worst cell",
        "least time over the limit, geometric mean",
        "faster than torch-eager, geometric mean",
        "faster than the best peer, geometric mean",
        "faster than the best peer, worst cell",
        "random cells: time over the limit, geometric mean",
    )
    yield from _table(["", *map(_threads, counts)], [[n, *r] for n, r in zip(names, rows, strict=True)])
    yield ""


def _others(data: dict[str, Any], cells: list[Cell]) -> Lines:
    """What else is measured, in a line each."""
    hand = [c.gain("treelstm.c") for c in cells if "treelstm.c" in c.us]
    small = [c for c in cells if c.batch == 1 and SHARING in c.us and c.model in ("tree_lstm", "tree_gru")]
    narrow = [r for r in data["narrow"] if r["weights"] == "int16"]
    compiling, callers = data["compiling"], data["callers"]
    points = []
    if hand:
        points.append(
            f"Against a TreeLSTM written by hand in AVX-512 intrinsics: {min(hand):.2f} to {max(hand):.2f} times its "
            f"speed, at least as fast in {sum(g >= 1 for g in hand)} of {len(hand)} cells."
        )
    for t in thread_counts(small):
        gains = (f"{c.model} {c.hidden} {c.gain('torch-eager', SHARING):.1f}x" for c in on(small, t))
        points.append(f"With tables and sharing, batch 1, {_threads(t)}, over torch-eager: {', '.join(gains)}.")
    if narrow:
        gains = (f"{r['model']} {r['hidden']} {r['faster']:.2f}x (h off by {r['deviation']['h']:.1e})" for r in narrow)
        points.append(f"Weights in 16 bits (int16), batch 1, one thread, over fp32: {', '.join(gains)}.")
    points.append(
        f"Two Python threads calling one model: {callers['two'] / callers['one']:.2f} times the calls of one. Peak "
        f"memory of a call: at most {max(c.peak_bytes / c.needed_bytes for c in cells):.2f} times states and weights."
    )
    if compiling:
        cold, warm, kind = (compiling[name] for name in ("TreeLSTM, cold", "TreeLSTM, warm", "new kind, cold"))
        points.append(
            f"Compiling a TreeLSTM and its first call, imports not counted: {cold:.0f} ms, {warm:.0f} ms with object "
            f"code kept from before; a kind of node met later: {kind:.0f} ms."
        )
    for point in points:
        yield from wrap(f"* {point}", WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    yield ""


def _worst(cells: list[Cell]) -> Lines:
    yield "## Worst cells"
    yield ""
    for t in thread_counts(cells):
        far = ", ".join(f"{c.name} ({c.over_limit:.2f})" for c in worst(on(cells, t), lambda c: c.over_limit))
        near = worst(on(cells, t), lambda c: 1 / c.over_best)
        close = ", ".join(f"{c.name} ({c.over_best:.2f}x, {c.best_peer})" for c in near)
        yield f"* On {_threads(t)}, furthest from the limit: {far}. Nearest to the best peer: {close}."
    yield ""


def _all_cells(cells: list[Cell]) -> Lines:
    for t in thread_counts(cells):
        mine = on(cells, t)
        others = [s for s in dict.fromkeys(s for c in mine for s in c.us) if not s.startswith((OURS, "limit"))]
        yield f"## All cells, {_threads(t)}"
        yield ""
        yield "Median microseconds per batch."
        yield ""
        header = [
            "model",
            "H",
            "batch",
            "limit",
            OURS,
            TABLES,
            *others,
            "cortex / limit",
            "eager / cortex",
            "best peer / cortex",
        ]
        table = []
        for c in mine:
            times = [f"{c.us[s]:,.0f}" if s in c.us else "" for s in ("limit", OURS, TABLES, *others)]
            ratios = [f"{c.over_limit:.2f}", f"{c.gain('torch-eager'):.1f}", f"{c.over_best:.2f}"]
            table.append([c.model, str(c.hidden), str(c.batch), *times, *ratios])
        yield from _table(header, table)
        yield ""


def _by_hand(cells: list[Cell]) -> Lines:
    mine = [c for c in cells if "treelstm.c" in c.us]
    if not mine:
        return
    yield "## Against a program written by hand"
    yield ""
    yield from _wrapped(
        "treelstm.c is a TreeLSTM in AVX-512 intrinsics: packed and interleaved gates, epilogue in registers, pinned "
        "threads, a barrier of flags. It starts from arrays of nodes and linearizes them; Cortex starts from Python "
        "objects. Same trees, same weights; compiled with `gcc -O3 -march=native`, three turns each."
    )
    yield ""
    table = [
        [
            str(c.hidden),
            str(c.batch),
            str(c.threads),
            f"{c.us[OURS]:,.0f}",
            f"{c.us['treelstm.c']:,.0f}",
            f"{c.gain('treelstm.c'):.2f}",
        ]
        for c in mine
    ]
    yield from _table(["H", "batch", "threads", OURS, "treelstm.c", "treelstm.c / cortex"], table)
    yield ""


def _less_work(cells: list[Cell]) -> Lines:
    yield "## Less work: tables and sharing"
    yield ""
    yield from _wrapped(
        "How many times faster than torch-eager: doing all work; as `cortex.compile(model, weights, examples=...)` "
        "gives it, with leaves, products of inputs and products of leaves' states looked up in tables where they fit "
        "into 64 MB; and with 256 MB for tables (`table_bytes=`) and `Dedup()` added, which computes equal subtrees of "
        "a request once. The vocabulary has 20,000 words. The last column is the limit "
        "without leaves and products of inputs: how much faster at most, without merging anything, if every other node "
        "multiplies the states of its children."
    )
    yield ""
    table = [
        [c.model, str(c.hidden), str(c.batch), str(c.threads)]
        + [f"{c.gain('torch-eager', s):.1f}x" if s in c.us else "" for s in (OURS, TABLES, SHARING, LIMIT_WITH_TABLES)]
        for c in cells
    ]
    yield from _table(["model", "H", "batch", "threads", OURS, TABLES, SHARING, LIMIT_WITH_TABLES], table)
    yield ""


def _narrow(data: dict[str, Any]) -> Lines:
    rows = data["narrow"]
    if not rows:
        return
    yield "## Fewer bytes: narrow weights"
    yield ""
    yield from _wrapped(
        "`weights_dtype=`, one thread, all work done; the programs of a model in turns, least times by the thread's "
        "own clock. With int16 and int8 inputs are rounded to 16 bits as well, with bf16 where the processor has "
        "products of those. Deviation: the worst of any element of h at any node from fp32."
    )
    yield ""
    table = [
        [
            r["model"],
            str(r["hidden"]),
            str(r["batch"]),
            r["weights"],
            f"{r['us']:,.0f}",
            f"{r['faster']:.2f}x",
            f"{r['deviation']['h']:.1e}" if r["deviation"] else "",
        ]
        for r in rows
    ]
    yield from _table(["model", "H", "batch", "weights", "us", "faster than f32", "deviation of h"], table)
    yield ""


def _random(data: dict[str, Any]) -> Lines:
    rows = data["random"]
    if not rows:
        return
    yield "## Random cells"
    yield ""
    yield from _wrapped(
        "Models of the fuzz tests' generator that nobody tuned anything for (`benchmarks/random_cells.py` says how "
        "they are chosen); the limit is counted in their programs. Microseconds."
    )
    yield ""
    table = [
        [
            str(r["seed"]),
            r["family"],
            str(r["hidden"]),
            str(r["threads"]),
            str(r["nodes"]),
            f"{r['us']:,.1f}",
            f"{r['limit_us']:,.1f}",
            f"{r['over_limit']:.2f}",
        ]
        for r in rows
    ]
    yield from _table(["seed", "structures", "H", "threads", "nodes", OURS, "limit", "cortex / limit"], table)
    yield ""


def _memory(cells: list[Cell]) -> Lines:
    yield "## Memory"
    yield ""
    most = worst(cells, lambda c: c.peak_bytes / c.needed_bytes)
    named = ", ".join(f"{c.name} on {_threads(c.threads)} {c.peak_bytes / c.needed_bytes:.2f}" for c in most)
    over = geometric_mean(c.peak_bytes / c.needed_bytes for c in cells)
    yield from _wrapped(
        "The peak of a call (its linear form, states, scratch and answer, with packed weights) over states and packed "
        f"weights alone: geometric mean {over:.2f}; most: {named}."
    )
    yield ""
    table = [
        [
            c.name,
            str(c.threads),
            f"{c.peak_bytes / 1000000.0:.2f}",
            f"{c.needed_bytes / 1000000.0:.2f}",
            f"{c.peak_bytes / c.needed_bytes:.2f}",
        ]
        for c in cells
    ]
    yield from _table(["cell", "threads", "peak, MB", "states + packed weights, MB", "ratio"], table)
    yield ""


def _callers(data: dict[str, Any]) -> Lines:
    one, two = data["callers"]["one"], data["callers"]["two"]
    yield "## Two callers"
    yield ""
    yield from _wrapped(
        f"One TreeLSTM (H=256, `threads=1`), single trees: one Python thread makes {one:,.0f} calls per second, two at "
        f"once make {two:,.0f}, {two / one:.2f} times as many."
    )
    yield ""


def _compiling(data: dict[str, Any]) -> Lines:
    if not data["compiling"]:
        return
    yield "## Compile time"
    yield ""
    yield from _wrapped(
        "Processor time from `cortex.compile` or `cortex.load` to the first answer, H=256, the best of some processes, "
        "imports excluded (`benchmarks/compile_time.py`). Cold: no object code is kept yet. A new kind: a request that "
        "is the first to have nodes of a third number of children, in a model with weights by position."
    )
    yield ""
    yield from _table(["", "ms"], [[name, f"{ms:,.0f}"] for name, ms in data["compiling"].items()])
    yield ""


def _how(data: dict[str, Any]) -> Lines:
    sources = {row["model"]: row["data"] for row in data["suite"]}
    ran = {name for row in data["suite"] for name in row["systems"]}
    absent = [name for name in ("treelstm.c", "onnxruntime", "jax") if name not in ran]
    yield "## How it is measured"
    yield ""
    points = [
        "Timed from the user's Python objects, built anew for every call, to arrays that the user can read. Compiling "
        "and filling tables are not timed. `cortex` is fp32 with all work done: no tables, no sharing.",
        f"The systems of a cell run in turns in one process for about {data['seconds_per_cell']:g} s in all, of which "
        "the first 0.1 s of each turn do not count: processors that rested are slow at first. The median over requests "
        "of each request's median is given, of the same requests for all systems: as many as that time allows. "
        "Results are compared with double precision before, to 1e-4.",
        "A virtual machine is slow for seconds at a time. After each turn, as many threads as are measured do "
        "multiply-adds for milliseconds; where they do fewer than 85% of the machine's best for 0.1 s, the turn does "
        "not count, whichever system's it was, and is had again (`src/cortex/bench/quiet.py`), for up to four times "
        "the time of the cell. Runs of processes of their own are had again up to twice.",
        "torch-eager is the recursive PyTorch module, node by node. torch-batched is PyTorch batched by hand, level by "
        "level, in whichever of its two forms (the level loop in Python or TorchScript) was faster.",
        "onnxruntime, jax and treelstm.c are processes of their own: treelstm.c in three turns with the others, "
        "onnxruntime and jax once, right after them, on as many processors as threads. The best peer is the fastest of "
        "all but treelstm.c, which has no Python objects to start from and is compared apart.",
        "limit: multiply-adds at the peak or reads of the weights, whichever is longer, summed over the groups of a "
        "request; gathers, activation functions, barriers and linearizing count as nothing "
        "(`src/cortex/bench/limit.py`). The machine is measured before all cells and after them, and the better of "
        "each figure counts. The least time of a cell is the median over requests of each request's least.",
        f"Structures: {'; '.join(f'{m}: {s}' for m, s in sources.items())}.",
        f"Versions: {', '.join(f'{n} {v}' for n, v in data['versions'].items())}.",
    ]
    if absent:
        points.append(f"Could not be run here, and so not compared with: {', '.join(absent)}.")
    for point in points:
        yield from wrap(f"* {point}", WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _wrapped(text: str) -> list[str]:
    return wrap(text, WIDTH, break_on_hyphens=False)


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def _table(header: Sequence[str], rows: list[list[str]]) -> Lines:
    yield f"| {' | '.join(header)} |"
    yield f"| --- |{' --: |' * (len(header) - 1)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"

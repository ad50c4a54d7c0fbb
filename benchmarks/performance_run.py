"""Everything that docs/performance.md states, measured: the suite, random cells, narrow weights, callers, compiling.

The result is plain data, kept in docs/performance.json.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import compile_time
import narrow_weights
from performance_figures import LIMIT_WITH_TABLES

import cortex
from cortex import zoo
from cortex.bench.data import workload
from cortex.bench.limit import Machine
from cortex.bench.machine import figures
from cortex.bench.recursive import MODELS, Cell, Row, cells, limit_of, run_cell
from cortex.options import Options

PACKAGES = ("numpy", "llvmlite", "torch", "onnxruntime", "jax")
BATCHES = (1, 10)
NARROW = ("tree_lstm", "lstm")
CALLER_TURNS = 9
KEPT = ("us", "us_min", "repetitions", "peak_bytes", "needed_bytes")


def run(
    models: list[str], hidden: list[int] | None, threads: list[int], budget: float, count: int, compiled: int
) -> dict[str, Any]:
    """Measure: `budget` seconds per cell of the suite, `count` random cells, compiling so many times."""
    options = Options.from_environment()
    load = os.getloadavg()[0]
    say("machine")
    found = figures(options.cache, anew=True)
    measured = []
    for cell in cells(models or MODELS, hidden, BATCHES, threads):
        rows = run_cell(cell, found.machine(), options.data, budget, options.peers)
        measured.append((cell, rows))
        say(f"{cell.model} H={cell.hidden} batch {cell.batch} threads {cell.threads}: {rows[0].us:.0f} us")
    say("machine, again")
    found = figures(options.cache, anew=True, known=found)
    suite = [_as_data(cell, rows, found.machine(), options.data) for cell, rows in measured]
    return {
        "date": datetime.date.today().isoformat(),
        "load": round(load, 2),
        "machine": {**_system(), **asdict(found)},
        "versions": _versions(),
        "seconds_per_cell": budget,
        "suite": suite,
        "random": random_rows(threads, budget / 4, count),
        "narrow": [row for model in NARROW for row in narrow_weights.measure(model, hidden_of(hidden), 1, budget)],
        "callers": callers(budget),
        "compiling": {name: round(ms, 1) for name, ms in compile_time.measure(256, compiled)},
    }


def random_rows(threads: list[int], seconds: float, count: int) -> list[dict[str, Any]]:
    """The random cells, measured in a process that has nothing else in its memory."""
    with TemporaryDirectory() as folder:
        found = Path(folder) / "random.json"
        options = {"--count": count, "--threads": ",".join(map(str, threads)), "--seconds": seconds, "--json": found}
        script = Path(__file__).with_name("random_cells.py")
        command = [sys.executable, script, *(part for option in options.items() for part in option)]
        subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
        rows: list[dict[str, Any]] = json.loads(found.read_text(encoding="utf-8"))
    return rows


def hidden_of(asked: list[int] | None) -> int:
    """The hidden size of models with narrow weights: 512 unless the suite was asked for smaller ones only."""
    return 512 if asked is None else max(asked)


def _as_data(cell: Cell, rows: list[Row], machine: Machine, data: Path | None) -> dict[str, Any]:
    """What was measured in a cell, and its limits on the machine at its best."""
    systems = {row.system: {k: _short(v) for k, v in asdict(row).items() if k in KEPT and v} for row in rows}
    requests = workload(cell.model, zoo.load(cell.model).vocab, data)
    for name, tables in (("limit", False), (LIMIT_WITH_TABLES, True)):
        us = _short(limit_of(cell, requests, rows[0].batches, machine, tables))
        systems[name] = {"us": us, "us_min": us, "repetitions": 1}
    return {**asdict(cell), "data": rows[0].data, "systems": systems}


def callers(seconds: float) -> dict[str, float]:
    """Calls per second of one TreeLSTM, H=256, threads=1: by one Python thread, and by two at once."""
    entry = zoo.load("tree_lstm")
    requests = workload("tree_lstm", entry.vocab, Options.from_environment().data)
    trees = [requests.fresh(i, 1)[0] for i in range(50)]
    fast = cortex.compile(entry.model, entry.weights(256, entry.vocab), threads=1, table_bytes=0)
    fast(trees)
    one: list[float] = []
    two: list[float] = []
    for _ in range(CALLER_TURNS):
        one.append(_rate(fast, trees, 1, seconds / CALLER_TURNS))
        two.append(_rate(fast, trees, 2, seconds / CALLER_TURNS))
    return {"one": round(median(one), 1), "two": round(median(two), 1)}


def _rate(fast: Callable[[Any], Any], trees: list[Any], count: int, seconds: float) -> float:
    """Calls per second of `count` Python threads together."""
    made = [0] * count
    end = time.perf_counter() + seconds

    def call(number: int) -> None:
        while not made[number] or time.perf_counter() < end:
            for tree in trees:
                _ = fast(tree).h
            made[number] += len(trees)

    start = time.perf_counter()
    threads = [threading.Thread(target=call, args=(i,)) for i in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sum(made) / (time.perf_counter() - start)


def _system() -> dict[str, Any]:
    """The processor as the system names it, its cores and caches."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    caches = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((index / f).read_text().strip() for f in ("level", "type", "size"))
        if kind != "Instruction":
            caches[f"L{level}"] = size
    return {"name": names[0] if names else platform.processor(), "cores": os.cpu_count(), "caches": caches}


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "cortex": version("cortex-recursive")}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _short(value: Any) -> Any:
    return round(value, 2) if isinstance(value, float) else value


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)

"""Programs of the peers' folder, run beside the systems of the recursive suite.

They are not part of the project: where the folder, a compiler or a package is missing, they are left out. Each is a
process of its own that reads the cell's structures and weights from files (`peers_data`), checks its results and
prints the time of a batch.

* `treelstm.c` (limits/treelstm.c), a hand-written AVX-512 program, is compiled here for the hidden size. It starts from
  arrays that list each tree's nodes, not from Python objects, and it pins its threads.
* `onnxruntime` (bench_ort.py) for sequences and `jax` (bench_jax.py) for all models, where they are installed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cortex.bench.data import Workload
from cortex.bench.peers_data import peer_name, write_data
from cortex.bench.timing import Timing
from cortex.errors import InternalError

Array = npt.NDArray[Any]

REPETITIONS = 5  # of each batch, by a C program, in one run
SECONDS = 0.3  # of each measurement of a Python program, in one run
C_SIZES = (1, 10)  # batches that treelstm.c times
SCRIPTS = {"onnxruntime": "bench_ort.py", "jax": "bench_jax.py"}
PACKAGES = {"onnxruntime": ("onnx", "onnxruntime"), "jax": ("jax",)}
SEQUENCES = ("lstm", "gru")
# The scripts have a list of hidden sizes; the one that is wanted replaces it. JAX takes all processors it may run on.
DRIVER = """
import os, runpy, sys
script, hidden, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
sys.path.insert(0, os.path.dirname(script))
import common
common.hiddens = lambda model: (hidden,)
sys.argv[1:] = sys.argv[4:]
runpy.run_path(script, run_name="__main__")
"""


class Where(Protocol):
    """The cell that peers are to run in."""

    @property
    def model(self) -> str: ...  # noqa: D102
    @property
    def hidden(self) -> int: ...  # noqa: D102
    @property
    def batch(self) -> int: ...  # noqa: D102
    @property
    def threads(self) -> int: ...  # noqa: D102


@dataclass(frozen=True)
class Peer:
    """A program to be run in turns with the rest, and how it was measured. `turns`: worth starting more than once."""

    run: Callable[[], Timing]
    form: str
    turns: bool


@contextmanager
def peers_of(
    cell: Where, weights: Mapping[str, Array], requests: Workload, reference: Any, folder: Path | None
) -> Iterator[dict[str, Peer]]:
    """The programs of `folder` that can run in a cell here; their files last as long as the context."""
    folder = None if folder is None else folder.resolve()
    able = [] if folder is None else list(_able(cell, folder))
    if folder is None or not able:
        yield {}
        return
    with TemporaryDirectory() as name:
        files = Path(name)
        write_data(files, cell.model, cell.hidden, weights, requests, reference)
        found: dict[str, Peer] = {}
        for system in able:
            if system == "treelstm.c":
                program = _compiled(folder / "limits" / "treelstm.c", cell.hidden, files)
                how = "hand-written AVX-512, pinned threads, from arrays of nodes; a process run in turns with the rest"
                found[system] = Peer(partial(_run_program, cell, program, files, len(requests.shapes)), how, True)
            else:
                script = folder / SCRIPTS[system]
                how = f"{script.name} of the peers' folder, a process run once, after the rest"
                found[system] = Peer(partial(_run_script, cell, script, files, len(requests.shapes)), how, False)
        yield found


def _able(cell: Where, folder: Path) -> Iterator[str]:
    """Systems that have this model and what they need."""
    is_c = cell.model == "tree_lstm" and cell.hidden % 32 == 0 and cell.batch in C_SIZES and cell.threads <= 2
    if is_c and (folder / "limits" / "treelstm.c").is_file() and shutil.which("gcc") and _has_avx512():
        yield "treelstm.c"
    for system, script in SCRIPTS.items():
        has_model = system != "onnxruntime" or cell.model in SEQUENCES
        installed = all(find_spec(package) is not None for package in PACKAGES[system])
        if has_model and installed and (folder / script).is_file():
            yield system


def _has_avx512() -> bool:
    from cortex.codegen.target import Target

    return Target.host().lanes == 16


def _compiled(source: Path, hidden: int, files: Path) -> Path:
    """The C program for a hidden size, and the weights in the files it reads, in the same folder."""
    program = files / f"treelstm{hidden}"
    command = ["gcc", "-O3", "-march=native", f"-DH={hidden}", "-pthread", str(source), "-o", str(program), "-lm"]
    _output(command, files)
    trees = json.loads((files / "trees.json").read_text(encoding="utf-8"))["trees"]
    starts = np.cumsum([0, *(len(t["left"]) for t in trees)])
    lists = [np.concatenate([t[key] for t in trees]) for key in ("left", "right", "word")]
    np.concatenate([[len(trees)], starts, *lists]).astype(np.int32).tofile(files / "trees.bin")
    for name, values in np.load(files / f"w_treelstm_{hidden}.npz").items():
        values.tofile(files / f"{name}_{hidden}.bin")
    np.load(files / f"emb_{hidden}.npy").tofile(files / f"emb_{hidden}.bin")
    np.load(files / f"ref_treelstm_{hidden}.npy").tofile(files / f"ref_{hidden}.bin")
    return program


def _run_program(cell: Where, program: Path, files: Path, structures: int) -> Timing:
    text = _output([str(program), str(cell.threads), str(REPETITIONS)], files)
    results = [json.loads(line) for line in text.splitlines()]
    return _timing(next(r for r in results if r["B"] == cell.batch) | {"reps": REPETITIONS}, cell, structures)


def _run_script(cell: Where, script: Path, files: Path, structures: int) -> Timing:
    out = files / f"{script.stem}.jsonl"
    driver = [sys.executable, "-c", DRIVER, str(script), str(cell.hidden), str(cell.threads)]
    options = ["--models", peer_name(cell.model), "--threads", str(cell.threads), "--bs", str(cell.batch)]
    _output([*driver, *options, "--budget", str(SECONDS), "--out", str(out)], files)
    return _timing(json.loads(out.read_text(encoding="utf-8").splitlines()[-1]), cell, structures)


def _timing(result: Mapping[str, Any], cell: Where, structures: int) -> Timing:
    if not result["ok"]:
        raise InternalError(
            f"cortex bench: {result['system']} on {cell.model}, H={cell.hidden}, is off by {result['err']:.2g} from "
            "the double-precision reference"
        )
    return Timing(result["total_med"], result["total_min"], result["reps"], structures // cell.batch)


def _output(command: list[str], files: Path) -> str:
    """What a program prints; what it says when it fails is part of the error."""
    done = subprocess.run(
        command, cwd=files, env={**os.environ, "PEERS_DATA": str(files)}, capture_output=True, text=True
    )
    if done.returncode:
        raise InternalError(f"cortex bench: {Path(command[0]).name} failed:\n{done.stderr[-2000:]}")
    return done.stdout

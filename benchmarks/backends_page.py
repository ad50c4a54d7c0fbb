"""The tables of docs/backends.md about GPUs: what kernels use, as NVIDIA's compiler says, and what a model predicts.

    python benchmarks/backends_page.py            compile, count and write both tables: about ten minutes
    python benchmarks/backends_page.py --models tree_fc,tree_lstm    for a look: print the rows of some models

Nothing here is measured on a device. Registers and shared memory are what NVRTC reports when it compiles; times are
predicted by `cortex/cost/gpu.py` from counts of the compiled programs and a description near a V100.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import cortex
from cortex import zoo
from cortex.bench.data import workload
from cortex.codegen.gpu import nvrtc
from cortex.codegen.gpu.ptxas import REGISTERS
from cortex.codegen.gpu.target import CUDA_SHARED
from cortex.cost.gpu import GpuPrediction, GpuPredictor
from cortex.cost.gpu_machine import GpuMachine

ROOT = Path(__file__).resolve().parent.parent
PAPER = ("tree_fc", "tree_lstm", "tree_gru", "mv_rnn", "dag_rnn")
BATCHES = (1, 10)
WORDS = 1000  # rows of the embedding table; kernels do not depend on it


@dataclass(frozen=True)
class Form:
    """A model compiled for CUDA in one of the two forms."""

    name: str
    hidden: int
    persistent: bool
    fast: Any

    @staticmethod
    def of(name: str, hidden: int, persistent: bool) -> Form:
        """Compile a model of the zoo for a GPU of 80 multiprocessors."""
        entry = zoo.load(name)
        target = cortex.gpu_target("cuda", "sm_70", persistent=persistent)
        examples = entry.structures(Random(0), 3, WORDS)
        return Form(
            name,
            hidden,
            persistent,
            cortex.compile(entry.model, entry.weights(hidden, WORDS), examples=examples, target=target),
        )

    def used(self) -> Iterator[str]:
        """A row of the table of registers: most of any kernel, for each architecture."""
        program = self.fast.compiled.code.program
        x, y = program.kernels[0].work_items
        registers, shared, spilled = [], 0, 0
        for architecture in nvrtc.ARCHITECTURES:
            code = nvrtc.compile_cuda(program.source, architecture)
            if code.warnings:
                sys.exit(f"{self.name}: {code.warnings[0]}")
            registers.append(max(k.registers for k in code.kernels))
            given = {k.name: k.launch_bytes for k in program.kernels}
            shared = max(shared, *(k.shared + given[k.name] for k in code.kernels))
            spilled += sum(k.spill_loads + k.spill_stores for k in code.kernels)
            for kernel in code.kernels:
                if not kernel.is_resident(x * y, 1024 * CUDA_SHARED[architecture], given[kernel.name]):
                    sys.exit(f"{self.name}: {kernel} does not fit a multiprocessor")
        form = "persistent" if self.persistent else "per level"
        groups = f"{program.groups} x {x} x {y}"
        yield from (self.name, str(self.hidden), form, str(len(program.kernels)), groups)
        yield from map(str, registers)
        yield from (f"{max(registers) * x * y / REGISTERS:.0%}", f"{shared:,}", str(spilled))

    def predicted(self, batch: int) -> GpuPrediction:
        """What a batch of the model's usual structures would take."""
        code = self.fast.compiled.code
        predict = GpuPredictor(self.fast.compiled.func, code.target.grid, GpuMachine.v100_like(), self.persistent)
        return predict(self.fast.linearize(workload(self.name, WORDS, None).fresh(0, batch)))


USED = (
    "model",
    "H",
    "form",
    "kernels",
    "groups x items",
    *nvrtc.ARCHITECTURES,
    "of all registers",
    "shared",
    "spilled",
)
PREDICTED = (
    *("model", "H", "batch", "form", "launches", "barriers", "weights, MB", "states, MB"),
    *("starting, us", "waiting, us", "computing, us", "predicted, us"),
)


def predicted(form: Form, batch: int) -> tuple[str, ...]:
    """A row of the table of predictions."""
    p = form.predicted(batch)
    starting = p.parts["call"] + p.parts["launches"]
    computing = p.parts["moving"] + p.parts["items"]
    return (
        *(form.name, str(form.hidden), str(batch), "persistent" if form.persistent else "per level"),
        *(str(p.launches), str(p.barriers), f"{p.weight_bytes / 1e6:.2f}", f"{p.other_bytes / 1e6:.2f}"),
        *(f"{starting:.0f}", f"{p.parts['barriers']:.0f}", f"{computing:.0f}", f"{p.us:.0f}"),
    )


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Markdown; numbers to the right."""
    words = {"model", "form"}
    line = ["---" if name in words else "---:" for name in head]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, tuple(line), *rows))


def filled(page: str, tables: dict[str, str]) -> str:
    """The page with its tables made anew."""
    for name, text in tables.items():
        start, end = f"<!-- table: {name}, by benchmarks/backends_page.py -->", "<!-- end of table -->"
        block = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
        if not block.search(page):
            sys.exit(f"docs/backends.md has no block from {start} to {end}")
        page = block.sub(lambda _, whole=f"{start}\n{text}\n{end}": whole, page, count=1)
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="", help="print the rows of these models, write nothing")
    a = parser.parse_args()
    wanted = a.models.split(",") if a.models else list(zoo.ENTRIES)
    used, times = [], []
    for name in wanted:
        for hidden in zoo.load(name).hidden:
            for persistent in (True, False):
                form = Form.of(name, hidden, persistent)
                used.append(tuple(form.used()))
                print(*used[-1], flush=True)
                if name in PAPER:
                    times += [predicted(form, batch) for batch in BATCHES]
    times.sort(key=lambda row: (PAPER.index(row[0]), int(row[1]), int(row[2]), row[3] != "persistent"))
    tables = {"kernels": table(USED, used), "predictions": table(PREDICTED, times)}
    if a.models:
        print(*tables.values(), sep="\n\n")
        return
    page = ROOT / "docs" / "backends.md"
    page.write_text(filled(page.read_text(encoding="utf-8"), tables), encoding="utf-8")


if __name__ == "__main__":
    main()

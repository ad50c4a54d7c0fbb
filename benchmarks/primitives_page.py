"""The measured part of docs/primitives.md, and its picture docs/variants.svg.

    python benchmarks/primitives_page.py            measure into docs/primitives.json and write both
    python benchmarks/primitives_page.py --pages    write both again from docs/primitives.json

Measuring (`make primitives`) takes about six minutes on two cores: the suites conv and matmul on one and two threads,
ranking, and the processor time of choosing and compiling. For a look: --layers 2 --budget 0.1.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from variants_chart import drawn

ROOT = Path(__file__).resolve().parent.parent
START, END = "<!-- measured: benchmarks/primitives_page.py -->", "<!-- end of what is measured -->"
Rows = list[dict[str, Any]]


def measured(layers: int, budget: float) -> dict[str, Any]:
    """Everything the page states; `budget` seconds for a layer and a number of threads."""
    from cortex.bench.convolutions import PRODUCTS, RESNET50, run_layer, run_product
    from cortex.bench.machine import figures
    from cortex.bench.ranking import Ranked, authors, here, summary
    from cortex.options import Options

    options = Options.from_environment()
    peak = figures(options.cache, anew=True).peak_gflops
    chosen, ranked = RESNET50[:layers], list[Ranked]()
    conv, matmul, times, variants = Rows(), Rows(), Rows(), Rows()
    for threads in (1, 2):
        for layer in chosen:
            times.append({"layer": layer.name, "threads": threads, **_seconds(layer, threads)})
            conv += [row.as_json() for row in run_layer(layer, 1, threads, budget)]
            print(*(f"{r['layer']} {r['threads']} {r['system']} {r['gflops_best']:.0f}" for r in conv[-2:]), flush=True)
        for product in PRODUCTS[: 2 * layers]:
            matmul += [row.as_json() for row in run_product(product, threads, budget / 2)]
    for layer in chosen:
        ranked.append(here(layer, 4 * budget))
        costs, speeds = ranked[-1].costs["movement"], ranked[-1].speeds
        variants.append({"layer": layer.name, "speeds": speeds, "chosen": speeds[costs.index(min(costs))]})
        print(layer.name, f"{variants[-1]['chosen']:.0f} of {max(speeds):.0f} GFLOP/s", flush=True)
    ranking = [row.as_json() for row in authors(options.data)] if (options.data / "polyscientist").is_dir() else []
    ranking += [row.as_json() for row in summary("here", 1, ranked)]
    peak = max(peak, figures(options.cache, anew=True).peak_gflops)
    return {
        "date": time.strftime("%Y-%m-%d"),
        "peak": peak,
        "conv": conv,
        "matmul": matmul,
        "times": times,
        "variants": variants,
        "ranking": ranking,
    }


def _seconds(layer: Any, threads: int) -> dict[str, float]:
    """Processor time of choosing a variant, and of everything from there to a kernel."""
    import numpy as np

    from cortex.codegen.target import Target
    from cortex.primitives.choose import Ranking
    from cortex.primitives.compiled import finished, machine_of, schedule_of
    from cortex.primitives.convolution import lower, weight_shape
    from cortex.runtime.kernel import Kernel

    target, c = Target.host(), layer.convolution(1)
    f, weight = lower(c), np.zeros(weight_shape(c), np.float32)
    start = time.process_time()
    variant = Ranking(f, machine_of(target), threads=threads).choices[0].variant
    middle = time.process_time()
    Kernel(finished(f, schedule_of(f, variant, target, threads, False)), target, {"w": weight})
    return {"choosing": middle - start, "compiling": time.process_time() - middle}


def pairs(rows: Rows, threads: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Cortex and its peer, cell by cell."""
    of_threads = [row for row in rows if row["threads"] == threads]
    return list(zip(of_threads[::2], of_threads[1::2], strict=True))


def page(data: dict[str, Any]) -> str:
    """The measured part of the page."""
    from cortex.bench.convolutions import RESNET50

    peak, high = data["peak"], {n.name for n in RESNET50 if n.convolution(1).out[0] >= 14}
    lines = [
        f"One machine with AVX-512 and a measured peak of {peak:.0f} GFLOP/s per core, {data['date']}, fastest calls:",
        "",
        "| shapes | threads | cortex, GFLOP/s | over the other, geometric mean (least) |",
        "|---|---|---|---|",
    ]
    for name, other in (("conv", "oneDNN"), ("matmul", "MKL")):
        for threads in (1, 2):
            found = pairs(data[name], threads)
            ratios = [ours["gflops_best"] / theirs["gflops_best"] for ours, theirs in found]
            speeds = [ours["gflops_best"] for ours, _ in found]
            what = f"{len(found)} {'convolutions, batch 1' if name == 'conv' else 'matrix products'}, {other}"
            speed = f"{min(speeds):.0f} to {max(speeds):.0f}"
            lines.append(f"| {what} | {threads} | {speed} | {geometric_mean(ratios):.2f} ({min(ratios):.2f}) |")
    shares = [ours["gflops_best"] / peak for ours, _ in pairs(data["conv"], 1) if ours["layer"] in high]
    lines += [
        "",
        f"Convolutions with results of 14 x 14 points and more run at {geometric_mean(shares):.0%} of the peak",
    ]
    lines[-1] += f" on one core (geometric mean; least {min(shares):.0%})."
    lines += ["", "| convolution | cortex | oneDNN | two threads: cortex | oneDNN |", "|---|---|---|---|---|"]
    for one, two in zip(pairs(data["conv"], 1), pairs(data["conv"], 2), strict=True):
        cells = " | ".join(f"{row['gflops_best']:.0f}" for row in (*one, *two))
        lines.append(f"| {one[0]['shape'].replace('->', '→')} | {cells} |")
    lines += ["", "Speed of the variant that a cost prefers over that of the fastest measured (best of three):", ""]
    lines += ["| measurements | random | published cost | default |", "|---|---|---|---|"]
    for key in dict.fromkeys((row["data"], row["threads"]) for row in data["ranking"]):
        of_key = {row["cost"]: row for row in data["ranking"] if (row["data"], row["threads"]) == key}
        cells = " | ".join(
            f"{of_key[cost]['top']:.3f} ({of_key[cost]['best_of_3']:.3f})"
            for cost in ("random", "working sets", "movement")
        )
        row = of_key["movement"]
        where = "authors'" if key[0] == "authors" else "this machine"
        what = f"{where}, {key[1]} core{'s' * (key[1] > 1)}, {row['layers']} layers, {row['variants']:,} variants"
        lines.append(f"| {what} | {cells} |")
    choosing, compiling = ([t[k] for t in data["times"]] for k in ("choosing", "compiling"))
    lines += [
        "",
        f"Choosing takes {min(choosing):.2f} to {max(choosing):.2f} s of processor time for a layer, compiling",
    ]
    lines[-1] += f" {min(compiling):.2f} to {max(compiling):.2f} s."
    return "\n".join(lines)


def write(root: Path) -> None:
    """Fill the page, and draw its picture, from docs/primitives.json."""
    data = json.loads((root / "docs" / "primitives.json").read_text(encoding="utf-8"))
    file = root / "docs" / "primitives.md"
    block, text = re.compile(f"{re.escape(START)}.*?{re.escape(END)}", re.DOTALL), file.read_text(encoding="utf-8")
    if not block.search(text):
        sys.exit(f"{file} has no block from {START} to {END}")
    filled = f"{START}\n{page(data)}\n{END}"
    file.write_text(block.sub(lambda _: filled, text, count=1), encoding="utf-8")
    onednn = {theirs["layer"]: theirs["gflops_best"] for _, theirs in pairs(data["conv"], 1)}
    (root / "docs" / "variants.svg").write_text(drawn(data["variants"], onednn, data["peak"]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", action="store_true", help="measure nothing")
    parser.add_argument("--root", type=Path, default=ROOT, help="the folder with docs")
    parser.add_argument("--layers", type=int, default=20)
    parser.add_argument("--budget", type=float, default=1.0, help="seconds per cell")
    a = parser.parse_args()
    if not a.pages:
        text = json.dumps(measured(a.layers, a.budget), indent=1)
        (a.root / "docs" / "primitives.json").write_text(text + "\n", encoding="utf-8")
    write(a.root)


if __name__ == "__main__":
    main()

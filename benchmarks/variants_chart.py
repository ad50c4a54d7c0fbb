"""docs/variants.svg: how fast the variants of each layer of ResNet-50 are, with the chosen one and oneDNN marked.

    python benchmarks/variants_chart.py docs/variants.svg [seconds per layer]

Also prints how the costs rank what was measured. One thread; about ten seconds per layer.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cortex.bench.convolutions import RESNET50, run_layer
from cortex.bench.ranking import Ranked, here, summary
from cortex.codegen.target import Target
from cortex.primitives.compiled import machine_of

ROW, LEFT, WIDE, TOP = 22, 190, 560, 46
STYLE = """
  svg { --ink: #1f2328; --soft: #59636e; --grid: #d8dee4; --paper: #ffffff; --ours: #0969da; --other: #bc4c00; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --soft: #9198a1; --grid: #2b3138; --paper: #0d1117; --ours: #4493f8; --other: #f0883e; }
  }
  text { font: 12px system-ui, sans-serif; fill: var(--ink); } .soft { fill: var(--soft); }
  .paper { fill: var(--paper); } .grid { stroke: var(--grid); } .dot { fill: var(--soft); opacity: 0.35; }
  .ours { fill: var(--ours); } .other { stroke: var(--other); stroke-width: 2.5; }
"""


def main() -> None:
    """Measure, print, draw."""
    file, seconds = Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 5.0
    peak = machine_of(Target.host()).peak
    found: list[Ranked] = []
    onednn: list[float] = []
    for layer in RESNET50:
        found.append(here(layer, seconds))
        onednn.append(run_layer(layer, 1, 1, seconds / 3)[1].gflops_best)
        print(layer.name, layer.shape(), f"{_chosen(found[-1]):.0f} of {max(found[-1].speeds):.0f} GFLOP/s", flush=True)
    for row in summary("here", 1, found):
        print(f"{row.cost}: preferred {row.top:.3f}, best of three {row.best_of_3:.3f}, spearman {row.spearman:.2f}")
    file.write_text(drawn(found, onednn, peak), encoding="utf-8")


def _chosen(layer: Ranked) -> float:
    """The speed of the variant that the default cost prefers."""
    costs = layer.costs["movement"]
    return layer.speeds[costs.index(min(costs))]


def drawn(found: list[Ranked], onednn: list[float], peak: float) -> str:
    """The picture: a line per layer, a dot per variant."""
    height = TOP + ROW * len(found) + 34
    width = LEFT + WIDE + 30

    def x(speed: float) -> float:
        return LEFT + WIDE * min(1.05, speed / peak) / 1.05

    parts = [f'<text x="14" y="24">Variants of ResNet-50\'s convolutions, one core: share of {peak:.0f} GFLOP/s</text>']
    for share in range(0, 101, 20):
        at, bottom = x(peak * share / 100), TOP + ROW * len(found)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 6}" y2="{bottom}"/>')
        parts.append(f'<text class="soft" x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{share}%</text>')
    for number, (layer, measured, theirs) in enumerate(zip(RESNET50, found, onednn, strict=True)):
        y = TOP + ROW * number + ROW / 2
        parts.append(f'<text x="14" y="{y + 4}">{layer.shape().replace("->", "→")}</text>')
        parts += [f'<circle class="dot" cx="{x(s):.1f}" cy="{y}" r="3"/>' for s in measured.speeds]
        parts.append(f'<line class="other" x1="{x(theirs):.1f}" x2="{x(theirs):.1f}" y1="{y - 8}" y2="{y + 8}"/>')
        parts.append(f'<circle class="ours" cx="{x(_chosen(measured)):.1f}" cy="{y}" r="4.5"/>')
    legend = "grey: variants; blue: chosen without running any; orange bar: oneDNN"
    parts.append(f'<text class="soft" x="14" y="{height - 8}">{legend}</text>')
    inner = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f'<style>{STYLE}</style>\n<rect class="paper" width="{width}" height="{height}" rx="6"/>\n{inner}\n</svg>\n'
    )


if __name__ == "__main__":
    main()

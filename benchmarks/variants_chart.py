"""docs/variants.svg: how fast the variants of each layer of ResNet-50 are, with the chosen one and oneDNN marked."""

from __future__ import annotations

from typing import Any

from cortex.bench.convolutions import RESNET50

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


def drawn(found: list[dict[str, Any]], onednn: dict[str, float], peak: float) -> str:
    """The picture: a line per layer with the measured speeds of its variants, a dot for each, in GFLOP/s."""
    shapes = {layer.name: layer.shape().replace("->", "→") for layer in RESNET50}
    height = TOP + ROW * len(found) + 34
    width = LEFT + WIDE + 30

    def x(speed: float) -> float:
        return LEFT + WIDE * min(1.05, speed / peak) / 1.05

    title = f"Variants of ResNet-50's convolutions, measured on one core: share of {peak:.0f} GFLOP/s"
    parts = [f'<text x="14" y="24">{title}</text>']
    for share in range(0, 101, 20):
        at, bottom = x(peak * share / 100), TOP + ROW * len(found)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 6}" y2="{bottom}"/>')
        parts.append(f'<text class="soft" x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{share}%</text>')
    for number, layer in enumerate(found):
        y, theirs = TOP + ROW * number + ROW / 2, onednn[layer["layer"]]
        parts.append(f'<text x="14" y="{y + 4}">{shapes[layer["layer"]]}</text>')
        parts += [f'<circle class="dot" cx="{x(s):.1f}" cy="{y}" r="3"/>' for s in layer["speeds"]]
        parts.append(f'<line class="other" x1="{x(theirs):.1f}" x2="{x(theirs):.1f}" y1="{y - 8}" y2="{y + 8}"/>')
        parts.append(f'<circle class="ours" cx="{x(layer["chosen"]):.1f}" cy="{y}" r="4.5"/>')
    legend = "grey: variants; blue: chosen without running any; orange bar: oneDNN"
    parts.append(f'<text class="soft" x="14" y="{height - 8}">{legend}</text>')
    inner = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f'<style>{STYLE}</style>\n<rect class="paper" width="{width}" height="{height}" rx="6"/>\n{inner}\n</svg>\n'
    )

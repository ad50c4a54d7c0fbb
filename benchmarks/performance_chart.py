"""docs/performance.svg: latency of every cell on a logarithmic scale, one column of dots per number of threads.

The colours follow the reader's light or dark scheme; shapes differ as well as colours.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from math import ceil, floor, log10

from performance_figures import OURS, Cell, on, thread_counts

ROW, GAP, LABELS, PANEL, BETWEEN, TOP, BOTTOM, MARGIN = 17, 9, 166, 384, 30, 92, 28, 18
LEGEND = 840
CHARACTER = 6.1  # width of one in the legend

STYLE = """
  svg { --ink: #1f2328; --soft: #59636e; --grid: #d8dee4; --span: #afb8c1; --paper: #ffffff;
        --cortex: #0a58ca; --tables: #12a594; --eager: #8c959f; --batched: #d9730d; --peer: #8250df; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --soft: #9198a1; --grid: #2b3138; --span: #4a525b; --paper: #0d1117;
          --cortex: #58a6ff; --tables: #3dd6c4; --eager: #7d8590; --batched: #f0883e; --peer: #bc8cff; } }
  .paper { fill: var(--paper) }
  text { font: 11.5px system-ui, -apple-system, "Segoe UI", sans-serif; fill: var(--ink) }
  .title { font-size: 15px; font-weight: 600 } .soft { fill: var(--soft) } .head { font-weight: 600 }
  .grid { stroke: var(--grid) } .span { stroke: var(--span); stroke-width: 1.5 }
  .cortex { fill: var(--cortex) } .tables { fill: var(--paper); stroke: var(--tables); stroke-width: 2 }
  .eager { fill: var(--eager) } .batched { fill: var(--batched) } .peer { fill: var(--peer) }
  .limit { stroke: var(--ink); stroke-width: 2.5 }
"""


def chart(cells: list[Cell], date: str, machine: str) -> str:
    """The picture as SVG text."""
    panels = thread_counts(cells)
    rows = on(cells, panels[0])
    groups = [list(group) for _, group in groupby(rows, lambda c: c.model)]
    bottom = TOP + sum(len(g) * ROW + GAP for g in groups)
    width = max(LEGEND, MARGIN + LABELS + len(panels) * (PANEL + BETWEEN) - BETWEEN + MARGIN)
    height = bottom + BOTTOM
    times = [us for cell in cells for us in cell.us.values()]
    scale = _Scale(floor(2 * log10(min(times))) / 2, ceil(2 * log10(max(times))) / 2)
    body = [
        f'<text class="title" x="{MARGIN}" y="26">Latency per batch, from Python objects to arrays</text>',
        f'<text class="soft" x="{MARGIN}" y="44">median, microseconds, logarithmic; further left is faster. '
        f"{_escape(machine)}, {date}</text>",
        *_legend(cells),
        *_labels(groups),
    ]
    for number, threads in enumerate(panels):
        left = MARGIN + LABELS + number * (PANEL + BETWEEN)
        body += _panel(groups, {c.name: c for c in on(cells, threads)}, threads, left, bottom, scale)
    inner = "\n".join(body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="Latency of Cortex, its peers and the limit of the machine, cell by cell">\n'
        f"<style>{STYLE}</style>\n"
        f'<rect class="paper" width="{width}" height="{height}" rx="6"/>\n{inner}\n</svg>\n'
    )


class _Scale:
    """Powers of ten from `low` to `high`, over the width of a panel."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def x(self, us: float) -> float:
        return round(PANEL * (log10(us) - self.low) / (self.high - self.low), 1)

    def ticks(self) -> Iterator[tuple[float, str]]:
        for power in range(ceil(self.low), floor(self.high) + 1):
            unit, size = ("s", 1e6) if power >= 6 else ("ms", 1e3) if power >= 3 else ("µs", 1.0)
            yield self.x(10.0**power), f"{10.0**power / size:g} {unit}"


def _panel(
    groups: list[list[Cell]], by_name: dict[str, Cell], threads: int, left: int, bottom: int, scale: _Scale
) -> Iterator[str]:
    plural = "threads" if threads > 1 else "thread"
    yield f'<g transform="translate({left} 0)">'
    yield f'<text class="head" x="0" y="{TOP - 8}">{threads} {plural}</text>'
    for x, text in scale.ticks():
        yield f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom - GAP}"/>'
        yield f'<text class="soft" x="{x}" y="{bottom + 10}" text-anchor="middle">{text}</text>'
    y = TOP
    for group in groups:
        for each in group:
            yield from _line(by_name[each.name], y + ROW / 2, scale)
            y += ROW
        y += GAP
    yield "</g>"


def _line(cell: Cell, y: float, scale: _Scale) -> Iterator[str]:
    shown = [("eager", cell.us["torch-eager"]), ("batched", cell.us["torch-batched"])]
    if cell.best_peer not in ("torch-batched", "torch-eager"):
        shown.append(("peer", cell.us[cell.best_peer]))
    shown += [("tables", cell.us["cortex-tables"]), ("limit", cell.us["limit"]), ("cortex", cell.us[OURS])]
    xs = [scale.x(us) for _, us in shown]
    yield f'<line class="span" x1="{min(xs)}" x2="{max(xs)}" y1="{y}" y2="{y}"/>'
    for (style, _), x in zip(shown, xs, strict=True):
        yield _mark(style, x, y)


def _mark(style: str, x: float, y: float) -> str:
    match style:
        case "limit":
            return f'<line class="limit" x1="{x}" x2="{x}" y1="{y - 6.5}" y2="{y + 6.5}"/>'
        case "eager":
            return f'<rect class="eager" x="{x - 4}" y="{y - 4}" width="8" height="8"/>'
        case "batched":
            return f'<path class="batched" d="M{x} {y - 5.5}l5 9.5h-10z"/>'
        case "peer":
            return f'<path class="peer" d="M{x} {y - 5.5}l5.5 5.5l-5.5 5.5l-5.5 -5.5z"/>'
        case "tables":
            return f'<circle class="tables" cx="{x}" cy="{y}" r="4"/>'
        case _:
            return f'<circle class="cortex" cx="{x}" cy="{y}" r="5"/>'


def _legend(cells: list[Cell]) -> Iterator[str]:
    entries = [
        ("limit", "limit of the machine"),
        ("cortex", "cortex"),
        ("tables", "cortex with tables"),
        ("batched", "torch-batched"),
        ("eager", "torch-eager"),
    ]
    others = sorted({c.best_peer for c in cells} - {"torch-batched", "torch-eager"})
    if others:
        entries.insert(3, ("peer", f"best other peer ({', '.join(others)})"))
    x = MARGIN + 5.0
    for style, text in entries:
        yield _mark(style, x, 60)
        yield f'<text x="{x + 11}" y="64">{text}</text>'
        x += 11 + CHARACTER * len(text) + 18


def _labels(groups: list[list[Cell]]) -> Iterator[str]:
    y = TOP
    for group in groups:
        yield f'<text class="head" x="{MARGIN}" y="{y + 13}">{group[0].model}</text>'
        for cell in group:
            at = MARGIN + LABELS - 12
            yield f'<text class="soft" x="{at}" y="{y + 13}" text-anchor="end">{cell.hidden}, batch {cell.batch}</text>'
            y += ROW
        y += GAP


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")

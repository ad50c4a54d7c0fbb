"""A report as one self-contained page: timeline, phases, the structure by levels, schedule and loop nest.

Everything is inline; the page asks no network for anything. Bars and lanes are boxes placed in percent, so the page
fits any width without being drawn anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from string import Template

from cortex.ilir.ir import Case, Func, Switch
from cortex.ilir.show import show_stmts
from cortex.ir.node import rewrite
from cortex.lower.linear_form import LinearForm
from cortex.runtime.report import Report, Span, size_text
from cortex.runtime.tree_drawing import colour_of_kind, colour_of_phase, draw

LEVELS = ("L1", "L2", "beyond L2")
MOST_GROUPS = 60


def page(r: Report, form: LinearForm, f: Func) -> str:
    """The HTML of a report on the request `form` of the program `f`."""
    template = Template(files("cortex.runtime").joinpath("report_page.html").read_text(encoding="utf-8"))
    kinds = ", ".join(f"{n} {name}" for name, n in r.kinds.items() if n)
    return template.substitute(
        title=escape(f"{r.model}: {r.nodes} nodes in {len(r.groups)} groups"),
        lead=escape(f"{r.structures} structure{'s' * (r.structures != 1)}, {kinds}; {r.machine}"),
        cards="".join(_cards(r)),
        timeline="".join(_timeline(r)),
        phases=_phases(r),
        tree=draw(form, list(r.kinds)),
        groups=_groups(r),
        group_note=_group_note(r),
        schedule=escape(repr(r.schedule)),
        loops=escape(outline(f)),
    )


def outline(f: Func) -> str:
    """The loops of a program in short: of the tiles with fewer rows only the tallest, polynomials of tanh left out."""

    def tallest(n: object) -> object:
        if isinstance(n, Switch) and len(n.cases) > 1:
            last = max(n.cases, key=lambda c: c.value)
            return Switch(n.value, (Case(last.value, last.body),))
        return n

    lines: list[str] = []
    for line in show_stmts(tuple(rewrite(s, tallest) for s in f.body)).splitlines():
        if re.match(r"\s*let m\d+: f32", line):
            dots = line[: len(line) - len(line.lstrip())] + "..."
            if lines and lines[-1] == dots:
                continue
            line = dots
        lines.append(line)
    return "\n".join(lines)


def _us(us: float) -> str:
    return f"{us / 1e3:.2f} ms" if us >= 1e4 else f"{us:.0f} us" if us >= 100 else f"{us:.1f} us"


def _cards(r: Report) -> Iterator[str]:
    operations = sum(p.operations for p in r.phases)
    values = (
        (_us(r.call_us), "whole call from Python"),
        (_us(r.measured_us), "compiled function"),
        (_us(r.predicted_us), "predicted for it"),
        (_us(r.linearize_us), "linearizing"),
        (f"{operations / 1e6:.1f} M", f"operations, {operations / max(r.measured_us, 1e-9) / 1e3:.0f} GFLOP/s"),
        (str(r.barriers), "barriers"),
    )
    for value, name in values:
        yield f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>"


def _timeline(r: Report) -> Iterator[str]:
    total = max((end for *_, end in r.spans), default=0.0) or 1.0
    threads = max((thread for thread, *_ in r.spans), default=0) + 1
    for thread in range(threads):
        yield f'<p class="lane-name">thread {thread}</p><div class="timeline"><div class="lane">'
        yield from _lane(r, [span for span in r.spans if span[0] == thread], total)
        yield "</div>" * (thread < threads - 1)
    yield '<div class="axis">'
    for part in range(5):
        yield f'<span style="left:{25 * part}%">{_us(total * part / 4)}</span>'
    yield '</div></div><div class="legend">'
    for number, p in enumerate(r.phases):
        yield f'<span><span class="dot" style="--of:{colour_of_phase(number)}"></span>{escape(p.label)}</span>'
    yield '</div><p class="note">The fastest of many runs, with the clock read around each phase. '
    yield "Numbers below a lane are groups.</p>"


def _lane(r: Report, spans: list[Span], total: float) -> Iterator[str]:
    """What one thread did, and the groups below it."""
    for _, group, phase, begin, end in spans:
        where = "before the groups" if group is None else f"group {group}, {r.groups[group].nodes} nodes"
        label = escape(f"{r.phases[phase].label}, {where}: {_us(end - begin)} from {_us(begin)} on", quote=True)
        place = f"left:{100 * begin / total:.3f}%;width:{100 * (end - begin) / total:.3f}%"
        style = f"--of:{colour_of_phase(phase)};{place}"
        yield f'<div class="span" data-phase="{phase}" style="{style}" title="{label}"></div>'
    yield '</div><div class="groups">'
    for group in sorted({g for _, g, *_ in spans if g is not None}):
        mine = [(begin, end) for _, g, _, begin, end in spans if g == group]
        first, last = min(b for b, _ in mine), max(e for _, e in mine)
        part = (last - first) / total
        text = f'<b class="{"" if part > 0.06 else "wide"}">{group}</b>' if part > 0.02 else ""
        place = f"left:{100 * first / total:.3f}%;width:{100 * (last - first) / total:.3f}%"
        yield f'<span style="{place}" title="group {group}">{text}</span>'
    yield "</div>"


def _phases(r: Report) -> str:
    most = max((max(p.measured_us, p.predicted_us) for p in r.phases), default=0.0) or 1.0
    levels = [level for level in LEVELS if any(p.bytes_by_level.get(level) for p in r.phases)]
    rows = []
    for number, p in enumerate(r.phases):
        bars = "".join(f'<i style="--w:{100 * us / most:.1f}%"></i>' for us in (p.measured_us, p.predicted_us))
        cells = [
            f'<span class="dot" style="--of:{colour_of_phase(number)}"></span>{escape(p.label)}',
            _us(p.measured_us),
            _us(p.predicted_us),
            f'<div class="bars" style="--of:{colour_of_phase(number)}">{bars}</div>',
            escape(p.bound),
            f"{p.operations / 1e6:.2f} M",
            size_text(p.loaded),
            size_text(p.stored),
            *(size_text(p.bytes_by_level.get(level, 0.0)) for level in levels),
        ]
        rows.append(f'<tr data-phase="{number}">{"".join(f"<td>{c}</td>" for c in cells)}</tr>')
    head = (
        "phase",
        "measured",
        "predicted",
        "",
        "bound by",
        "operations",
        "loaded",
        "stored",
        *(f"from {x}" for x in levels),
    )
    return _table(head, rows)


def _groups(r: Report) -> str:
    most = max((max(g.measured_us, g.predicted_us) for g in r.groups), default=0.0) or 1.0
    kinds = list(r.kinds)
    rows = []
    for number, g in enumerate(r.groups[:MOST_GROUPS]):
        of = colour_of_kind(kinds.index(g.kind))
        bars = "".join(f'<i style="--w:{100 * us / most:.1f}%"></i>' for us in (g.measured_us, g.predicted_us))
        cells = [
            str(number),
            f'<span class="dot" style="--of:{of}"></span>{escape(g.kind)}',
            str(g.nodes),
            _us(g.measured_us),
            _us(g.predicted_us),
            f'<div class="bars" style="--of:{of}">{bars}</div>',
        ]
        rows.append(f"<tr>{''.join(f'<td>{c}</td>' for c in cells)}</tr>")
    return _table(("group", "kind", "nodes", "measured", "predicted", ""), rows, "compact")


def _group_note(r: Report) -> str:
    notes = []
    if any(g.measured_us == 0 for g in r.groups):
        notes.append("Groups with no time have all their work before the loop over groups.")
    if len(r.groups) > MOST_GROUPS:
        notes.append(f"The first {MOST_GROUPS} of {len(r.groups)} groups are listed.")
    return f'<p class="note">{" ".join(notes)}</p>' if notes else ""


def _table(head: Sequence[str], rows: list[str], style: str = "") -> str:
    top = "".join(f"<th>{escape(h)}</th>" for h in head)
    return f'<table class="{style}"><thead><tr>{top}</tr></thead><tbody>{"".join(rows)}</tbody></table>'

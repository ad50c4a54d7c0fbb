"""A request drawn as SVG: one row per level, a band behind each, nodes coloured by kind."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from cortex.lower.linear_form import LinearForm
from cortex.runtime.storage import Array

MOST_NODES = 400
RADIUS, LEFT = 5, 92
SIDEWAYS = 10  # levels per column from which on the drawing lies on its side
WIDTH, HEIGHT = 1120, 1200  # what the drawing keeps to, where nodes then stay apart


def colour_of_phase(number: int) -> str:
    """The page's colour of a phase."""
    return f"var(--c{number % 8})"


def colour_of_kind(number: int) -> str:
    """The page's colour of a kind; the first kinds have colours that the first phases have not."""
    return f"var(--c{(number + 4) % 8})"


def draw(form: LinearForm, kinds: Sequence[str]) -> str:
    """The structures of a request, as many as fit, each node above its children; long chains lie on their side."""
    children = _children(form)
    shown, whole = _shown(form, children)
    height = _heights(children)
    x = _columns(children, shown, height)
    levels = max((height[n] for n in shown), default=0) + 1
    columns = int(max(x.values(), default=0)) + 1
    sideways = levels > SIDEWAYS * columns
    svg = _picture(form, kinds, children, shown, height, x, sideways)
    legend = "".join(
        f'<span><span class="dot" style="--of:{colour_of_kind(k)}"></span>{escape(name)}</span>'
        for k, name in enumerate(kinds)
    )
    left_out = "" if whole else f'<p class="note">{len(shown)} of {form.sizes["num_nodes"]} nodes are drawn.</p>'
    return f'<div class="scroll">{svg}</div><div class="legend">{legend}</div>{left_out}'


def _picture(
    form: LinearForm,
    kinds: Sequence[str],
    children: list[list[int]],
    shown: list[int],
    height: list[int],
    x: dict[int, float],
    sideways: bool,
) -> str:
    top = max((height[n] for n in shown), default=0)
    columns = max(x.values(), default=0) + 1
    step = max(15.0, min(34.0, (WIDTH - LEFT) / columns))
    row = 18 if sideways else max(16, min(34, HEIGHT // (top + 1)))
    along, across = row * (top + 1), (0 if sideways else LEFT) + step * columns + 10
    width, tall = (along, across) if sideways else (across, along)

    def place(n: int) -> tuple[float, float]:
        aside = (0 if sideways else LEFT) + step * (x[n] + 0.5)
        return (row * (height[n] + 0.5), aside) if sideways else (aside, row * (top - height[n] + 0.5))

    parts = []
    for level in range(top + 1):
        label = _level_text(form, height, level)
        if sideways:
            parts.append(
                f'<rect class="row" x="{row * level + 1}" y="0" width="{row - 2}" height="{tall:.0f}" rx="5">'
                f"<title>{label}</title></rect>"
            )
            continue
        y = row * (top - level)
        parts.append(f'<rect class="row" x="0" y="{y + 1}" width="{width:.0f}" height="{row - 2}" rx="5"/>')
        parts.append(f'<text x="8" y="{y + row / 2 + 4:.0f}">{label}</text>')
    for n in shown:
        for child in children[n]:
            (x0, y0), (x1, y1) = place(n), place(child)
            parts.append(f'<path class="edge" d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}"/>')
    kind_of = _kinds(form)
    for n in shown:
        cx, cy = place(n)
        label = escape(f"node {n}, {kinds[kind_of[n]]}, height {height[n]}")
        parts.append(
            f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="{RADIUS}" fill="{colour_of_kind(kind_of[n])}">'
            f"<title>{label}</title></circle>"
        )
    size = f'width="{width:.0f}" height="{tall:.0f}"'
    return f'<svg {size} role="img" aria-label="the structure by levels">{"".join(parts)}</svg>'


def _kinds(form: LinearForm) -> dict[int, int]:
    """The kind of each node."""
    groups = zip(*(form.arrays[f"group_{a}"].tolist() for a in ("start", "len", "kind")), strict=True)
    return {n: k for start, length, k in groups for n in range(start, start + length)}


def _children(form: LinearForm) -> list[list[int]]:
    """The children of each node, in order."""
    children: list[list[int]] = [[] for _ in range(form.sizes["num_nodes"])]
    for name, array in form.arrays.items():
        if name.startswith("child_"):
            for n, child in enumerate(array.tolist()):
                if child >= 0:
                    children[n].append(child)
        elif name.endswith("_ptr"):
            ends: Array = form.arrays[f"{name.removesuffix('_ptr')}_child"]
            for n, (low, high) in enumerate(zip(array.tolist(), array.tolist()[1:], strict=False)):
                children[n].extend(ends[low:high].tolist())
    return children


def _shown(form: LinearForm, children: list[list[int]]) -> tuple[list[int], bool]:
    """The nodes of the first structures, until there are enough; and whether that is all."""
    seen: dict[int, None] = {}
    for root in form.arrays["root"].tolist():
        stack: list[int] = [root]
        new: dict[int, None] = {}
        while stack:
            n = stack.pop()
            if n not in seen and n not in new:
                new[n] = None
                stack.extend(reversed(children[n]))
        if seen and len(seen) + len(new) > MOST_NODES:
            return list(seen), False
        seen |= dict.fromkeys(list(new)[:MOST_NODES] if not seen else new)
    if len(seen) < len(children):
        return [n for n in seen if all(c in seen for c in children[n])], False
    return list(seen), True


def _heights(children: list[list[int]]) -> list[int]:
    """Children have higher ids than their parents, so one sweep from the last id down finds all heights."""
    height = [0] * len(children)
    for n in range(len(children) - 1, -1, -1):
        height[n] = 1 + max((height[c] for c in children[n]), default=-1)
    return height


def _columns(children: list[list[int]], shown: list[int], height: list[int]) -> dict[int, float]:
    """Where each node stands: leaves side by side, parents above the middle of their children.

    Structures with shared nodes have no such order; their rows are simply centred.
    """
    parents = [0] * len(children)
    for n in shown:
        for c in children[n]:
            parents[c] += 1
    if any(p > 1 for p in parents):
        rows: dict[int, list[int]] = {}
        for n in shown:
            rows.setdefault(height[n], []).append(n)
        widest = max(len(r) for r in rows.values())
        return {n: (widest - len(r)) / 2 + i for r in rows.values() for i, n in enumerate(sorted(r))}
    leaves = [n for n in shown if not children[n]]  # `shown` is in preorder, so these go from left to right
    x: dict[int, float] = {n: float(i) for i, n in enumerate(leaves)}
    for n in sorted(shown, reverse=True):
        if children[n]:
            x[n] = sum(x[c] for c in children[n]) / len(children[n])
    return x


def _level_text(form: LinearForm, height: list[int], level: int) -> str:
    starts = form.arrays["group_start"].tolist()
    lengths = form.arrays["group_len"].tolist()
    here = [g for g, start in enumerate(starts) if height[start] == level]
    names = f"group {here[0]}" if len(here) == 1 else f"groups {here[0]}-{here[-1]}"
    return f"{names}: {sum(lengths[g] for g in here)}"

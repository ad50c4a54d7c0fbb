"""How a step on a recursive model refuses: what was asked, what is wrong, what would be accepted, and where."""

from __future__ import annotations

from textwrap import indent
from typing import NoReturn

from cortex.errors import ScheduleError
from cortex.ra import ir
from cortex.ra.show import show_guard, show_kind


def refuse(asked: object, reason: str, m: ir.Model, kind: ir.Kind | None = None) -> NoReturn:
    """Raise the refusal of a step, showing the kind it is about."""
    place = "" if kind is None else f"\n\n  in {m.name}:\n{indent(show_kind(kind, _states(m)), '    ')}"
    raise ScheduleError(f"{asked}: {reason}{place}")


def refuse_model(asked: object, reason: str, m: ir.Model) -> NoReturn:
    """Raise the refusal of a step, showing what kinds the model has."""
    shown = "\n".join(f"    kind {k.name}: {show_guard(k.guard)}" for k in m.kinds)
    raise ScheduleError(f"{asked}: {reason}\n\n  in {m.name}:\n{shown}")


def refuse_unrolled(asked: object, m: ir.Model) -> None:
    """Raise the refusal of a step that cannot follow `UnrollRecursion`, if that has been applied."""
    if any(kind.variant_of for kind in m.kinds):
        refuse_model(asked, "the recursion is unrolled; only steps on loops can follow. Put this step before.", m)


def refuse_positions(asked: object, m: ir.Model) -> None:
    """Raise the refusal of a step that knows nodes of the user's only, where items of lists are nodes too."""
    if m.positions:
        refuse_model(asked, f"steps over the items of '{m.positions[0].relation}' are nodes of the model.", m)


def find_kind(m: ir.Model, name: str, asked: object) -> ir.Kind:
    """The kind called `name`; a refusal that names all kinds when there is none."""
    for kind in m.kinds:
        if kind.name == name:
            return kind
    refuse(asked, f"{m.name} has no kind {name!r}. Its kinds: {', '.join(k.name for k in m.kinds)}.", m)


def _states(m: ir.Model) -> tuple[str, ...]:
    return tuple(s.name for s in m.states)

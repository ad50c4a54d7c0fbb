"""Refusing a recursion step, with the kind, or the kinds, that it is about."""

from __future__ import annotations

from typing import NoReturn

from cortex.errors import ScheduleError
from cortex.ra import ir
from cortex.ra.show import show_guard, show_kind


def refuse_kind(asked: object, reason: str, m: ir.Model, kind: ir.Kind) -> NoReturn:
    """Raise the refusal of a step, showing the kind it is about."""
    text = show_kind(kind, tuple(s.name for s in m.states))
    shown = "\n".join(f"    {line}" for line in text.splitlines())
    raise ScheduleError(f"{asked}: {reason}\n\n  in {m.name}:\n{shown}")


def refuse_model(asked: object, reason: str, m: ir.Model) -> NoReturn:
    """Raise the refusal of a step, showing what kinds the model has."""
    shown = "\n".join(f"    kind {k.name}: {show_guard(k.guard)}" for k in m.kinds)
    raise ScheduleError(f"{asked}: {reason}\n\n  in {m.name}:\n{shown}")

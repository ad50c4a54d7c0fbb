"""Which kinds of a model are for one number of children each, and why."""

from __future__ import annotations

from collections.abc import Mapping

from cortex.frontend.arity.list_items import itemized_guard
from cortex.frontend.arity.widen import open_lengths
from cortex.frontend.decision import DecisionTree
from cortex.frontend.knowledge import Knowledge
from cortex.ra.ir import Length


def say_why(k: Knowledge, tree: DecisionTree, names: Mapping[int, str]) -> list[str]:
    """A line for each reason that kinds with children could not be made one; `names` are those of kinds by identity."""
    lines = []
    for guard, reason in tree.per_arity.items():
        lists = tuple(f.test.name for f in guard if isinstance(f.test, Length) and f.answer is None)
        alike = [
            names[id(kind)]
            for kind in tree.order
            if open_lengths(itemized_guard(k, kind.guard, lists), lists) == guard
            and any(f.answer for f in kind.guard if isinstance(f.test, Length) and f.test.name in lists)
        ]
        if alike:
            said = " and ".join(f"'{name}'" for name in lists)
            lines.append(f"one kind for each number of children in {said} ({', '.join(alike)}): {reason}")
    return lines

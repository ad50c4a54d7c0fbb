"""A warning where kinds of node get many: each has code of its own, and new ones are compiled when they come."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from cortex.ra.ir import Equals, Fact, Value

MANY = 32
"""Kinds before the first warning; the next ones come when there are twice as many."""


def warn_of_many_kinds(model: str, count: int, guards: Iterable[tuple[Fact, ...]]) -> None:
    """Say how many kinds there are, and what makes them so many."""
    answers: dict[tuple[str, bool], set[object]] = {}
    others: dict[str, int] = {}
    for fact in (fact for guard in guards for fact in guard):
        match fact.test:
            case Value(name, path):
                answers.setdefault((name, bool(path)), set()).add(fact.answer)
            case Equals(name, value, path):
                answers.setdefault((name, bool(path)), set()).add(value)
            case test if hasattr(test, "name"):
                others[test.name] = others.get(test.name, 0) + 1
    values = sorted(((len(found), *key) for key, found in answers.items()), reverse=True)
    of_child = next((name for _, name, is_of_child in values if is_of_child), None)
    if of_child is not None:
        why = (
            f"What it does depends on '{of_child}' of each child, and every combination is a kind. Index a tensor of "
            f"parameters with an integer field of the child (self.weight[child.{of_child}]), or decide it in the call "
            "for the child."
        )
    elif values and values[0][0] >= count // 4:
        why = (
            f"It looks at the value of '{values[0][1]}', of which there are {values[0][0]} so far. Where numbers "
            f"depend on it, put them into a tensor that is indexed with it (self.table[node.{values[0][1]}]); else "
            "compare it with what matters, or make a field of what follows from it."
        )
    else:
        most = sorted(others, key=lambda name: -others[name])[:3]
        why = f"It asks most about {', '.join(repr(name) for name in most)}: what it does differs from node to node."
    warnings.warn(
        f"'{model}' has {count} kinds of node by now; each is compiled by itself, new ones when they come. {why}",
        stacklevel=2,
    )

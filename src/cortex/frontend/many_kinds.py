"""Kinds of node that get many: each has code of its own, and new ones are compiled when they come."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable

from cortex.ra.ir import Equals, Fact, Value

MANY = 32
"""Kinds before the first warning; the next ones come when there are twice as many."""


def warn_of_many_kinds(model: str, count: int, guards: Iterable[tuple[Fact, ...]], said: Callable[[str], str]) -> None:
    """Say how many kinds there are, and what makes them so many; `said` tells what a name is called in code."""
    warnings.warn(
        f"'{model}' has {count} kinds of node by now; each is compiled by itself, new ones when they come. "
        f"{why_many_kinds(count, guards, said)}",
        stacklevel=3,
    )


def why_many_kinds(count: int, guards: Iterable[tuple[Fact, ...]], said: Callable[[str], str]) -> str:
    """The question that makes the kinds so many, and what to do about it."""
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
        read = re.sub(r"\bnode\b", "child", said(of_child))
        return (
            f"What it does depends on {read}, and every combination is a kind. "
            f"{_in_a_tensor(read, answers[of_child, True])}decide it in the call for the child."
        )
    if values and values[0][0] >= count // 4:
        number, name, _ = values[0]
        return (
            f"It looks at the value of {said(name)}, of which there are {number} so far. "
            f"{_in_a_tensor(said(name), answers[name, False])}compare it with what matters, or make a field of what "
            "follows from it."
        )
    most = sorted(others, key=lambda name: -others[name])[:3]
    return f"It asks most about {', '.join(map(said, most))}: what it does differs from node to node." if most else ""


def _in_a_tensor(read: str, values: set[object]) -> str:
    """How what depends on a value is put into a tensor, up to the `or` of what else can be done."""
    if re.match(r"\w+\(", read):  # type(node)
        return "Where it can, "
    if any(isinstance(value, str) for value in values):
        return (
            "Where numbers depend on it, put them into a tensor, and what is to be looked up there into a dictionary "
            f"of integers that the module or a global name holds: self.table[self.ids[{read}]]. Else "
        )
    return f"Where numbers depend on it, put them into a tensor that is indexed with it (self.table[{read}]); else "

"""Why a node is of no known kind: the question of the kinds' guards that it answers like none of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from cortex.frontend.arity.lengths import CheckedLengths
from cortex.frontend.facts import ORDER, plain
from cortex.frontend.fields import Accessors
from cortex.frontend.missing_entry import missing_entry
from cortex.frontend.torch.accessors import TorchAccessors
from cortex.frontend.torch.steps import NOWHERE
from cortex.ra.ir import (
    Compares,
    Counts,
    Equals,
    Fact,
    HasLength,
    IsAboveLeaves,
    IsLeaf,
    IsNone,
    Length,
    Model,
    Test,
    Value,
)
from cortex.ra.show import INFIX

MOST_TOLD = 120


def why_unknown(m: Model, checked: Sequence[CheckedLengths | None], node: Any, accessors: Accessors) -> str:
    """`node.op is 'Sort', and known is 'Join', 'Scan'`; "" where that takes more than the node itself to say."""
    kinds = list(m.kinds)
    for number in range(max((len(kind.guard) for kind in kinds), default=0)):
        facts = [kind.guard[number] for kind in kinds if len(kind.guard) > number]
        if not facts:
            break
        if len(facts) != len(kinds) or facts[0].test.path:
            return ""
        shown, answer = _answer(m, facts[0].test, node, accessors)
        kinds = [kind for kind, fact in zip(kinds, facts, strict=True) if fact == Fact(fact.test, answer)]
        if not kinds:
            known = ", ".join(dict.fromkeys(repr(fact.answer) for fact in facts))
            return f"{shown} is {answer!r}, and known is {known}"
    return "; ".join(_unchecked(checked[m.kinds.index(kind)], node, accessors) for kind in kinds)


def missing_in_dictionary(m: Model, node: Any, accessors: Accessors) -> str:
    """What to say where every kind finds what the node holds in some dictionary, and there it is not; else ""."""
    if not isinstance(accessors, TorchAccessors):
        return ""
    guards = [{fact.test: fact.answer for fact in kind.guard} for kind in m.kinds]
    asked = {test: None for guard in guards for test in guard if isinstance(test, IsNone) and not test.path}
    for test in asked:
        looked_up = accessors.looks_up(test.name)
        if looked_up is None or any(guard.get(test) for guard in guards):
            continue
        with suppress(*NOWHERE):
            key, read = accessors.key(node, test.name)
            if key is not None and dict.get(looked_up.table, key) is None:
                return missing_entry(key, looked_up.name, read)
    return ""


def _unchecked(checked: CheckedLengths | None, node: Any, accessors: Accessors) -> str:
    """The numbers of children for which nobody has checked that the kind is right."""
    if checked is None:
        return ""
    lengths = {name: len(accessors.items(node, name)) for name in checked.lists}
    if lengths in checked:
        return ""
    known = np.argwhere(checked.table).tolist()
    several = [" and ".join(map(str, numbers)) for numbers in known]
    told = ", ".join(_ranges([n for (n,) in known]) if len(lengths) == 1 else several)
    shown = " and ".join(f"len(node.{name}) is {count}" for name, count in lengths.items())
    return f"{shown}, and known is {told if len(told) < MOST_TOLD else f'{told[:MOST_TOLD]}...'}"


def _ranges(numbers: list[int]) -> list[str]:
    """`1`, `3 to 64`: increasing numbers, those in a row together."""
    ends = [n for n in numbers if n + 1 not in numbers]
    starts = [n for n in numbers if n - 1 not in numbers]
    rows = zip(starts, ends, strict=True)
    return [str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a} to {b}" for a, b in rows]


def _children(m: Model, node: Any, accessors: Accessors) -> list[Any]:
    slots = [accessors.read(node, name, None) for name in m.slots]
    return [x for x in slots if x is not None] + [x for name in m.lists for x in accessors.items(node, name)]


def _answer(m: Model, test: Test, node: Any, accessors: Accessors) -> tuple[str, Any]:
    """The question as a user would write it, and what the node answers."""
    match test:
        case IsLeaf():
            return "node.is_leaf", not _children(m, node, accessors)
        case IsAboveLeaves():
            below = _children(m, node, accessors)
            above = bool(below) and not any(_children(m, child, accessors) for child in below)
            return "(all children of the node are leaves)", above
        case IsNone(name):
            return f"(node.{name} is None)", accessors.read(node, name, None) is None
        case Length(name):
            return f"len(node.{name})", len(accessors.items(node, name))
        case HasLength(name, count):
            return f"(len(node.{name}) == {count})", len(accessors.items(node, name)) == count
        case Equals(name, value):
            return f"(node.{name} == {value!r})", bool(accessors.read(node, name, None) == value)
        case Compares(name, fn, bound):
            value = accessors.read(node, name, None)
            is_number = isinstance(value, int | float | np.number)
            return f"(node.{name} {INFIX[fn]} {bound!r})", bool(ORDER[fn](value, bound)) if is_number else value
        case Value(name):
            return f"node.{name}", plain(accessors.read(node, name, None), name, node)
        case Counts(name, relation):
            equal = accessors.read(node, name, None) == len(accessors.items(node, relation))
            return f"(node.{name} == len(node.{relation}))", bool(equal)

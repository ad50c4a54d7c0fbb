"""Readable, unique names for kinds: "leaf", "inner", "op_Join", "no_left".

They are made from what nodes hold, which may be any text, and are identifiers of at most `MOST` ASCII characters.
"""

from __future__ import annotations

import re
from typing import assert_never

from cortex.frontend.builder import hop_text
from cortex.ra.ir import Compares, Counts, Equals, Fact, HasLength, IsAboveLeaves, IsLeaf, IsNone, Length, Test, Value

MOST = 80
FORM = "form_"
"""What the name of a question about the form of an array begins with (see torch/array_forms.py)."""
OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


def kind_names(guards: list[tuple[Fact, ...]]) -> list[str]:
    """One name per guard; a number tells apart those that would be called the same."""
    names: list[str] = []
    answers: dict[Test, set[Fact]] = {}
    for fact in (fact for guard in guards for fact in guard):
        answers.setdefault(fact.test, set()).add(fact)
    for guard in guards:
        stem = kind_name(tuple(f for f in guard if len(answers[f.test]) > 1 or not _is_form(f)))
        name, number = stem, 2
        while name in names:
            name, number = f"{stem}_{number}", number + 1
        names.append(name)
    return names


def kind_name(guard: tuple[Fact, ...]) -> str:
    """What tells this kind from others: positive answers and missing children."""
    words = [word for fact in guard if (word := _word(fact))]
    if len(words) > 1:
        words = [w for w in words if w != "inner"]
    if not words:
        words = [f"has_{fact.test.name}" for fact in guard if isinstance(fact.test, IsNone)]
    name = "_".join(words)[:MOST] or ("node" if not guard else "other")
    return name if name.isidentifier() else f"kind_{name}"


def _is_form(fact: Fact) -> bool:
    return isinstance(fact.test, Value) and fact.test.name.startswith(FORM)


def _word(fact: Fact) -> str:
    prefix = "".join(f"{hop_text(hop)}_" for hop in fact.test.path)
    match fact.test:
        case IsLeaf():
            word = "leaf" if fact.answer else "inner"
        case IsAboveLeaves():
            word = "above_leaves" if fact.answer else ""
        case IsNone(name):
            word = f"no_{name}" if fact.answer else ""
        case Length(name):
            word = "" if fact.answer is None else f"{name}_{fact.answer}"
        case HasLength(name, count):
            word = f"{name}_{count}" if fact.answer else "" if count else f"some_{name}"
        case Counts():
            word = ""
        case Equals(name, value):
            word = f"{name}_{value}" if fact.answer else ""
        case Compares(name, fn, bound):
            word = f"{name}_{fn if fact.answer else OPPOSITE[fn]}_{bound}"
        case Value(name):
            word = f"{name}_{fact.answer}"
        case _:
            assert_never(fact.test)
    return re.sub(r"\W", "_", prefix + word, flags=re.ASCII) if word else ""

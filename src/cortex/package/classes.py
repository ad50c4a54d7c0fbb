"""Questions about NumPy's classes of numbers, which C has not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

from cortex.frontend.fields import Accessors
from cortex.ra.ir import Fact, Model, Value
from cortex.runtime.linearize import Checked

Guard = tuple[Fact, ...]


def without_classes(m: Model, checked: Sequence[Checked], accessors: Accessors) -> tuple[Model, list[Checked]]:
    """A model, and the guards of its kinds that were traced, without such questions that have one answer in all kinds.

    before:  has x, numpy_class(x) is "", x is 0.0
    after:   has x, x is 0.0

    A number of a C program is then one of the class that the examples had.
    """
    known = _of_one_class((kind.guard for kind in m.kinds), accessors)

    def left(guard: Guard) -> Guard:
        return tuple(fact for fact in guard if not (isinstance(fact.test, Value) and fact.test.name in known))

    kinds = tuple(replace(kind, guard=left(kind.guard)) for kind in m.kinds)
    return replace(m, kinds=kinds), [(left(guard), lengths) for guard, lengths in checked]


def _of_one_class(guards: Iterable[Guard], accessors: Accessors) -> set[str]:
    """The names of such questions with one answer."""
    answers: dict[str, set[object]] = {}
    for fact in chain.from_iterable(guards):
        computed = accessors.computed_by(fact.test.name) if isinstance(fact.test, Value) else None
        if isinstance(fact.test, Value) and computed is not None and computed.fn == "numpy_class":
            answers.setdefault(fact.test.name, set()).add(fact.answer)
    return {name for name, found in answers.items() if len(found) == 1}

"""Numbers and texts that calls are given: data of the call, computed from the caller's by Python's own arithmetic.

    def forward(self, node, depth=0):
        ...
        below = [self(child, depth + 1) for child in node.children]

`depth` is a field of the call, `depth + 1` an expression of the caller's fields and of what the caller is given itself.
Calls on the items of a list are one relation, so they have one expression, in which the item, its position and the
length of the list may stand. Without torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from cortex.frontend.computed import FUNCTIONS, Computed, Constant, constant
from cortex.frontend.torch.steps import At, Given, Steps, follow, replaced

ITEM, POSITION, COUNT = "[item]", "[position]", "[count]"
"""What a relation to the items of a list gives expressions to compute with: no names of parameters."""
OF_ITEM = (ITEM, POSITION, COUNT)
HERE: Steps = (Given(POSITION),)

Number: TypeAlias = Constant | Steps
"""A constant, or what leads to the value from the node of the caller."""
Numbers: TypeAlias = tuple[tuple[str, Number], ...]
"""By parameter, in alphabetical order."""


@dataclass(frozen=True)
class Data:
    """An argument that is a number or a text of the call, rather than a constant of its role."""


@dataclass(eq=False)
class Group:
    """Calls of a role on the items of a list, each with numbers, that are made by one relation."""

    role: str
    way: Steps
    inherits: tuple[tuple[str, str], ...]
    name: str
    """The relation: one that is right for the first item until all of them are known."""
    numbers: dict[int, Numbers] = field(default_factory=dict)
    """By position."""

    def takes(self, item: int, numbers: Numbers) -> bool:
        """Can the call on an item be one of these?"""
        return self.numbers.setdefault(item, numbers) == numbers


def is_number_or_text(value: Any) -> bool:
    """Can calls be given it as data?"""
    return isinstance(value, int | float | str | np.integer | np.floating) and not isinstance(value, bool)


def of_item(numbers: Numbers, way: Steps, at: int) -> Numbers:
    """Numbers for the call on an item of a list, as expressions of the item."""
    item = (*way, At(at))

    def change(steps: Steps) -> Steps:
        return (Given(ITEM), *steps[len(item) :]) if steps[: len(item)] == item else steps

    return tuple((name, x if isinstance(x, Constant) else replaced(x, change)) for name, x in numbers)


def at_item(number: Number, at: int, count: int) -> Number:
    """An expression for all items as it is for the one at a position: what depends on that alone is a constant."""
    if isinstance(number, Constant) or not number:
        return number
    first = number[0]
    known = {POSITION: at, COUNT: count}
    if isinstance(first, Given) and first.name in known:
        return _constant(known[first.name])
    if not isinstance(first, Computed):
        return number
    operands = tuple(at_item(x, at, count) for x in first.operands)
    if operands != first.operands and all(isinstance(x, Constant) for x in operands):
        return _constant(FUNCTIONS[first.fn](*(x.value for x in operands if isinstance(x, Constant))))
    return (replace(first, operands=operands), *number[1:])


def for_all(numbers: Mapping[int, Numbers], count: int) -> Numbers | None:
    """The expressions that give each item its numbers; None where there are none."""
    names = [name for name, _ in next(iter(numbers.values()))]
    found = [_for_all({at: dict(each)[name] for at, each in numbers.items()}, count) for name in names]
    known = [x for x in found if x is not None]
    return tuple(zip(names, known, strict=True)) if len(known) == len(names) else None


def _for_all(numbers: dict[int, Number], count: int) -> Number | None:
    values = list(numbers.values())
    if all(x == values[0] for x in values):
        return values[0]
    constants = {at: x for at, x in numbers.items() if isinstance(x, Constant)}
    if len(constants) == len(numbers):
        return _by_position(constants, count)
    firsts = [x[0] for x in values if not isinstance(x, Constant) and x]
    computed = [x for x in firsts if isinstance(x, Computed)]
    if len(computed) < len(values):
        return None
    (rest,) = (
        {x[1:] for x in values if not isinstance(x, Constant)} if len({_form(x) for x in values}) == 1 else (None,)
    )
    if rest is None:
        return None
    operands = [
        _for_all({at: each.operands[i] for at, each in zip(numbers, computed, strict=True)}, count)
        for i in range(len(computed[0].operands))
    ]
    if any(x is None for x in operands):
        return None
    return (replace(computed[0], operands=tuple(operands)), *rest)


def _form(number: Number) -> Any:
    """What has to be equal for the operands to be looked at one by one."""
    assert not isinstance(number, Constant)
    first = number[0]
    assert isinstance(first, Computed)
    return first.fn, len(first.operands), number[1:]


def _by_position(constants: dict[int, Constant], count: int) -> Number:
    """Constants as a function of the position: a line if they are integers on one, else a list of them."""
    values = {at: x.value for at, x in constants.items()}
    if all(type(value) is int for value in values.values()):
        (a, first), (b, second) = list(values.items())[:2]
        slope, rest = divmod(second - first, b - a)
        start = first - slope * a
        if not rest and all(value == slope * at + start for at, value in values.items()):
            return _line(slope, start, count)
    last = max(values)
    listed = tuple(constants.get(at, constants[last]) for at in range(last + 1))
    return (Computed("getitem", (Constant("tuple", "", listed), HERE)),)


def _line(slope: int, start: int, count: int) -> Number:
    along: Steps = HERE if slope == 1 else (Computed("mul", (_constant(slope), HERE)),)
    if slope < 0 and start == -slope * (count - 1):  # counted from the end of the list
        last: Steps = (Computed("sub", ((Given(COUNT),), _constant(1))),)
        along, start = (Computed("mul", (_constant(-slope), (Computed("sub", (last, HERE)),))),), 0
    return along if start == 0 else (Computed("add", (along, _constant(start))),)


def for_caller(steps: Steps, way: Steps, numbers: Mapping[str, Number]) -> Number:
    """What steps of a call lead to, as its caller gets there: it is made on what `way` leads to, with these numbers."""
    first = steps[0] if steps else None
    if isinstance(first, Given):
        number = numbers[first.name]
        if isinstance(number, Constant):
            return _constant(follow(None, steps, {first.name: number.value}))
        return (*number, *steps[1:])
    if not isinstance(first, Computed):
        return (*way, *steps)
    operands = tuple(x if isinstance(x, Constant) else for_caller(x, way, numbers) for x in first.operands)
    if all(isinstance(x, Constant) for x in operands):
        return _constant(FUNCTIONS[first.fn](*(x.value for x in operands if isinstance(x, Constant))))
    return (replace(first, operands=operands), *steps[1:])


def depends_on_item(numbers: Iterable[tuple[str, Number]]) -> bool:
    """Is something else given to each item of a list?"""
    found = False

    def look(steps: Steps) -> Steps:
        nonlocal found
        found |= bool(steps) and isinstance(steps[0], Given) and steps[0].name in OF_ITEM
        return steps

    for _, x in numbers:
        if not isinstance(x, Constant):
            replaced(x, look)
    return found


def _constant(value: Any) -> Constant:
    found = constant(value)
    assert found is not None
    return found

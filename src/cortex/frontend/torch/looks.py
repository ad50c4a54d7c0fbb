"""Results of calls that decide something although nothing is computed from them.

    below = [self.encode(child) for child in node.children]
    return self.cell(x, sum(h for h in below if h is not None))

What a call returns or stores has one form (a tensor, None, a tuple of two tensors, ...), and that all calls agree on
it is known only of those that are nodes of the model. Code may ask for the form and use no tensor of it. So a call on
whose tensors nothing depends is rehearsed with something else in place of its result: where anything is different then,
the call becomes a node of the model as well, and a call of another form is seen, whenever it comes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from cortex.frontend.builder import Value
from cortex.frontend.signals import Impossible, MissingAttribute, NeedsExample, NeedsStates
from cortex.frontend.torch.calls import PASSING
from cortex.frontend.torch.collected import Addition
from cortex.frontend.torch.forms import Form, without_lists
from cortex.frontend.torch.roles import Role, same_given
from cortex.frontend.torch.steps import Steps

if TYPE_CHECKING:
    from cortex.frontend.torch.routines import Routine
    from cortex.frontend.torch.tracing import TorchBuilder

Call = tuple[str, Steps]
"""The tag of a role, and what it is called on."""


@dataclass(eq=False)
class Look:
    """Something that a call has returned or stored was given to the code."""

    role: Role
    steps: Steps
    looks_up: bool
    lets: set[str] = field(default_factory=set)
    """Its tensors."""

    @property
    def call(self) -> Call:
        """The call."""
        return self.role.tag, self.steps


class Differs(Exception):
    """A rehearsal does something else than the trace."""


def _differs(*_: object) -> NoReturn:
    raise Differs


class Opaque:
    """Is none of the things that code can ask for."""

    __class__ = property(_differs)  # what `isinstance` asks for


for _name in ("bool", "len", "iter", "contains", "getitem", "eq", "ne", "hash", "str", "repr", "format", "getattr"):
    setattr(Opaque, f"__{_name}__", _differs)

SHOWN = (Opaque(), None, False, True)
"""What is shown in place of a result: nothing that is known, and all that `is` can ask for."""


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """A trace that makes the same calls as one before, and gets `shown` for the results of some of them."""

    made: list[tuple[Role, Steps]]
    hidden: frozenset[Call] = frozenset()
    shown: Any = None

    def role_of_call(self, b: TorchBuilder, routine: Routine, steps: Steps, given: dict[str, Any]) -> Role:
        """The role that the call had the first time."""
        role, on = self.made[len(b.made)] if len(b.made) < len(self.made) else (None, ())
        if role is None or role.routine is None or on != steps or not same_given(given, role.given):
            raise Differs
        if role.routine.key != routine.key:
            raise Differs
        return role


Outcome = tuple[Any, ...]
"""All that a trace did: what it asked, what it passed to calls, what it returned and stored."""
Rehearse = Callable[[Rehearsal], Outcome]


def outcome(b: TorchBuilder, result: Any) -> Outcome:
    """What a trace did until it returned `result`."""

    lets: list[str] = []

    def named(values: list[Value]) -> list[str]:
        lets.extend(value.name for value in values)
        return [value.name for value in values]

    def left(value: Any) -> tuple[Form, list[str]]:
        form, values = b.values(value)
        return form, named(values)

    def entry(item: Any) -> Any:
        return (item.role.tag, item.steps, item.collection) if isinstance(item, Addition) else left(item)

    cuts = [
        (cut.role.tag, cut.steps, cut.numbers, {n: named(values) for n, values in cut.passed.items()}) for cut in b.cuts
    ]
    stored = {name: left(value) for name, value in b.results().items()}
    result, lists = without_lists(result, b.role.growing)
    added = {name: [entry(item) for item in items] for name, items in (b.grown | lists).items()}
    returned = left(result)
    return tuple(b.facts.known.items()), cuts, returned, stored, added, b.reachable(tuple(lets))


def deciding(b: TorchBuilder, results: tuple[str, ...], rehearse: Rehearse) -> list[Look]:
    """The calls that decide something in a trace, of those whose tensors the results do not depend on.

    Of a call that only passes values on nothing is asked: it is traced as a whole as well.
    """
    if b.tag.endswith(PASSING):
        return []
    used = {let.name for let in b.reachable(results)}
    idle = [look for look in b.looks.values() if used.isdisjoint(look.lets)]
    if not idle:
        return []
    expected = rehearse(Rehearsal(b.made))
    if _is_alike(idle, b.made, rehearse, expected):
        return []
    return [look for look in idle if not _is_alike([look], b.made, rehearse, expected)] or idle


def _is_alike(looks: list[Look], made: list[tuple[Role, Steps]], rehearse: Rehearse, expected: Outcome) -> bool:
    """Is everything the same whatever these calls return?"""
    hidden = frozenset(look.call for look in looks)
    try:
        return all(rehearse(Rehearsal(made, hidden, shown)) == expected for shown in SHOWN)
    except (Exception, Impossible, MissingAttribute, NeedsExample, NeedsStates):
        return False

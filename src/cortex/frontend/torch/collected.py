"""Lists that recursive calls add to, in the order in which they do: `out.append(h)`, `self.states.append(h)`.

    def encode(self, node, out):
        h = self.cell(node, [self.encode(child, out) for child in node.children])
        out.append(h)
        return h

Each call is traced by itself. In a recursive call, such a list begins with an `Unknown`, for whatever was there before.
In place of all that another call adds, it gets one `Addition`. So the list tells, once the call is traced, what a call
of that kind adds: itself, and what calls that it makes add (`Collect` of RA). In the module's own forward, it gets the
tensors of all calls that add something: items of a list relation whose nodes the linearizer finds in that order
(`Gather` of RA).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn, cast

from cortex.errors import ModelError
from cortex.frontend.builder import Value
from cortex.frontend.facts import Seen
from cortex.frontend.signals import NeedsStates, Restart
from cortex.frontend.spans import fail, span_of_function
from cortex.frontend.torch.calls import PASSING, Added, CallNode
from cortex.frontend.torch.shared_tensors import freeze
from cortex.frontend.torch.standins import is_stand_in
from cortex.frontend.torch.unknown import Unknown
from cortex.ra.ir import Collect, Hop, Item, Length, Slot, State

if TYPE_CHECKING:
    from cortex.frontend.knowledge import Knowledge
    from cortex.frontend.torch.forms import Form
    from cortex.frontend.torch.roles import Role
    from cortex.frontend.torch.steps import Steps
    from cortex.frontend.torch.tracing import TorchBuilder


class Collecting:
    """The token of an argument that is a list to which calls add something."""


COLLECTING = Collecting()


class Addition(Unknown):
    """All that the call of a role on what the steps lead to adds to a collection."""

    def __init__(self, where: str, role: Role, steps: Steps, collection: str) -> None:
        super().__init__(where)
        self.role = role
        self.steps = steps
        self.collection = collection

    def _cortex_refuse(self) -> NoReturn:
        raise fail(
            f"{self._cortex_where} is used in a recursive call, and other calls add to it. Use it in forward, once all "
            "calls have been made."
        )


def added(b: TorchBuilder, where: str, role: Role, steps: Steps, collection: str) -> list[Any]:
    """What a list gets by a call that adds to it: in forward the tensors themselves."""
    if b.role.routine is not None:
        return [Addition(where, role, steps, collection)]
    assert isinstance(b.facts.oracle, Seen)
    name = b.model.links.gathered(b, role, steps, collection)
    node: Any = b.facts.oracle.node
    calls = node.graph.collected(node, b.model.links.relations[name])
    if calls is None or (calls and collection not in role.collected):
        raise NeedsStates  # not every call has been traced
    count = len(calls)
    if not b.tag.endswith(PASSING):  # else nothing of this is needed
        count = cast(int, b.facts.ask(Length(name)))
    if not calls:
        return []
    names, form = role.collected_names(collection), role.collected[collection]
    found = []
    for i in range(count):
        states = (b.emit(State(n, (Item(name, i),)), role.types[n].shape) for n in names)
        found.append(form.rebuild([b.language.of_type(x, kind) for x, kind in zip(states, form.types(), strict=True)]))
    freeze("an entry of a list that recursive calls add to", found)
    return found


def added_by(k: Knowledge) -> Added:
    """Who tells what calls add to collections, by the kinds that have been traced."""

    def entries(call: CallNode, collection: str) -> tuple[Slot | Item | Any, ...] | None:
        kind = k.kind_of(call)
        if kind is None:
            return None
        return next((each.entries for each in kind.collects if each.name == collection), ())

    return entries


def add_to_argument(b: TorchBuilder, name: str, value: Any, role: Role, steps: Steps) -> None:
    """A call was made that adds to the list that it was given."""
    if type(value) is not list:
        raise fail(
            f"{role.tag} adds to its argument '{name}', a list in other calls and a {type(value).__name__} here."
        )
    value += added(b, f"'{name}'", role, steps, name)


def add_outside(b: TorchBuilder, role: Role, steps: Steps) -> None:
    """A call was made that adds to lists which outlive it."""
    if role.grows:
        for said, value in b.around.lists().items():
            if identifier(said) in role.grows:
                value += added(b, said, role, steps, identifier(said))


def collect_outside(b: TorchBuilder) -> None:
    """Note what a recursive call has added to lists that outlive it."""
    if b.role.routine is None:
        return
    grown = {identifier(said): items for said, items in b.around.grown().items()}
    if grown and b.model.mode != "calls":
        b.model.need_calls()
    if not grown.keys() <= b.role.grows:
        b.role.grows |= grown.keys()
        raise Restart
    b.grown |= grown


def identifier(said: str) -> str:
    """The name of a collection that code calls so: `self.states`."""
    return re.sub(r"\W+", "_", said)


def learn_argument(b: TorchBuilder, name: str) -> None:
    """A recursive call adds to a list that it is given: from now on such lists are collections."""
    assert b.role.routine is not None
    b.model.collecting.add((b.role.routine.key, name))
    b.model.need_calls()
    raise Restart


def collect_from_argument(b: TorchBuilder, name: str, value: list[Any]) -> None:
    """Note what a call has added to a list that it was given."""
    assert b.role.routine is not None
    if not value or type(value[0]) is not Unknown:
        raise ModelError(
            f"recursive calls change the list '{name}' in another way than by adding to its end, and each call is "
            "computed by itself. Let them append to it only.",
            span_of_function(b.role.routine.function.__code__),
        )
    b.grown[name] = value[1:]


def collected_values(b: TorchBuilder) -> dict[str, Value]:
    """The states that hold what a call itself adds; what else is added for it becomes part of the trace."""
    role, values, collects = b.role, dict[str, Value](), []
    for collection, items in b.grown.items():
        entries: list[Slot | Item | None] = []
        for item in items:
            if isinstance(item, Addition):
                entries.append(_way_to(b, item, collection))
                continue
            if None in entries:
                raise fail(
                    "a recursive call adds several entries to a list; one is accepted. Add one tensor, "
                    "torch.cat([a, b]), or one tuple, (a, b)."
                )
            entries.append(None)
            if is_stand_in(item):
                raise fail(
                    f"recursive calls add nodes to the list '{collection}'; tensors are accepted. Add what is computed "
                    "from the node, or list the nodes of the structure before the recursion begins."
                )
            form, parts = b.values(item)
            if role.collected.setdefault(collection, form) != form:
                other = role.collected[collection].text()
                raise fail(
                    f"recursive calls add {form.text()} to a list for some nodes and {other} for others; "
                    "entries of one form are accepted."
                )
            values |= zip(role.collected_names(collection), parts, strict=True)
        collects.append(Collect(collection, tuple(entries)))
    b.collects = tuple(collects)
    return values


def _way_to(b: TorchBuilder, item: Addition, collection: str) -> Slot | Item:
    """The way to the call that added something, whose node the call depends on from now on."""
    if item.collection != collection:
        raise fail(
            f"a list to which calls add something is called '{collection}' here and '{item.collection}' in "
            f"{item.role.tag}. Give both the same name."
        )
    hop: Hop = b.model.links.hop(b, item.role, item.steps)
    b.model.links.follow_for_collection(b, hop)
    assert isinstance(hop, Slot | Item)
    return hop


def is_longer(value: Any, before: Form) -> bool:
    """Is this a list that had fewer items when a call was given it?"""
    return type(value) is list and before.kind == "list" and len(value) > len(before.parts)

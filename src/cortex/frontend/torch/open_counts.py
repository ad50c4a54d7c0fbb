"""Lists of children that a call passes values to and gets nothing from: it is of one kind, however many there are.

    def down(self, node, above):
        node.h = self.cell(node.x, above)
        for child in node.children:
            self.down(child, node.h)

What such a call computes depends on no child, so the list is no relation of the model, and kinds of any arity do not
apply. Where the trace is the same for every number from 1 to `MOST`, it is asked whether there are any children, and
whether there are more than that, in place of how many there are. Every kind that asks so is traced for each of these
numbers; one that is not the same for all of them ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cortex.frontend.arity.same_graph import same_graph
from cortex.frontend.arity.supposing import supposing
from cortex.frontend.facts import Answer, Facts
from cortex.frontend.signals import Impossible, MissingAttribute, NeedsExample, NeedsStates, Restart
from cortex.frontend.torch.node_lists import NodeList, NodeTuple
from cortex.frontend.torch.standins import ask_value
from cortex.frontend.torch.steps import LENGTH, Attr, Called, Steps
from cortex.ra.ir import Hop, Item, Kind, Length, State, Test
from cortex.ra.ir import Value as ValueOf

if TYPE_CHECKING:
    from cortex.frontend.torch.tracing import TorchBuilder

MOST = 32
"""Above so many children, each number is a kind of its own."""
TRIED = (1, 2, 3)
"""Where these numbers make no difference, the others are tried."""

Traces = Callable[[Facts], tuple[tuple[str, ...], "TorchBuilder"]]
"""Traces a call anew: the lets of the results, and the graph."""


class OpenCounts:
    """The lists whose numbers of items are not asked for, by the tag of the call and the way to the list."""

    def __init__(self) -> None:
        self._open: set[tuple[str, Steps]] = set()
        self._closed: set[tuple[str, Steps]] = set()
        self._found_right: set[tuple[Any, ...]] = set()
        """Traces that were the same for all numbers."""

    def clear(self) -> None:
        """Start again with other nodes."""
        self._open.clear()
        self._closed.clear()
        self._found_right.clear()

    def ask(self, b: TorchBuilder, steps: Steps) -> None:
        """How many items has the list that the steps lead to, as far as that matters?"""
        name, path = b.where(steps)
        is_open = not path and (b.tag, steps) in self._open
        if is_open and not (ask_value(_more_than(steps, 0)) and ask_value(_more_than(steps, MOST))):
            return
        b.facts.ask(Length(name, path))

    def check(self, b: TorchBuilder, results: tuple[str, ...], trace: Traces) -> None:
        """Open lists on which nothing depends in a trace, and see whether it is right for those that are open."""
        for steps, place in list(b.places.items()):
            key = (b.tag, steps)
            if not isinstance(place, NodeList | NodeTuple) or not 0 < len(place) <= MOST or key in self._closed:
                continue
            if not any(cut.steps[:-1] == steps and cut.passed for cut in b.cuts) or b.where(steps)[1]:
                continue
            known = (b.tag, steps, _asked(b, steps), b.reachable(results), results)
            if known in self._found_right:
                continue
            is_open = key in self._open
            try:
                numbers = range(1, MOST + 1) if is_open else TRIED
                is_right = not _depends(b, steps, results) and all(
                    n == len(place) or _is_alike(b, results, steps, n, trace) for n in numbers
                )
            except NeedsStates:
                continue
            except (Exception, Impossible, MissingAttribute, NeedsExample):
                is_right = False
            if is_right and is_open:
                self._found_right.add(known)
                continue
            (self._open if is_right else self._closed).add(key)
            if is_right or is_open:
                self._open -= self._closed
                raise Restart


def _more_than(steps: Steps, number: int) -> Steps:
    return (*steps, LENGTH, Attr("__gt__"), Called((number,)))


def _tests(b: TorchBuilder, steps: Steps, number: int) -> dict[Test, Answer]:
    """What is asked about the number of items, and the answers for a number."""
    return {ValueOf(b.accessors.name(_more_than(steps, n))): number > n for n in (0, MOST)}


def _names(b: TorchBuilder, steps: Steps) -> list[str]:
    """The list, and the relations that are as long."""
    own = b.where(steps)[0]
    return [own, *(name for name, base in b.knowledge.same_length.items() if base == own)]


def _asked(b: TorchBuilder, steps: Steps) -> tuple[tuple[Test, Answer], ...]:
    """All that is asked but the number of items."""
    about = {*_tests(b, steps, 0), *(Length(name) for name in _names(b, steps))}
    return tuple((test, answer) for test, answer in b.facts.known.items() if test not in about)


def _depends(b: TorchBuilder, steps: Steps, results: tuple[str, ...]) -> bool:
    """Do results depend on calls on the items?"""
    hops: list[Hop] = [let.op.path[0] for let in b.reachable(results) if isinstance(let.op, State)]
    relations = b.model.links.relations
    hops += [entry for each in b.collects for entry in each.entries if entry is not None]
    return any(isinstance(hop, Item) and relations[hop.name].steps == steps for hop in hops if hop.name in relations)


def _is_alike(b: TorchBuilder, results: tuple[str, ...], steps: Steps, number: int, trace: Traces) -> bool:
    """Is the trace for a number of items the same?"""
    lengths = dict.fromkeys(_names(b, steps), number)
    theirs, other = trace(Facts(supposing(b.facts.oracle, lengths, _tests(b, steps, number))))
    return (
        _asked(b, steps) == _asked(other, steps)
        and _called(b, steps) == _called(other, steps)
        and same_graph(Kind("", (), b.reachable(results), results), Kind("", (), other.reachable(theirs), theirs))
    )


def _called(b: TorchBuilder, steps: Steps) -> set[tuple[str, Any]]:
    """What is called on what: of items of the list, whether on all of them."""
    found: dict[str, set[Steps]] = {}
    for cut in b.cuts:
        if cut.steps[:-1] == steps:
            found.setdefault(cut.role.tag, set()).add(cut.steps)
    everything = {(tag, len(items) == len(b.places[steps])) for tag, items in found.items()}
    return everything | {(cut.role.tag, cut.steps) for cut in b.cuts if cut.steps[:-1] != steps}

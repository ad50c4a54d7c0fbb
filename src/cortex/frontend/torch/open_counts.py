"""Lists of children that a call passes values to and gets nothing from: it is of one kind, however many there are.

    def down(self, node, above):
        node.h = self.cell(node.x, above)
        for child in node.children:
            self.down(child, node.h)

What such a call computes depends on no child, so the list is no relation of the model, and kinds of any arity do not
apply. Where the trace is the same for every number from 1 to a bound, it is asked whether there are any children, and
whether there are more than that, in place of how many there are. Every kind that asks so is traced for each of these
numbers; one that is not the same for all of them ends it. The bound is small until a node has more children.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cortex.frontend.arity.same_graph import same_graph
from cortex.frontend.arity.supposing import supposing
from cortex.frontend.facts import Answer, Facts, Seen
from cortex.frontend.signals import Impossible, MissingAttribute, NeedsExample, NeedsStates, Restart
from cortex.frontend.torch.node_lists import NodeList, NodeTuple
from cortex.frontend.torch.standins import ask_value
from cortex.frontend.torch.steps import LENGTH, Attr, Called, Steps
from cortex.ra.ir import Hop, Item, Kind, Length, State, Test
from cortex.ra.ir import Value as ValueOf

if TYPE_CHECKING:
    from cortex.frontend.torch.tracing import TorchBuilder

BOUNDS = (6, 12, 32)
"""Above the last of them, each number is a kind of its own."""
TRIED = (1, 2, 3)
"""Where these numbers make no difference, the others are tried."""

Traces = Callable[[Facts], tuple[tuple[str, ...], "TorchBuilder"]]
"""Traces a call anew: the lets of the results, and the graph."""


class OpenCounts:
    """The lists whose numbers of items are not asked for, by the tag of the call and the way to the list."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, Steps], int] = {}
        """With their bounds."""
        self._drafted: dict[tuple[str, Steps], int] = {}
        """Those that a draft has found: they are open once everything is traced again."""
        self._least = BOUNDS[0]
        self._closed: set[tuple[str, Steps]] = set()
        self._found_right: set[tuple[Any, ...]] = set()
        """Traces that were the same for all numbers."""

    def clear(self) -> None:
        """Start again with other nodes."""
        self._open.clear()
        self._drafted.clear()
        self._closed.clear()
        self._found_right.clear()

    def forgotten(self) -> None:
        """Everything is traced again."""
        self._open |= self._drafted
        self._drafted.clear()

    def raise_bounds(self) -> bool:
        """Have the last bound for all lists, for numbers that nobody can trace later; True if that changes anything."""
        self._least = BOUNDS[-1]
        raised = [key for key, bound in self._open.items() if bound < BOUNDS[-1]]
        self._open |= dict.fromkeys(raised, BOUNDS[-1])
        return bool(raised)

    def ask(self, b: TorchBuilder, steps: Steps) -> None:
        """How many items has the list that the steps lead to, as far as that matters?"""
        name, path = b.where(steps)
        bound = None if path else self._open.get((b.tag, steps))
        if bound is not None:
            if not (ask_value(_more_than(steps, 0)) and ask_value(_more_than(steps, bound))):
                return
            if bound < BOUNDS[-1] and type(b.facts.oracle) is Seen:
                self._open[b.tag, steps] = next(each for each in BOUNDS if each > bound)
                raise Restart
        b.facts.ask(Length(name, path))

    def check(self, b: TorchBuilder, results: tuple[str, ...], trace: Traces, *, is_draft: bool) -> None:
        """Open lists on which nothing depends in a trace and, unless that `is_draft`, see whether it is right for them.

        Where these numbers make no difference in a trace, the list is open, and the others are tried.
        """
        for steps, place in list(b.places.items()):
            key = (b.tag, steps)
            bound = self._open.get(key)
            if not isinstance(place, NodeList | NodeTuple) or not 0 < len(place) <= BOUNDS[-1] or key in self._closed:
                continue
            if not any(cut.steps[:-1] == steps and cut.passed for cut in b.cuts) or b.where(steps)[1]:
                continue
            if key in self._drafted or (bound is not None and (is_draft or len(place) > bound)):
                continue
            known = (b.tag, steps, bound, _asked(b, steps, bound), b.reachable(results), results)
            if known in self._found_right:
                continue
            try:
                numbers = TRIED if bound is None else range(1, bound + 1)
                is_right = not _depends(b, steps, results) and all(
                    n == len(place) or _is_alike(b, results, steps, n, bound, trace) for n in numbers
                )
            except NeedsStates:
                continue
            except (Exception, Impossible, MissingAttribute, NeedsExample):
                is_right = False
            if is_right and bound is not None:
                self._found_right.add(known)
                continue
            if is_right:
                opened = self._drafted if is_draft else self._open
                opened[key] = next(each for each in BOUNDS if each >= max(len(place), self._least))
            else:
                self._closed.add(key)
                self._open.pop(key, None)
            if (is_right and not is_draft) or bound is not None:
                raise Restart


def _more_than(steps: Steps, number: int) -> Steps:
    return (*steps, LENGTH, Attr("__gt__"), Called((number,)))


def _tests(b: TorchBuilder, steps: Steps, number: int, bound: int | None) -> dict[Test, Answer]:
    """What is asked about the number of items, and the answers for a number."""
    bounds = () if bound is None else (0, bound)
    return {ValueOf(b.accessors.name(_more_than(steps, n))): number > n for n in bounds}


def _names(b: TorchBuilder, steps: Steps) -> list[str]:
    """The list, and the relations that are as long."""
    own = b.where(steps)[0]
    return [own, *(name for name, base in b.knowledge.same_length.items() if base == own)]


def _asked(b: TorchBuilder, steps: Steps, bound: int | None) -> tuple[tuple[Test, Answer], ...]:
    """All that is asked but the number of items."""
    about = {*_tests(b, steps, 0, bound), *(Length(name) for name in _names(b, steps))}
    return tuple((test, answer) for test, answer in b.facts.known.items() if test not in about)


def _depends(b: TorchBuilder, steps: Steps, results: tuple[str, ...]) -> bool:
    """Do results depend on calls on the items?"""
    hops: list[Hop] = [let.op.path[0] for let in b.reachable(results) if isinstance(let.op, State)]
    relations = b.model.links.relations
    hops += [entry for each in b.collects for entry in each.entries if entry is not None]
    return any(isinstance(hop, Item) and relations[hop.name].steps == steps for hop in hops if hop.name in relations)


def _is_alike(
    b: TorchBuilder, results: tuple[str, ...], steps: Steps, number: int, bound: int | None, trace: Traces
) -> bool:
    """Is the trace for a number of items the same?"""
    lengths = dict.fromkeys(_names(b, steps), number)
    theirs, other = trace(Facts(supposing(b.facts.oracle, lengths, _tests(b, steps, number, bound))))
    return (
        _asked(b, steps, bound) == _asked(other, steps, bound)
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
    given = {(group.role, group.name) for group in b.groups if group.way == steps}
    return everything | given | {(cut.role.tag, (cut.steps, cut.numbers)) for cut in b.cuts if cut.steps[:-1] != steps}

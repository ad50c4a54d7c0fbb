"""`sorted(node.children, key=...)` in a module: a list of its own, which the linearizer sorts for each node.

The key function runs on what stands for the items. Where it gives the same field of each of them, or the same tuple of
fields, the list is another way to the items (`Sorted` in steps.py) and nothing is asked about their order. Else the
items are compared one by one, as Python does it, and their order decides the kind of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from cortex.frontend.builder import is_tracing
from cortex.frontend.computed import Computed, Constant
from cortex.frontend.torch.node_lists import is_nested
from cortex.frontend.torch.standins import NodeField, TorchNode, present, tracing
from cortex.frontend.torch.steps import At, Given, LookedUp, Sorted, Steps, Way
from cortex.ra.ir import IsNone

if TYPE_CHECKING:
    from cortex.frontend.torch.tracing import TorchBuilder


def meaning_of_sorted(items: Iterable[Any], /, *, key: Callable[[Any], Any] | None = None, reverse: Any = False) -> Any:
    """What `sorted` means for lists of nodes."""
    taken = list(items)
    if not is_tracing() or key is None or type(reverse) not in (bool, int):
        return sorted(taken, key=key, reverse=reverse)
    b = tracing()
    steps = whole_list(b, taken)
    step = None if steps is None else _sorted_by(b, taken, key, bool(reverse))
    if steps is None or step is None:
        return sorted(taken, key=key, reverse=reverse)
    made = list(present(b, (*steps, step)))
    b.knowledge.same_length[b.accessors.name((*steps, step))] = b.accessors.name(steps)
    return made


def whole_list(b: TorchBuilder, items: list[Any]) -> Steps | None:
    """The way to the list of which these are the items, all of them in order; None for other lists."""
    if not items or not all(type(item) is TorchNode for item in items):
        return None
    steps: Steps = items[0]._cortex_steps[:-1]
    if is_nested(steps) or b.accessors.name(steps) in b.model.links.itemized or b.where(steps)[1]:
        return None
    ways = [item._cortex_steps for item in items]
    is_whole = ways == [(*steps, At(i)) for i in range(len(items))] and len(b.places.get(steps, ())) == len(items)
    return steps if is_whole else None


def _sorted_by(b: TorchBuilder, items: list[Any], key: Callable[[Any], Any], reverse: bool) -> Sorted | None:
    """How the items are sorted, if by fields of theirs; what the key function asked of the first is forgotten then.

    A function that asks nothing about an item does the same with all of them. It may treat None in its own way.
    """
    before = dict(b.facts.known)
    found = _of_item(items[0]._cortex_steps, key(items[0]))
    more = [(test, answer) for test, answer in b.facts.known.items() if test not in before]
    if found is None or any(not isinstance(test, IsNone) or answer for test, answer in more):
        return None
    ways = [b.accessors.meant(way) for way in found[0]]
    if any(Way(way, careful=True)(item._cortex_sample) is None for item in items for way in ways):
        return None
    b.facts.known = before
    return Sorted(*found, reverse)


def _of_item(item: Steps, key: Any) -> tuple[tuple[Steps, ...], bool] | None:
    """The ways from an item to its key, or to the parts of it; None where it is no field of the item."""
    parts = key if type(key) is tuple else (key,)
    ways = []
    for part in parts:
        way: Steps = part._cortex_steps if isinstance(part, NodeField) else ()
        if len(way) <= len(item) or way[: len(item)] != item or not _is_own(way[len(item) :]):
            return None
        ways.append(way[len(item) :])
    return tuple(ways), type(key) is tuple


def _is_own(way: Steps) -> bool:
    """Does the way lead from an item to something without what only the call has?"""
    for step in way:
        if isinstance(step, Given | LookedUp):
            return False
        if isinstance(step, Computed) and not all(isinstance(x, Constant) or _is_own(x) for x in step.operands):
            return False
    return True

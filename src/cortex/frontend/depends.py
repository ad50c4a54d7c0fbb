"""Which nodes the results of a real node depend on."""

from __future__ import annotations

from typing import Any

from cortex.frontend.decision import DecisionTree
from cortex.frontend.facts import Path, Seen
from cortex.frontend.knowledge import Knowledge
from cortex.ra.ir import Each, Item, State


def depends_on(k: Knowledge, tree: DecisionTree, node: Any) -> list[Any]:
    """The nodes that the kind of `node` reads or is decided by; all of them where its kind is not known."""
    seen = Seen(node, k)
    kind = tree.find(seen.answer)
    if kind is None:
        return k.children(node)
    paths = dict.fromkeys(let.op.path for let in kind.lets if isinstance(let.op, State))
    read = [below for path in paths for below in _at(seen, path)]
    return [*read, *k.children(node, k.model.decided_by(kind.guard))]


def _at(seen: Seen, path: Path) -> list[Any]:
    """The nodes that a path leads to: several where it goes through each child in a list."""
    match path:
        case (Each(name), *rest):
            count = len(seen.knowledge.accessors.items(seen.node, name))
            return [seen.resolve((Item(name, i), *rest)) for i in range(count)]
        case _:
            return [seen.resolve(path)]

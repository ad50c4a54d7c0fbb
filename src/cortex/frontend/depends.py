"""Which nodes the results of a real node depend on."""

from __future__ import annotations

from typing import Any

from cortex.frontend.decision import DecisionTree
from cortex.frontend.facts import Seen
from cortex.frontend.knowledge import Knowledge
from cortex.ra.ir import State


def depends_on(k: Knowledge, tree: DecisionTree, node: Any) -> list[Any]:
    """The nodes whose states the kind of `node` reads; all that relations lead to where its kind is not known."""
    seen = Seen(node, k)
    kind = tree.find(seen.answer)
    if kind is None:
        return k.children(node)
    paths = dict.fromkeys(let.op.path for let in kind.lets if isinstance(let.op, State))
    return [seen.resolve(path) for path in paths]

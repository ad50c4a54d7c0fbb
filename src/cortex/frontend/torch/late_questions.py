"""What a call asks after it has passed everything on: nothing that it passes depends on it.

A call that passes values to others and needs their results is two nodes (see links.py). The one that passes runs the
whole code too, and would ask about all that follows:

    self.down(tree, zeros); return torch.stack([n.h for n in tree.nodes()]).mean(0)

How many nodes there are is no question for it. It is one where another call is made after it:

    self.down(tree.left, zeros); if tree.right is not None: self.down(tree.right, zeros)

Every such call is traced as a whole as well, which shows where more is passed after the same answers.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from cortex.frontend.signals import Restart
from cortex.frontend.torch.calls import PASSING
from cortex.ra.ir import Fact, Value

if TYPE_CHECKING:
    from cortex.frontend.torch.tracing import TorchBuilder

Asked = tuple[str, tuple[Fact, ...]]
"""The role, and what it had asked when it passed something on."""


class LateQuestions:
    """What roles have asked whenever they passed something on."""

    def __init__(self) -> None:
        self._last: set[Asked] = set()
        self._not_last: set[Asked] = set()
        self._matter: set[str] = set()
        """Roles that pass more or less, depending on what they ask late."""

    def forget(self) -> None:
        """Everything is traced again."""
        self._last.clear()
        self._not_last.clear()

    def drop(self, b: TorchBuilder) -> None:
        """Take late questions out of the facts of a call that only passes."""
        role, cuts = b.role.tag, [cut for cut in b.cuts if cut.passed]
        if not cuts or role in self._matter:
            return
        facts = [Fact(test, answer) for test, answer in b.facts.known.items()]
        asked = [(role, tuple(f for f in facts[: cut.asked] if f.test != Value("call_role"))) for cut in cuts]
        self._last.add(asked[-1])
        self._not_last |= set(asked) - {asked[-1]}
        if not self._last.isdisjoint(self._not_last):
            self._matter.add(role)
            raise Restart
        if b.tag.endswith(PASSING):
            b.facts.known = dict(islice(b.facts.known.items(), cuts[-1].asked))

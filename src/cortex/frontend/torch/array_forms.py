"""The element types and shapes of arrays and tensors on nodes, as facts of the nodes.

    return self.w * len(node.x)

What code does with an array depends on its shape and its element type, so each form of an array makes a kind of node.
The form of a child's array is not asked for as long as the results depend on its elements: kinds of any number of
children ask nothing of single children, and the linearizer refuses a field of another shape than it was traced with.
Where the results do not depend on the elements, they may still depend on the form, which is asked for then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cortex.frontend.signals import Restart
from cortex.frontend.torch.calls import PASSING
from cortex.frontend.torch.categories import form
from cortex.frontend.torch.standins import ask_value
from cortex.frontend.torch.steps import FORM, Steps
from cortex.ra.ir import Field

if TYPE_CHECKING:
    from cortex.frontend.torch.tracing import TorchBuilder


class ArrayForms:
    """The forms of children's arrays that have to be asked for, by the steps from the child."""

    def __init__(self) -> None:
        self._asked: set[Steps] = set()
        self._met: dict[Steps, str] = {}

    def ask(self, b: TorchBuilder, steps: Steps) -> None:
        """Ask for the form of the array that the steps lead to, if it has to be known."""
        name, path = b.where(steps)
        if not path:
            ask_value((*steps, FORM))
            return
        own = b.accessors.steps(name)
        found = form(b.facts.oracle.sample(name, path))
        if self._met.setdefault(own, found) != found:
            self._ask_from_now_on(own)
        if own in self._asked:
            ask_value((*steps, FORM))
        else:
            b.forms_taken.setdefault((name, path), len(b.cuts))

    def check(self, b: TorchBuilder, results: tuple[str, ...]) -> None:
        """Ask from now on for the forms that were taken from a child whose field the results do not depend on."""
        fields = [let.op for let in b.reachable(results) if isinstance(let.op, Field)]
        read = {(b.accessors.steps(field.name), field.path) for field in fields if b.accessors.is_way(field.name)}
        passing = max((i for i, cut in enumerate(b.cuts) if cut.passed), default=-1)
        for (name, path), cuts in b.forms_taken.items():
            own = b.accessors.steps(name)
            is_late = b.tag.endswith(PASSING) and cuts > passing
            if not is_late and not any(at == path and field[: len(own)] == own for field, at in read):
                self._ask_from_now_on(own)

    def _ask_from_now_on(self, own: Steps) -> None:
        if own not in self._asked:
            self._asked.add(own)
            raise Restart

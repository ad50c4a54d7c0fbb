"""Lists and tuples of what stands for nodes, which know the way to the list that they stand for."""

from __future__ import annotations

from typing import Any

from cortex.frontend.torch.calls import ARGUMENT
from cortex.frontend.torch.steps import At, Attr, Steps


class NodeList(list[Any]):
    """What stands for the items of a list that the steps lead to."""

    def __init__(self, steps: Steps, items: list[Any]) -> None:
        super().__init__(items)
        self._cortex_steps = steps


class NodeTuple(tuple[Any, ...]):
    """What stands for the items of a tuple."""

    _cortex_steps: Steps

    def __new__(cls, steps: Steps, items: list[Any]) -> NodeTuple:
        """A tuple of what stands for the items."""
        made = super().__new__(cls, items)
        made._cortex_steps = steps
        return made


def is_nested(steps: Steps) -> bool:
    """Is a list or tuple there a node itself, of a structure that consists of them, rather than what a node holds?"""
    argument = bool(steps) and isinstance(steps[0], Attr) and steps[0].name.startswith(ARGUMENT)
    return all(isinstance(step, At) and isinstance(step.key, int) for step in steps[argument:])

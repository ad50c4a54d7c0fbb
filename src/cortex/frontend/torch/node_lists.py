"""Lists and tuples of what stands for nodes, which know the way to the list that they stand for."""

from __future__ import annotations

from typing import Any

from cortex.frontend.builder import is_tracing
from cortex.frontend.torch.calls import ARGUMENT
from cortex.frontend.torch.steps import At, Attr, Sliced, Steps


class NodeList(list[Any]):
    """What stands for the items of a list that the steps lead to."""

    def __init__(self, steps: Steps, items: list[Any]) -> None:
        super().__init__(items)
        self._cortex_steps = steps

    def __getitem__(self, key: Any) -> Any:
        found = _sliced(self, key)
        return super().__getitem__(key) if found is None else found


class NodeTuple(tuple[Any, ...]):
    """What stands for the items of a tuple."""

    _cortex_steps: Steps

    def __new__(cls, steps: Steps, items: list[Any]) -> NodeTuple:
        """A tuple of what stands for the items."""
        made = super().__new__(cls, items)
        made._cortex_steps = steps
        return made

    def __getitem__(self, key: Any) -> Any:
        found = _sliced(self, key)
        return super().__getitem__(key) if found is None else found


def _sliced(x: NodeList | NodeTuple, key: Any) -> Any:
    """A slice of a list of nodes as a list of its own, where that has been found to be needed; else None."""
    if hasattr(key, "_cortex_steps") and is_tracing():
        return _at_key(x, key)
    if not isinstance(key, slice) or not all(type(n) in (int, type(None)) for n in (key.start, key.stop, key.step)):
        return None
    if is_nested(x._cortex_steps) or not is_tracing():
        return None
    from cortex.frontend.torch.standins import present, tracing

    b = tracing()
    b.model.slices.are_taken = True
    part = Sliced(key.start, key.stop, key.step)
    return present(b, (*x._cortex_steps, part)) if b.model.slices.are_lists else None


def _at_key(x: NodeList | NodeTuple, key: Any) -> Any:
    """The item at a number that a node holds; None where that is computed, so that its value is asked for."""
    from cortex.frontend.torch.keyed import is_key, reached
    from cortex.frontend.torch.standins import tracing

    if not is_key(key):
        return None
    tracing().model.walks.take_item(tracing(), x._cortex_steps)
    return reached(tracing(), "getitem", x._cortex_steps, key)


def is_nested(steps: Steps) -> bool:
    """Is a list or tuple there a node itself, of a structure that consists of them, rather than what a node holds?"""
    argument = bool(steps) and isinstance(steps[0], Attr) and steps[0].name.startswith(ARGUMENT)
    return all(isinstance(step, At) and isinstance(step.key, int) for step in steps[argument:])

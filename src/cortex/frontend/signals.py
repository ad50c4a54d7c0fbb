"""How tracing one kind stops early without being wrong.

Signals are not errors of the model: the driver in `trace` catches every one of them. They derive from
BaseException so that an `except Exception` in the user's model does not swallow them.
"""

from __future__ import annotations


class Signal(BaseException):
    """Base of the signals."""


class NeedsStates(Signal):
    """A recursive call was made before the states of the model are known: trace another kind first."""


class NeedsExample(Signal):
    """Something only a real node can tell was asked; the message says what."""


class OneByOne(Signal):
    """Children that one stand-in stands for cannot be told apart by it: they have to be taken one by one."""


class NothingReduced(Signal):
    """A reduction got nothing, and the shape of what it would have got is not known; `error` says so to the user."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Impossible(Signal):
    """The assumed facts contradict each other, so no node has this kind."""


class Restart(Signal):
    """Something was learned that changes how earlier kinds have to be traced: trace them again."""


class OutOfTime(Signal):
    """Tracing or compiling takes longer than it may."""


class MissingAttribute(Signal):
    """A real node has no such attribute."""

    def __init__(self, message: str, owner: object, attribute: str) -> None:
        super().__init__(message)
        self.owner = owner
        self.attribute = attribute

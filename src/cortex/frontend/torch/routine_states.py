"""Which states hold the results of a module's recursive calls, and what they store on nodes. Without torch."""

from __future__ import annotations

from dataclasses import dataclass

from cortex.frontend.torch.forms import Form


@dataclass(frozen=True)
class RoutineStates:
    """The states of the calls of one routine.

    `names` are the states that hold the tensors of its result, in the order of `form`; `stored` has the same for each
    attribute that it sets on nodes. `always` is False where it returns constants for some nodes, which have no states.
    """

    tag: str
    form: Form
    names: tuple[str, ...]
    stored: tuple[tuple[str, Form, tuple[str, ...]], ...] = ()
    always: bool = True

"""What each call of a module's methods on a node returns when torch runs the module, in the order of returning."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cortex.frontend.spans import user_span
from cortex.frontend.torch.eager import Counting, TooLong, run_eagerly
from cortex.frontend.torch.leaves import leaves
from cortex.frontend.torch.record import Recorder, classes_of
from cortex.frontend.torch.routines import Routine
from cortex.ir.source import Span

if TYPE_CHECKING:
    from cortex.frontend.torch.torch_entry import TorchEntry


@dataclass(frozen=True)
class Returned:
    """One call that has returned: its tensors and numbers by place, and the user's expression that made it."""

    routine: Routine
    node: Any
    result: dict[str, Any]
    span: Span | None


class _Results(Recorder):
    """Keeps what calls return."""

    def __init__(self, classes: set[type]) -> None:
        super().__init__(classes)
        self.returned: list[Returned] = []

    def made(self, routine: Routine, node: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a call on a node."""
        span = user_span()
        found = routine.original(*args, **kwargs)
        self.returned.append(Returned(routine, node, leaves(found), span))
        return found


def recorded_results(entry: TorchEntry, arguments: dict[str, Any]) -> list[Returned]:
    """The results of all calls that the module makes for these arguments, as many as were seen."""
    recorder = _Results(classes_of(arguments))
    with suppress(Exception, TooLong), recorder.running(), entry.traced():
        run_eagerly(entry, arguments, Counting())
    return recorder.returned

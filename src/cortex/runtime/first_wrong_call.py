"""The first call of a module whose compiled result is not what the module returns."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cortex.frontend.rounding import Difference
from cortex.frontend.torch.categories import is_node
from cortex.frontend.torch.leaves import leaves
from cortex.ir.source import Span
from cortex.runtime.executable import Executable
from cortex.runtime.node_results import calls_of

if TYPE_CHECKING:
    from cortex.frontend.torch.model import TorchModel
    from cortex.frontend.torch.recorded_results import Returned

MOST_OBJECTS = 100_000
RTOL, ATOL = 1e-4, 1e-5
"""Rounding adds up on the way to a call: only what is clearly another number is told."""


@dataclass(frozen=True)
class WrongCall:
    """What messages say of a call, and the user's expression that made it."""

    text: str
    span: Span | None


def first_wrong_call(
    model: TorchModel, run: Executable, arguments: dict[str, Any], returned: Iterable[Returned]
) -> WrongCall | None:
    """The first of the calls that differs from the compiled ones on its node; None where none does by itself."""
    compiled = _compiled_results(model, run, model.request(arguments))
    for call in returned:
        found = compiled.get((call.routine.key, id(call.node)), [])
        differences = [_difference(each, call.result) for each in found]
        if differences and None not in differences:
            assert differences[0] is not None
            said = differences[0].text(differences[0].name)
            where = _way(arguments, call.node)
            return WrongCall(f"The first call that differs is {call.routine.label}({where}): {said}.", call.span)
    return None


def _compiled_results(model: TorchModel, run: Executable, request: Any) -> dict[tuple[Hashable, int], list[Any]]:
    """The results of compiled calls, by routine and node; a node has several where calls are given other values."""
    nodes, visited = run(request).nodes, run.visited(request)
    routines = {role.tag: role.routine for role in model.roles if role.routine is not None}
    found: dict[tuple[Hashable, int], list[Any]] = {}
    for states in model.routine_states():
        if not states.always or states.tag not in routines:
            continue
        arrays = [np.asarray(nodes[name]) for name in states.names]
        for row, node in calls_of(states, model.mode, visited):
            result = leaves(states.form.rebuild([array[row] for array in arrays]))
            found.setdefault((routines[states.tag].key, id(node)), []).append(result)
    return found


def _difference(got: dict[str, Any], want: dict[str, Any]) -> Difference | None:
    """The element that differs most; None where none does, or where the results have no common form."""
    for name in want:
        if name not in got or np.shape(got[name]) != np.shape(want[name]):
            return None
        close = np.isclose(got[name], want[name], rtol=RTOL, atol=ATOL, equal_nan=True)
        if not close.all():
            ours, theirs = np.asarray(got[name], float), np.asarray(want[name], float)
            excess = np.where(close, 0, np.nan_to_num(np.abs(ours - theirs), nan=np.inf))
            index = tuple(int(i) for i in np.unravel_index(int(excess.argmax()), excess.shape))
            return Difference(name, index, str(np.float32(ours[index])), str(np.float32(theirs[index])))
    return None


def _way(arguments: dict[str, Any], node: Any) -> str:
    """How the arguments lead to a node: `tree.children[0]`; its class where that is not found."""
    todo = deque(arguments.items())
    seen: set[int] = set()
    while todo and len(seen) < MOST_OBJECTS:
        text, x = todo.popleft()
        if x is node:
            return text
        if id(x) not in seen:
            seen.add(id(x))
            todo += ((f"{text}{step}", below) for step, below in _below(x))
    return f"a {type(node).__name__}"


def _below(x: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(x, list | tuple):
        yield from ((f"[{i}]", each) for i, each in enumerate(x))
    elif isinstance(x, dict):
        yield from ((f"[{key!r}]", each) for key, each in x.items())
    elif is_node(x):
        names = [*getattr(x, "__dict__", {}), *(n for c in type(x).__mro__ for n in vars(c).get("__slots__", ()))]
        yield from ((f".{name}", getattr(x, name, None)) for name in names)

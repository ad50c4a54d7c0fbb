"""The calls that a module makes for an example, recorded while torch runs it; and what follows from them.

Tracing finds out by itself which routines are recursive and what the nodes of the model are, and starts again for each.
A record of one real run shows that at once. It is a start, no more: whatever the record does not show, or what other
structures show, tracing still finds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from cortex.frontend.torch.categories import is_node
from cortex.frontend.torch.eager import Counting, TooLong, run_eagerly
from cortex.frontend.torch.routines import RECORDER, Routine
from cortex.frontend.torch.serving import Mode

if TYPE_CHECKING:
    from cortex.frontend.torch.torch_entry import TorchEntry

MOST_CALLS, MOST_DEEP, MOST_OBJECTS = 300, 200, 2000
"""Calls of torch, calls in calls, and objects whose classes are looked at; the rest of a larger structure is like its
beginning, mostly."""


@dataclass(frozen=True)
class Frame:
    """One call of a routine on an object."""

    routine: Routine
    on: int
    """Which object."""
    caller: int
    """The number of the frame that made the call, or -1."""
    passes: bool
    """Is a tensor among the other arguments?"""


def start(entry: TorchEntry, mode: Mode, arguments: dict[str, Any]) -> tuple[dict[Hashable, Routine], Mode]:
    """The recursive routines and the mode to start with, from a call of the module."""
    frames = record(entry, arguments) if "" in entry.modules else ()
    routines = recursive(frames)
    return routines, least_mode(entry, mode, frames, routines)


def record(entry: TorchEntry, arguments: dict[str, Any]) -> tuple[Frame, ...]:
    """The calls that the module makes for these arguments, as many as were seen; whatever it writes is undone."""
    recorder = Recorder(classes_of(arguments))
    with suppress(Exception, TooLong), recorder.running(), entry.traced():
        run_eagerly(entry, arguments, Counting(MOST_CALLS))
    return tuple(recorder.frames)


class Recorder:
    """Sees calls of routines, and makes them."""

    def __init__(self, classes: set[type]) -> None:
        self.frames: list[Frame] = []
        self._classes = classes
        self._running: list[int] = []
        self._kept: list[Any] = []  # so that no two have the same identity

    @contextmanager
    def running(self) -> Iterator[None]:
        """Calls of routines are seen."""
        token = RECORDER.set(self.call)
        try:
            yield
        finally:
            RECORDER.reset(token)

    def call(self, routine: Routine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A routine is called."""
        try:
            arguments = routine.bind(args, kwargs)
        except TypeError:
            return routine.original(*args, **kwargs)
        nodes = [name for name, value in arguments.items() if type(value) in self._classes]
        if len(nodes) != 1:
            return routine.original(*args, **kwargs)
        node = arguments.pop(nodes[0])
        self._kept.append(node)
        passes = any(map(_is_computed, arguments.values()))
        self.frames.append(Frame(routine, id(node), self._running[-1] if self._running else -1, passes))
        self._running.append(len(self.frames) - 1)
        try:
            return self.made(routine, node, args, kwargs)
        finally:
            self._running.pop()

    def made(self, routine: Routine, node: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a call on a node."""
        if len(self._running) > MOST_DEEP:
            raise TooLong
        return routine.original(*args, **kwargs)


def classes_of(arguments: dict[str, Any]) -> set[type]:
    """The classes of the nodes that the arguments lead to."""
    seen: dict[int, Any] = {}
    stack = list(arguments.values())
    while stack and len(seen) < MOST_OBJECTS:
        x = stack.pop()
        if id(x) in seen or not (is_node(x) or type(x) in (list, tuple)) or isinstance(x, torch.nn.Module):
            continue
        seen[id(x)] = x
        if type(x) in (list, tuple):
            stack += x
        elif isinstance(x, dict):
            stack += dict.values(x)
        stack += getattr(x, "__dict__", {}).values()
        stack += [getattr(x, name, None) for kind in type(x).__mro__ for name in _slots(kind)]
    return {type(x) for x in seen.values()} - {list, tuple}


def _slots(kind: type) -> list[str]:
    slots = vars(kind).get("__slots__", ())
    return [slots] if isinstance(slots, str) else list(slots)


def _is_computed(x: Any) -> bool:
    return any(map(_is_computed, x)) if type(x) is tuple else isinstance(x, torch.Tensor | np.ndarray)


def recursive(frames: tuple[Frame, ...]) -> dict[Hashable, Routine]:
    """The routines that are called on another object while they run, directly or by others.

    Of the routines in between, those that are called on another object than their caller's are recursive. Calls of a
    routine that is known to be are looked at by themselves.
    """
    found: dict[Hashable, Routine] = {}
    while True:
        new = next((new for frame in frames if (new := _closes(frames, frame, found))), None)
        if new is None:
            return found
        found |= new


def _closes(frames: tuple[Frame, ...], frame: Frame, known: dict[Hashable, Routine]) -> dict[Hashable, Routine]:
    """The routines that are recursive because of this call."""
    if frame.routine.key in known:
        return {}
    chain = [frame]
    while chain[-1].caller >= 0 and (len(chain) == 1 or chain[-1].routine.key not in known):
        chain.append(frames[chain[-1].caller])
        if chain[-1].routine.key == frame.routine.key:
            if chain[-1].on == frame.on:
                return {}
            pairs = pairwise(reversed(chain))
            return {after.routine.key: after.routine for before, after in pairs if before.on != after.on}
    return {}


def least_mode(entry: TorchEntry, start: Mode, frames: Iterable[Frame], routines: dict[Hashable, Routine]) -> Mode:
    """The simplest mode that has room for the calls of recursive routines."""
    calls = [frame for frame in frames if frame.routine.key in routines and frame.caller >= 0]
    if len(routines) > 1 or any(frame.passes for frame in calls):
        return "calls"
    return start if all(frame.routine.key == entry.routine.key for frame in calls) else "headed"

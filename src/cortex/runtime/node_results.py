"""What the routines of a module returned at every node of a request: `fast.nodes(tree)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cortex.errors import ModelError
from cortex.frontend.torch.calls import Arguments
from cortex.frontend.torch.forms import Form, typed
from cortex.frontend.torch.interface import Interface
from cortex.frontend.torch.routine_states import RoutineStates
from cortex.frontend.torch.serving import Mode, Serving
from cortex.runtime.output import NodeStates, Output, output_type


class NodeResults:
    """What a routine returned, and stored, at every node that it was called on.

    nodes           your nodes, in order of first visit: a row each; a node as often as calls were given different
                    values for it
    result          what the routine returns, each tensor with a row per node
    stored["h"]     what it stored in an attribute of the nodes, likewise
    results[node]   what it returned for one node
    for node, h in results: ...
    """

    def __init__(
        self, states: NodeStates, calls: Sequence[tuple[int, Any]], routine: RoutineStates, tensor: Callable[[Any], Any]
    ) -> None:
        """`calls` are the rows and nodes of the routine's calls."""
        rows = [row for row, _ in calls]
        arrays: dict[tuple[str, str | None], Any] = {}

        def of(form: Form, names: tuple[str, ...]) -> list[Any]:
            keys = list(zip(names, form.types(), strict=True))
            for name, kind in keys:
                if (name, kind) not in arrays:
                    arrays[name, kind] = tensor(typed(states[name][rows], kind))
            return [arrays[key] for key in keys]

        self.nodes = [node for _, node in calls]
        self._form = routine.form
        self.arrays = of(routine.form, routine.names)
        """The tensors of the result."""
        self.result = routine.form.rebuild(self.arrays)
        self.stored = {attribute: form.rebuild(of(form, names)) for attribute, form, names in routine.stored}
        self._rows: dict[int, list[int]] = {}
        for row, node in enumerate(self.nodes):
            self._rows.setdefault(id(node), []).append(row)

    def __getitem__(self, node: Any) -> Any:
        rows = self._rows.get(id(node), [])
        if len(rows) != 1:
            times = f"{len(rows)} calls were made on" if rows else "no call was made on"
            raise KeyError(f"{times} this {type(node).__name__}; `nodes` and `result` list all calls")
        return self._at(rows[0])

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return ((node, self._at(row)) for row, node in enumerate(self.nodes))

    def __repr__(self) -> str:
        return f"<results at {len(self)} nodes: {self._form.text()}>"

    def _at(self, row: int) -> Any:
        return self._form.rebuild([array[row] for array in self.arrays])


class ByCalls:
    """The arrays of a call of a model function, by state; those at every node are made when they are asked for."""

    __slots__ = ("_nodes", "_roots")

    def __init__(self, roots: Sequence[Any], nodes: Callable[[], NodeResults]) -> None:
        self._roots = roots
        self._nodes: Callable[[], NodeResults] | list[Any] = nodes

    def root(self, state: int) -> Any:
        """State number `state` at the roots."""
        return self._roots[state]

    def nodes(self, state: int) -> Any:
        """State number `state` at every node."""
        if not isinstance(self._nodes, list):
            self._nodes = self._nodes().arrays
        return self._nodes[state]


def by_state(form: Form, arrays: Sequence[Any], nodes: Callable[[], NodeResults]) -> Any:
    """What a model function returns: its states by name, or what they are put in where that has none."""
    if is_put_in(form):
        return form.rebuild(list(arrays))
    return output_type(tuple(form.names()))(ByCalls(arrays, nodes))


def is_put_in(form: Form) -> bool:
    """Are the states of a function put in something that has no names for them?"""
    return any(part.kind != "tensor" for part in form.parts) or form.kind in ("plain", "dict", "list", "rows")


@dataclass(frozen=True, eq=False)
class Answer:
    """What makes the result of a model function from a run of its program, `Answer(...)(run, root)`."""

    kind: type[Output]
    states: list[int]
    """The numbers of the function's states among those of the program."""
    program: type[Output]
    linearizer: Any
    serving: Serving
    interface: Interface

    def __call__(self, run: Any, root: Any) -> Output:
        """The states by name."""
        return self.kind(RunByCalls(self, run, root))

    def at_nodes(self, run: Any, root: Any) -> NodeResults:
        """What the function returned at every node."""
        routine = chosen(self.serving.routine_states(), None, self.interface)
        calls = calls_of(routine, self.serving.mode, self.linearizer.visited([root]))
        return NodeResults(self.program(run).nodes, calls, routine, np.asarray)


class RunByCalls:
    """The arrays of a call, like `ByCalls`; all of them are made when they are asked for."""

    __slots__ = ("_answer", "_found", "_root", "_run")

    def __init__(self, answer: Answer, run: Any, root: Any) -> None:
        self._answer, self._run, self._root = answer, run, root
        self._found: list[Any] | None = None

    def root(self, state: int) -> Any:
        """State number `state` at the roots."""
        return self._run.root(self._answer.states[state])

    def nodes(self, state: int) -> Any:
        """State number `state` at every node."""
        if self._found is None:
            self._found = self._answer.at_nodes(self._run, self._root).arrays
        return self._found[state]


def chosen(routines: Sequence[RoutineStates], name: str | None, interface: Interface) -> RoutineStates:
    """The routine of this name; without one, the only one there is, or the function's own."""
    known, module = ", ".join(repr(routine.tag) for routine in routines), interface.name
    found = [routine for routine in routines if name is None or routine.tag == name]
    if name is None and len(found) > 1 and interface.names_states:
        found = [routine for routine in found if routine.tag == module] or found
    if len(found) != 1:
        asked = f"nodes(routine={name!r}) of {module}" if name is not None else f"nodes() of {module}"
        raise ModelError(
            f"{asked}: choose one of its recursive routines by name, routine=...: {known or 'it has none'}."
        )
    if not found[0].always:
        raise ModelError(
            f"nodes() of {module}: '{found[0].tag}' returns a constant for some nodes and tensors for others, so that "
            "there is no array of its results. Return zeros where there is nothing."
        )
    return found[0]


def calls_of(routine: RoutineStates, mode: Mode, visited: Sequence[Any]) -> list[tuple[int, Any]]:
    """The rows and nodes of a routine's calls, among all that were visited."""
    if mode == "calls":
        return [(row, node) for row, (tag, node) in enumerate(visited) if tag == routine.tag]
    return [(row, node) for row, node in enumerate(visited) if type(node) is not Arguments]

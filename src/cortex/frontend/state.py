"""States: what a model function returns for its node, and what a recursive call gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from typing import Any, NoReturn

import numpy as np

from cortex.errors import ModelError
from cortex.frontend.beyond import Beyond
from cortex.frontend.builder import Value, builder, is_tracing
from cortex.frontend.facts import Path
from cortex.frontend.numpy_meanings import array_of
from cortex.frontend.pointwise import as_float
from cortex.frontend.signals import NeedsStates, OneByOne
from cortex.frontend.spans import fail
from cortex.frontend.state_form import StateForm
from cortex.frontend.tensor import Operand, Tensor, value_of
from cortex.ra.ir import Each, State, TensorType


class StateRecord:
    """Named tensors, or arrays where nothing is traced: `s.h`, `s["h"]`, or in order, `h, c = s`."""

    __slots__ = ("_tensors",)

    def __init__(self, tensors: dict[str, Any]) -> None:
        self._tensors = tensors

    def __repr__(self) -> str:
        return f"state({', '.join(f'{name}={tensor!r}' for name, tensor in self._tensors.items())})"

    def _cortex_explain(self) -> str:
        names = ", ".join(f".{name}" for name in self._tensors)
        return f"a state is used as a tensor here. Choose one of its tensors: {names}."

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_cortex")):
            raise AttributeError(name)
        return self._get(name)

    def __getitem__(self, key: str | int) -> Any:
        return list(self._tensors.values())[key] if isinstance(key, int) else self._get(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._tensors.values())

    def __len__(self) -> int:
        return len(self._tensors)

    def _get(self, name: str) -> Any:
        if name not in self._tensors and not is_tracing():
            raise AttributeError(f"no state {name!r}; there are {', '.join(self._tensors)}")
        if name not in self._tensors:
            names = ", ".join(f"'{n}'" for n in self._tensors)
            raise fail(f"the model has no state '{name}'; its states are {names}.")
        return self._tensors[name]


class GuessedRecord(StateRecord):
    """The state of a child while the names of the states are still being found out: it has every name."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        super().__init__({})
        self._path = path

    def _get(self, name: str) -> Tensor:
        guess = builder().knowledge.guess
        assert guess is not None
        return _child_tensor(name, guess.type_of(name), self._path)

    def __iter__(self) -> NoReturn:
        raise fail("the names of the states are not known yet here; read them by name, as in f(k).h.")


def state(**tensors: Any) -> StateRecord:
    """The states of the node: `return cortex.state(h=h, c=c)`."""
    if not tensors:
        raise fail("state() without tensors: a node needs at least one state, as in cortex.state(h=h).")
    if not is_tracing():
        return StateRecord({name: array_of(x) for name, x in tensors.items()})
    return StateRecord({name: x if type(x) is Tensor else Tensor(value_of(x)) for name, x in tensors.items()})


def map_states(result: Any, state: Callable[[Any], Any]) -> Any:
    """What a model function returned with `state` of each number, array and tensor in it; lists become tuples."""
    match result:
        case StateRecord():
            return StateRecord({name: map_states(x, state) for name, x in result._tensors.items()})
        case tuple() if hasattr(result, "_make"):
            return result._make(map_states(x, state) for x in result)
        case tuple() | list():
            return tuple(map_states(x, state) for x in result)
        case dict():
            return {key: map_states(x, state) for key, x in result.items()}
        case None | str():
            return result
        case _ if is_dataclass(result) and not isinstance(result, type):
            return replace(result, **{f.name: map_states(getattr(result, f.name), state) for f in fields(result)})
        case _:
            return state(result)


def returning_states(function: Callable[..., Any]) -> Callable[..., Any]:
    """A model function whose results are states while it is traced."""

    @wraps(function)
    def returning(*args: Any, **kwargs: Any) -> Any:
        return map_states(function(*args, **kwargs), _traced_state)

    return returning


def _traced_state(x: Any) -> Any:
    is_number = isinstance(x, Operand | np.ndarray | np.generic | int | float) or hasattr(x, "detach")
    return Tensor(as_float(value_of(x))) if is_number and not hasattr(x, "_cortex_where") else x


def child_state(path: Path) -> Any:
    """What a recursive call on the node reached by `path` returns."""
    knowledge = builder().knowledge
    form = knowledge.states
    if form is None:
        guess = knowledge.guess
        if guess is None:
            raise NeedsStates
        if guess.form == "named":
            return GuessedRecord(path)
        names = ("out",) if guess.form == "bare" else tuple(map(str, range(guess.count)))
        form = StateForm(guess.form, names, tuple(map(guess.type_of, names)))
    tensors = {name: _child_tensor(name, kind, path) for name, kind in zip(form.names, form.types, strict=True)}
    match form.form:
        case "named":
            return StateRecord(tensors)
        case "bare":
            return tensors["out"]
        case "tuple":
            return tuple(tensors.values())


def _child_tensor(name: str, kind: TensorType, path: Path) -> Tensor:
    over = path[0].name if isinstance(path[0], Each) else None
    return Tensor(builder().emit(State(name, path), kind.shape, over=over))


def states_of(result: Any) -> tuple[StateForm, tuple[Value, ...]]:
    """What the model function returned, as states of the node."""
    match result:
        case None:
            raise Beyond(
                "the model returned None. Every path has to return a tensor, a tuple of tensors, or cortex.state(...)."
            )
        case StateRecord():
            named = dict(result._tensors)
            form = "named"
        case tuple() | list():
            if not result:
                raise ModelError("the model returned an empty tuple; a node needs at least one state.")
            named = {str(i): Tensor(value_of(x)) for i, x in enumerate(result)}
            form = "tuple"
        case dict():
            raise Beyond("the model returned a dict. Return cortex.state(**...) instead.")
        case _:
            named = {"out": Tensor(value_of(result))}
            form = "bare"
    values = tuple(as_float(t._cortex_value()) for t in named.values())
    if any(value.over is not None for value in values):
        raise OneByOne
    kinds = tuple(TensorType(v.shape) for v in values)
    return StateForm(form, tuple(named), kinds), values  # type: ignore[arg-type]

"""Recurrent cells, and layers of them over a sequence of known length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cortex.frontend import movement
from cortex.frontend.builder import Value
from cortex.frontend.pointwise import arithmetic, fill, unary
from cortex.frontend.tensor import value_of
from cortex.frontend.torch.operators.products import linear
from cortex.frontend.torch.refusals import PADDED, RANDOM, Unsupported
from cortex.frontend.torch.tensor import TorchTensor

State = tuple[Value, ...]
Cell = Callable[[Value, State, Sequence[Any]], State]
"""One step: the input, the state before it (the output first), the weights; the state after it."""


def _affine(x: Value, weight: Any, bias: Any) -> Value:
    return linear(TorchTensor(x), weight, bias)


def _gates(x: Value, h: Value, weights: Sequence[Any]) -> tuple[Value, Value]:
    """What input and state contribute."""
    biases = (weights[2], weights[3]) if len(weights) > 2 else (None, None)
    return _affine(x, weights[0], biases[0]), _affine(h, weights[1], biases[1])


def _lstm_step(x: Value, state: State, weights: Sequence[Any]) -> State:
    """`weights` may end with a projection of the output."""
    h, c = state
    projection = weights[-1] if len(weights) in (3, 5) else None
    own, fed = _gates(x, h, weights[: len(weights) - (projection is not None)])
    total = arithmetic("add", own, fed)
    i, f, g, o = movement.split(total, 4, len(total.shape) - 1)
    kept = arithmetic("mul", unary("sigmoid", f), c)
    c = arithmetic("add", kept, arithmetic("mul", unary("sigmoid", i), unary("tanh", g)))
    h = arithmetic("mul", unary("sigmoid", o), unary("tanh", c))
    return (h if projection is None else _affine(h, projection, None)), c


def _gru_step(x: Value, state: State, weights: Sequence[Any]) -> State:
    (h,) = state
    own, fed = _gates(x, h, weights)
    last = len(own.shape) - 1
    own_r, own_z, own_n = movement.split(own, 3, last)
    fed_r, fed_z, fed_n = movement.split(fed, 3, last)
    r = unary("sigmoid", arithmetic("add", own_r, fed_r))
    z = unary("sigmoid", arithmetic("add", own_z, fed_z))
    n = unary("tanh", arithmetic("add", own_n, arithmetic("mul", r, fed_n)))
    rest = arithmetic("sub", fill(1.0), z)
    return (arithmetic("add", arithmetic("mul", rest, n), arithmetic("mul", z, h)),)


def _rnn_step(fn: str) -> Cell:
    def step(x: Value, state: State, weights: Sequence[Any]) -> State:
        own, fed = _gates(x, state[0], weights)
        total = arithmetic("add", own, fed)
        return (unary("tanh", total) if fn == "tanh" else arithmetic("max", total, fill(0.0)),)

    return step


def _cell(step: Cell) -> Callable[..., Any]:
    """torch.lstm_cell and its like."""

    def run(input: TorchTensor, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        several = isinstance(hx, list | tuple)
        state = tuple(value_of(h) for h in hx) if several else (value_of(hx),)
        after = step(value_of(input), state, [w_ih, w_hh] if b_ih is None else [w_ih, w_hh, b_ih, b_hh])
        return after if several else after[0]

    return run


def _layers(step: Cell) -> Callable[..., Any]:
    """torch.lstm and its like: layers over a sequence, in one direction or both."""

    def run(
        input: TorchTensor, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float, train: bool,
        bidirectional: bool, batch_first: bool,
    ) -> Any:  # fmt: skip
        if train and dropout > 0 and num_layers > 1:
            raise Unsupported(f"dropout={dropout}: {RANDOM}")
        x = value_of(input)
        axis = 1 if batch_first else 0
        steps = [_without(part, axis) for part in movement.split(x, [1] * x.shape[axis], axis)]
        several = isinstance(hx, list | tuple)
        states = [_rows(value_of(h)) for h in (hx if several else (hx,))]
        directions = 2 if bidirectional else 1
        each = len(params) // (num_layers * directions)
        last: list[State] = []
        for layer in range(num_layers):
            ways: list[list[Value]] = []
            for way in range(directions):
                number = layer * directions + way
                weights = params[number * each : (number + 1) * each]
                state = tuple(rows[number] for rows in states)
                outputs: list[Value] = []
                for value in steps if way == 0 else reversed(steps):
                    state = step(value, state, weights)
                    outputs.append(state[0])
                last.append(state)
                ways.append(outputs if way == 0 else outputs[::-1])
            steps = [movement.concat(parts, len(parts[0].shape) - 1) for parts in zip(*ways, strict=True)]
        final = [_stacked([state[i] for state in last], 0) for i in range(len(states))]
        return (_stacked(steps, axis), *final)

    return run


def _rows(x: Value) -> list[Value]:
    return [_without(part, 0) for part in movement.split(x, [1] * x.shape[0], 0)]


def _without(x: Value, axis: int) -> Value:
    """`x` without an axis of size 1."""
    return movement.reshape(x, (*x.shape[:axis], *x.shape[axis + 1 :]))


def _stacked(xs: Sequence[Value], axis: int) -> Value:
    return movement.concat([movement.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:])) for x in xs], axis)


def _packed(*_: Any) -> Any:
    raise Unsupported(f"it is given a packed sequence: {PADDED}")


RULES: dict[str, Callable[..., Any]] = {
    "lstm_cell": _cell(_lstm_step), "gru_cell": _cell(_gru_step),
    "rnn_tanh_cell": _cell(_rnn_step("tanh")), "rnn_relu_cell": _cell(_rnn_step("relu")),
    "lstm.input": _layers(_lstm_step), "gru.input": _layers(_gru_step),
    "rnn_tanh.input": _layers(_rnn_step("tanh")), "rnn_relu.input": _layers(_rnn_step("relu")),
    **{f"{name}.data": _packed for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")},
}  # fmt: skip

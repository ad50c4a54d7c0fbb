"""Calls of a compiled module in one native call: arguments to request, request to states, states to tensors.

Everything that a call needs beside its arguments is made here, once for a program in memory (`Loaded`) and the
constants of the calls. A call that is not quite like the ones before, or meets a new kind of node, takes the long way.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cortex import _native
from cortex.frontend.torch.calls import HEAD, Arguments, Calls, argument
from cortex.frontend.torch.categories import row_form, whole_form
from cortex.frontend.torch.forms import Form
from cortex.frontend.torch.interface import Constants, Interface
from cortex.frontend.torch.serving import Serving, array_of
from cortex.runtime.loaded import Loaded
from cortex.runtime.node_results import Answer, is_put_in
from cortex.runtime.output import output_type

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
MOST_PARAMETERS = 16
HOLDERS = {"plain": None, "headed": Arguments, "calls": Calls}


class AnyForm:
    """Equal to the form of a tensor, by rows or as a whole."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __eq__(self, form: object) -> bool:
        return form in (row_form(self._tensor), whole_form(self._tensor))

    __hash__ = None  # type: ignore[assignment]  # it is only compared


def never(args: tuple[Any, ...]) -> Any:
    """Leave all calls to the long way."""
    return NotImplemented


def direct_call(
    interface: Interface, constants: Constants, serving: Serving, loaded: Loaded, tensor: Callable[[Any], Any]
) -> Callable[[tuple[Any, ...]], Any]:
    """What makes calls with these constants, from a tuple of arguments; NotImplemented is for calls unlike them."""
    parameters = list(interface.signature.parameters.values())
    if len(parameters) > MOST_PARAMETERS or any(p.kind not in POSITIONAL for p in parameters):
        return never
    if loaded.usual is None or not isinstance(loaded.program, _native.Program):
        return never
    expected = []
    for parameter, (name, *what) in zip(parameters, constants, strict=True):
        default = () if parameter.default is parameter.empty else (parameter.default,)
        match what:
            case ["node"]:
                expected.append(("node", name, argument(name), None, *default))
            case [str() as rows]:
                expected.append(("tensor", name, argument(name), rows, *default))
            case [kind, value] if type(value) is kind:
                expected.append(("constant", name, argument(name), value, *default))
            case _:
                return never
    form, names = serving.result()
    by_name = interface.names_states
    is_single = not by_name and form in (Form("tensor"), Form("rows", 0, (), (Form("tensor"),)))
    rows_of = dict(loaded.rows)
    states = [list(rows_of[name]) if name in rows_of else loaded.names.index(name) for name in names]
    gives_run = by_name and not is_put_in(form)
    if gives_run:
        kind = output_type(tuple(form.names()))
        result: Any = Answer(kind, states, loaded.output, loaded.linearizer, serving, interface)
    elif by_name:
        result = form.rebuild
    else:
        result = tensor if is_single else partial(form.returned, tensor=tensor)
    return _native.DirectCall(
        {
            "program": loaded.program,
            "threads": loaded.usual.threads,
            "parameters": expected,
            "kinds": interface.kinds,
            "takes_list": interface.takes_list,
            "tensor_classes": _tensor_classes(),
            "form_of": AnyForm if interface.taken_whole else row_form,
            "array_of": array_of,
            "node": [p.name for p in parameters].index(serving.node),
            "holder": HOLDERS[serving.mode],
            "head": HEAD,
            "relations": serving.relations if serving.mode == "calls" else None,
            "is_single": is_single,
            "gives_run": gives_run,
            "states": states,
            "result": result,
        }
    )


def _tensor_classes() -> tuple[type, ...]:
    torch = sys.modules.get("torch")
    return (np.ndarray,) if torch is None else (np.ndarray, torch.Tensor)

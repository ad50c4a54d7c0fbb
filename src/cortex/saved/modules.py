"""How a saved module is called, as JSON: its parameters, and for each set of constants how calls become requests."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from types import NoneType
from typing import Any, cast, get_args

from cortex.cache.encoding import decode, encode
from cortex.frontend.computed import Computed, Constant, is_computation
from cortex.frontend.facts import ORDER
from cortex.frontend.torch.accessors import Ways
from cortex.frontend.torch.calls import Relation, Row, Storing
from cortex.frontend.torch.forms import Form
from cortex.frontend.torch.interface import Constants, Interface
from cortex.frontend.torch.routine_states import RoutineStates
from cortex.frontend.torch.serving import Mode, Serving
from cortex.frontend.torch.steps import FUNCTIONS as OF_OBJECTS
from cortex.frontend.torch.steps import (
    At,
    Attr,
    Called,
    Contains,
    Given,
    Has,
    Kept,
    LookedUp,
    Of,
    Question,
    Sliced,
    Sorted,
    Steps,
)
from cortex.saved.forms import decode_form, encode_form

PLAIN = (str, int, float, complex, bytes, NoneType, Constant)
"""Keys and arguments that steps have."""
FRESH: dict[str, Callable[[], Any]] = {"dict": dict, "list": list, "set": set}
"""Collections that code passes along to remember results in, which are empty at first."""


def encode_interface(interface: Interface) -> dict[str, Any]:
    """The parameters; ValueError where a default cannot be written."""
    parameters = interface.signature.parameters.values()
    return {
        "name": interface.name,
        "takes": [interface.takes_list, interface.takes_tuple],
        "parameters": [[p.name, int(p.kind), _default(p)] for p in parameters],
        "outside": list(interface.outside),
        "compiled_in": dict(interface.compiled_in),
        "names_states": interface.names_states,
    }


def decode_interface(data: Any) -> Interface:
    """What `encode_interface` was given."""
    parameters = [
        inspect.Parameter(name, inspect._ParameterKind(kind), default=_given(default))
        for name, kind, default in data["parameters"]
    ]
    takes_list, takes_tuple = map(bool, data["takes"] if "takes" in data else [data["takes_list"], False])
    outside, compiled_in = data.get("outside", []), data.get("compiled_in", {})  # which older files do not have
    return Interface(
        str(data["name"]),
        inspect.Signature(parameters),
        takes_list,
        takes_tuple,
        tuple(map(str, outside)),
        {str(name): str(text) for name, text in compiled_in.items()},
        bool(data.get("names_states", False)),
    )


def _default(p: inspect.Parameter) -> list[Any]:
    if p.default is p.empty:
        return []
    if type(p.default).__name__ in FRESH and not p.default:
        return ["fresh", type(p.default).__name__]
    try:
        return ["value", encode(p.default)]
    except ValueError:
        raise ValueError(f"the default of the parameter '{p.name}' is {p.default!r}") from None


def _given(default: Any) -> Any:
    match default:
        case []:
            return inspect.Parameter.empty
        case ["fresh", name]:
            return FRESH[name]()
        case ["value", value]:
            return decode(value)
        case _:
            raise ValueError("default of a parameter")


def encode_serving(serving: Serving) -> dict[str, Any]:
    """How calls with the same constants become requests, and states results."""
    return {
        "constants": [_constant(*each) for each in serving.constants],
        "mode": serving.mode,
        "node": serving.node,
        "tensors": list(serving.tensors),
        "relations": {name: _relation(relation) for name, relation in serving.relations.items()},
        "form": encode_form(serving.form),
        "names": list(serving.names),
        "routines": [_routine(routine) for routine in serving.routines],
    }


def decode_serving(data: Any) -> Serving:
    """What `encode_serving` was given."""
    constants: Constants = tuple(
        (name, what) if kind == "is" else (name, type(decode(what)), decode(what))
        for name, kind, what in data["constants"]
    )
    form, names = _form_and_names(data["form"], data["names"])
    if data["mode"] not in get_args(Mode) or data["node"] not in [n for n, *_ in constants]:
        raise ValueError("how a module is called")
    relations = {str(name): _related(relation) for name, relation in data["relations"].items()}
    tensors, routines = tuple(map(str, data["tensors"])), tuple(map(_routine_states, data.get("routines", [])))
    return Serving(constants, data["mode"], data["node"], tensors, relations, form, names, routines)


def _routine(routine: RoutineStates) -> dict[str, Any]:
    stored = [[name, encode_form(form), list(names)] for name, form, names in routine.stored]
    result = [encode_form(routine.form), list(routine.names)]
    return {"tag": routine.tag, "result": result, "stored": stored, "always": routine.always}


def _routine_states(data: Any) -> RoutineStates:
    form, names = _form_and_names(*data["result"])
    stored = tuple((str(attribute), *_form_and_names(*held)) for attribute, *held in data["stored"])
    return RoutineStates(str(data["tag"]), form, names, stored, bool(data["always"]))


def _form_and_names(form: Any, names: Any) -> tuple[Form, tuple[str, ...]]:
    found = decode_form(form), tuple(map(str, names))
    if found[0].count != len(found[1]):
        raise ValueError("states of a result")
    return found


def _constant(name: str, *what: Any) -> list[Any]:
    if len(what) == 1:
        return [name, "is", what[0]]
    try:
        return [name, "equals", encode(what[1])]
    except ValueError:
        raise ValueError(f"the argument '{name}' of a call is {what[1]!r}") from None


def encode_ways(ways: Ways) -> dict[str, Any]:
    """What names mean that steps lead to; dictionaries that they look up in are written once, by name."""
    looked_up = {step.name: step.table for steps in ways.steps.values() for step in steps if isinstance(step, LookedUp)}
    return {
        "of_calls": ways.of_calls,
        "steps": {name: encode(steps) for name, steps in ways.steps.items()},
        "careful": list(ways.careful),
        "related": {name: _related_by(relation) for name, relation in ways.related.items()},
        "tables": {name: encode((tuple(table), tuple(table.values()))) for name, table in looked_up.items()},
    }


def decode_ways(data: Any) -> Ways:
    """What `encode_ways` was given."""
    tables = {name: _table(*decode(table)) for name, table in data.get("tables", {}).items()}
    return Ways(
        bool(data["of_calls"]),
        {str(name): _with_tables(decode_steps(steps), tables) for name, steps in data["steps"].items()},
        tuple(map(str, data["careful"])),
        {name: _relation_of(relation) for name, relation in data["related"].items()},
    )


def decode_steps(data: Any) -> Steps:
    """Steps that can be taken from an object; ValueError for anything else."""
    steps = decode(data)
    if not _are_steps(steps):
        raise ValueError("steps")
    return cast(Steps, steps)


def _are_steps(steps: Any) -> bool:
    return type(steps) is tuple and all(map(_is_step, steps))


def _is_plain(x: Any) -> bool:
    return all(map(_is_plain, x)) if type(x) is tuple else isinstance(x, PLAIN)


def _is_step(step: Any) -> bool:
    match step:
        case Attr(name) | Has(name):
            return type(name) is str and name.isidentifier()
        case At(key) | Contains(key):
            return _is_plain(key)
        case Given(name):
            return type(name) is str
        case Sliced(start, stop, step):
            return all(type(x) in (int, NoneType) for x in (start, stop, step)) and step != 0
        case Sorted(keys, is_tuple, reverse):
            return type(keys) is tuple and all(map(_are_steps, keys)) and {type(is_tuple), type(reverse)} == {bool}
        case Kept(questions, families, is_rest):
            return all(map(_is_question, questions)) and _is_plain(families) and type(is_rest) is bool
        case Called(args):
            return type(args) is tuple and _is_plain(args)
        case Of(name):
            return name in OF_OBJECTS
        case LookedUp(name, default):
            return type(name) is str and type(default) in (int, float, NoneType)
        case Computed(fn, operands):
            return is_computation(fn, operands, _are_steps)
        case _:
            return False


def _is_question(question: Any) -> bool:
    if type(question) is not Question or not _are_steps(question.steps):
        return False
    return question.asks in ("none", "value", "length", "equals", *ORDER) and _is_plain(question.value)


def _table(keys: tuple[Any, ...], values: tuple[Any, ...]) -> dict[Any, Any]:
    if not set(map(type, keys)) <= {str, int} or not set(map(type, values)) <= {int, float}:
        raise ValueError("a dictionary of numbers")
    return dict(zip(keys, values, strict=True))


def _with_tables(steps: Steps, tables: dict[str, dict[Any, Any]]) -> Steps:
    return tuple(replace(step, table=tables[step.name]) if isinstance(step, LookedUp) else step for step in steps)


def _related_by(relation: Relation | Storing | Row | None) -> Any:
    return _relation(relation) if isinstance(relation, Relation) else encode(relation)


def _relation_of(data: Any) -> Relation | Storing | Row | None:
    if type(data) is dict and "role" in data:
        return _related(data)
    found = decode(data)
    if not (found is None or isinstance(found, Storing | Row)):
        raise ValueError("relation")
    return found


def _relation(relation: Relation) -> dict[str, Any]:
    return {
        "role": relation.role,
        "steps": encode(relation.steps),
        "inherits": encode(relation.inherits),
        "flags": [relation.is_list, relation.is_top_down, relation.looks_up],
        "numbers": encode(relation.numbers),
        "roles": [sorted(relation.split), sorted(relation.callers), sorted(relation.users)],
    }


def _related(data: Any) -> Relation:
    is_list, is_top_down, looks_up = map(bool, data["flags"])
    split, callers, users = (set(map(str, roles)) for roles in data["roles"])
    steps, inherits = decode_steps(data["steps"]), decode(data["inherits"])
    if type(inherits) is not tuple or not all(map(_is_pair, inherits)):
        raise ValueError("what calls inherit")
    numbers = decode(data["numbers"])
    if type(numbers) is not tuple or not all(map(_is_given, numbers)):
        raise ValueError("what calls are given")
    return Relation(str(data["role"]), steps, is_list, is_top_down, inherits, split, callers, users, looks_up, numbers)


def _is_pair(x: Any) -> bool:
    return type(x) is tuple and len(x) == 2 and all(type(name) is str for name in x)


def _is_given(x: Any) -> bool:
    if type(x) is not tuple or len(x) != 2 or type(x[0]) is not str:
        return False
    return _is_plain(x[1].value) if isinstance(x[1], Constant) else _are_steps(x[1])

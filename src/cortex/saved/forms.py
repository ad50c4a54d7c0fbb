"""The form of a result as JSON: what the tensors are put in.

    ["tensor"]   ["tensor", "bool"]   ["plain", 3]   ["grown", "name"]   ["tuple", [form, ...]]   ["list", [form, ...]]
    ["rows", axis of a tensor or null for a list, form]
    ["dict", [key, ...], [form, ...]]
    ["record", "module", "Class", [field, ...], is named tuple, [form, ...]]

A class is not imported, as that would run its module (which may well import torch). Where the program that loads the
model has it, results are of it; else they are tuples for a named tuple, and dictionaries for a dataclass.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from cortex.cache.encoding import decode, encode
from cortex.frontend.state import StateRecord
from cortex.frontend.torch.forms import Form

ELEMENT_TYPES = ("bool", "uint8", "int8", "int16", "int32", "int64")
"""Of tensors in results, beside float32."""


def encode_form(form: Form) -> list[Any]:
    """A form as what `json` writes; ValueError for keys and values that are not plain."""
    parts = [encode_form(part) for part in form.parts]
    match form.kind:
        case "tensor":
            return ["tensor"] if form.make is None else ["tensor", form.make]
        case "plain":
            return ["plain", encode(form.make)]
        case "grown":
            return ["grown", form.make]
        case "tuple" | "list":
            return [form.kind, parts]
        case "rows":
            return ["rows", form.make, *parts]
        case "dict":
            return ["dict", encode(form.keys), parts]
        case "record":
            named = hasattr(form.make, "_make")
            return ["record", form.make.__module__, form.make.__qualname__, encode(form.keys), named, parts]


def decode_form(data: Any) -> Form:
    """What `encode_form` was given; ValueError or TypeError for anything else."""
    match data:
        case ["tensor"]:
            return Form("tensor")
        case ["tensor", str(kind)] if kind in ELEMENT_TYPES:
            return Form("tensor", kind)
        case ["plain", value]:
            return Form("plain", decode(value))
        case ["grown", str(name)]:
            return Form("grown", name)
        case ["tuple" | "list" as kind, [*parts]]:
            return Form(kind, None, tuple(range(len(parts))), tuple(map(decode_form, parts)))
        case ["rows", (int() | None) as axis, part]:
            return Form("rows", axis, (), (decode_form(part),))
        case ["dict", [*keys], [*parts]] if len(keys) == len(parts):
            return Form("dict", None, decode(keys), tuple(map(decode_form, parts)))
        case ["record", str(module), str(name), [*keys], bool(is_tuple), [*parts]] if len(keys) == len(parts):
            fields, inner = tuple(map(str, keys)), tuple(map(decode_form, parts))
            made = _class(module, name, fields)
            if made is not None:
                return Form("record", made, fields, inner)
            return (
                Form("tuple", None, tuple(range(len(inner))), inner) if is_tuple else Form("dict", None, fields, inner)
            )
        case _:
            raise ValueError("form of a result")


def _class(module: str, name: str, fields: tuple[str, ...]) -> type | None:
    """The class, if some module has it that is loaded already, and it has these fields."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    if not isinstance(found, type) or found is StateRecord:
        return found if found is StateRecord else None
    if issubclass(found, tuple):
        return found if getattr(found, "_fields", None) == fields else None
    is_same = dataclasses.is_dataclass(found) and tuple(f.name for f in dataclasses.fields(found)) == fields
    return found if is_same else None

"""What a model's names mean on the objects of a package: the arguments `children` and `fields` of `cortex.compile`.

    fast = cortex.compile(model, weights, **nltk_trees(words=vocabulary))

The package's own objects are walked, nothing is converted. A model reads those of the offered fields that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypedDict

from cortex.frontend.fields import Declared, Offered

Given = str | Callable[[Any], Any] | Declared
"""What a field of the user's is: a name in the package's terms, a function of the node, or `cortex.field(shape)`."""


class Meaning(TypedDict):
    """For `cortex.compile(model, weights, **meaning)`."""

    children: str | tuple[str, ...] | Callable[[Any], Iterable[Any] | None]
    fields: Offered


def by_key(fields: Mapping[str, Given] | None, getter: Callable[[str], Callable[[Any], Any]]) -> dict[str, Given]:
    """The user's fields where a name is no attribute of a node but a key that `getter` makes a function of."""
    found: dict[str, Given] = {}
    for name, given in (fields or {}).items():
        match given:
            case str(key):
                found[name] = getter(key)
            case Declared(source=source):
                found[name] = given if callable(source) else replace(given, source=getter(source or name))
            case _:
                found[name] = given
    return found

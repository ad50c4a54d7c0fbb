"""Trees of nested dictionaries, as JSON gives them, walked as they are: children and fields are named by their keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from cortex.errors import StructureError
from cortex.frontend.fields import Offered
from cortex.structures.meaning import Given, Meaning, by_key
from cortex.structures.source import shown


def json_trees(children: str | tuple[str, ...], *, fields: Mapping[str, Given] | None = None) -> Meaning:
    """What `node.children` and other names of a model are on nested dictionaries.

    `children` is the key of the list of children, or several keys, whose children follow one another; under a key
    there is a list of dictionaries, one dictionary, null or nothing. `fields` says for each of the model's names the
    key, or a function of the dictionary; a key that a node lacks is None to the model.
    """
    keys = (children,) if isinstance(children, str) else tuple(children)
    return Meaning(children=children_at(*keys), fields=Offered({}, by_key(fields, value_at)))


def value_at(key: str) -> Callable[[Any], Any]:
    """The function that reads `key` of a dictionary; None where there is none."""

    def value(node: Any) -> Any:
        return node.get(key) if isinstance(node, dict) else _refuse(node)

    return value


def children_at(*keys: str) -> Callable[[Any], list[Any]]:
    """The function that gives the dictionaries under `keys` of a dictionary."""

    def children(node: Any) -> list[Any]:
        if not isinstance(node, dict):
            _refuse(node)
        found: list[Any] = []
        for key in keys:
            below = node.get(key)
            if isinstance(below, list):
                found += below
            elif isinstance(below, dict):
                found.append(below)
            elif below is not None:
                raise StructureError(
                    f"{key!r} is {shown(below)}; under it belongs a list of dictionaries, one, or null"
                )
        return found

    return children


def _refuse(node: Any) -> NoReturn:
    raise StructureError(f"a node is {shown(node)} (a {type(node).__name__}); nodes of a JSON tree are dictionaries")

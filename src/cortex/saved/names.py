"""What the names of a saved model mean on the user's objects.

    {"sources": {"children": "kids", "inputs": ["left", "right"], "word": null}, "given": ["word"], "ways": null}

A name is an attribute, several attributes of children, or null for a function, which cannot be saved: whoever loads the
model gives it again. Names that mean the attribute of that name are left out. `given` are
all fields that were given when the model was compiled, which may be given again though no kind reads them. For a
module, `ways` has what its names mean that are not attributes (modules.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cortex.errors import ModelError
from cortex.frontend.fields import Accessors, Declared
from cortex.frontend.torch.accessors import TorchAccessors
from cortex.frontend.torch.steps import Attr
from cortex.saved.modules import decode_ways, encode_ways

Children = str | tuple[str, ...] | Callable[[Any], Iterable[Any]] | None
Fields = Mapping[str, str | Callable[[Any], Any] | Declared] | None


def describe_names(accessors: Accessors, names: set[str]) -> dict[str, Any]:
    """What these names of the model mean."""
    sources = {name: _source(source) for name, source in sorted(accessors.meanings(names).items())}
    ways = encode_ways(accessors.ways(names)) if isinstance(accessors, TorchAccessors) else None
    return {"sources": sources, "given": sorted(accessors.given_fields), "ways": ways}


def restore_names(data: Any, children: Children, fields: Fields, what: str, names: set[str]) -> Accessors:
    """The meanings that were saved, but for those that are given anew; `names` are all that the model reads."""
    sources = checked_sources(data)
    ways = None if data["ways"] is None else decode_ways(data["ways"])
    own = Accessors(fields, children) if ways is None else TorchAccessors(fields, children)
    if ways is not None:
        names = names | {way[0].name for way in ways.steps.values() if way and isinstance(way[0], Attr)}
    for name in own.given_fields:
        if name not in names and name not in data["given"]:
            known = ", ".join(sorted(names)) or "nothing"
            raise ModelError(f"{what}, fields={{{name!r}: ...}}: the model never reads node.{name}. It reads {known}.")
    again = own.meanings(sources)
    lacking = [name for name, source in sources.items() if source is None and name not in again]
    if lacking:
        raise ModelError(f"{what}: {_functions(lacking)}")
    kept = {name: source for name, source in sources.items() if source is not None and name not in again}
    own.add_meanings({name: tuple(s) if isinstance(s, list) else s for name, s in kept.items()})
    if ways is not None and isinstance(own, TorchAccessors):
        own.restore(ways)
    return own


def checked_sources(data: Any) -> dict[str, str | list[str] | None]:
    """The sources in a description; ValueError where it has none."""
    sources, given = data["sources"], data["given"]
    if type(sources) is not dict or not all(map(_is_source, (given, *sources.values()))) or given is None:
        raise ValueError("sources of names")
    return sources


def _is_source(source: Any) -> bool:
    return source is None or type(source) is str or (type(source) is list and all(type(s) is str for s in source))


def _source(source: Any) -> str | list[str] | None:
    return source if isinstance(source, str) else list(source) if isinstance(source, tuple) else None


def _functions(names: list[str]) -> str:
    """What to say of functions that were given when the model was compiled."""
    fields = ", ".join(f"{name!r}: ..." for name in names if name != "children")
    given = [*(["children=..."] if "children" in names else []), *([f"fields={{{fields}}}"] if fields else [])]
    listed = " and ".join(f"node.{name}" for name in names)
    return (
        f"functions say what {listed} is, and functions cannot be saved. Give them again: cortex.load(path, "
        f"{', '.join(given)})."
    )

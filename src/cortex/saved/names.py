"""What the names of a saved model mean on the user's objects.

    {"sources": {"children": "kids", "inputs": ["left", "right"], "word": null}, "given": ["word"], "ways": null}

A name is an attribute, several attributes of children, or null for a function, which cannot be saved: whoever loads the
model gives it again. Names that mean the attribute of that name are left out. `given` are
all fields that were given when the model was compiled, which may be given again though no kind reads them. For a
module, `ways` has what its names mean that are not attributes (modules.py). `computed` has the expressions of fields
that a function computes from others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cortex.cache.encoding import decode, encode
from cortex.errors import ModelError
from cortex.frontend.computed import Computed, Named, is_computation
from cortex.frontend.fields import Accessors, Declared
from cortex.frontend.torch.accessors import TorchAccessors
from cortex.frontend.torch.steps import first_attributes
from cortex.saved.modules import decode_ways, encode_ways

Children = str | tuple[str, ...] | Callable[[Any], Iterable[Any]] | None
Fields = Mapping[str, str | Callable[[Any], Any] | Declared] | None


def describe_names(accessors: Accessors, names: set[str]) -> dict[str, Any]:
    """What these names of the model mean."""
    sources = {name: _source(source) for name, source in sorted(accessors.meanings(names).items())}
    ways = encode_ways(accessors.ways(names)) if isinstance(accessors, TorchAccessors) else None
    given = sorted(accessors.given_fields)
    return {"sources": sources, "given": given, "ways": ways, "computed": encode_computed(accessors, names)}


def restore_names(data: Any, children: Children, fields: Fields, what: str, names: set[str]) -> Accessors:
    """The meanings that were saved, but for those that are given anew; `names` are all that the model reads."""
    sources = checked_sources(data)
    computed = _decoded(data.get("computed", {}))
    names = names | {x.name for each in computed.values() for x in each.operands if isinstance(x, Named)}
    ways = None if data["ways"] is None else decode_ways(data["ways"])
    own = Accessors(fields, children) if ways is None else TorchAccessors(fields, children)
    if ways is not None:
        names = names | first_attributes(ways.steps.values())
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
    own.computed |= computed
    return own


def encode_computed(accessors: Accessors, names: Iterable[str]) -> dict[str, Any]:
    """The computed fields of a model, and those that they are computed from."""
    found: dict[str, Any] = {}
    for name in names:
        if name in accessors.computed:
            own = accessors.computed[name]
            found[name] = encode(own)
            found |= encode_computed(accessors, [x.name for x in own.operands if isinstance(x, Named)])
    return found


def _decoded(data: Any) -> dict[str, Computed]:
    found = {str(name): decode(each) for name, each in data.items()}
    if not all(isinstance(x, Computed) and is_computation(x.fn, x.operands, _is_named) for x in found.values()):
        raise ValueError("computed fields")
    return found


def _is_named(x: Any) -> bool:
    return isinstance(x, Named) and type(x.name) is str


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

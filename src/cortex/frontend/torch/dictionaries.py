"""The dictionaries that code can reach: attributes of modules and of what they hold, global names, closures."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from cortex.frontend.torch.categories import is_node
from cortex.frontend.torch.entry import Entry
from cortex.frontend.torch.if_loaded import is_torch_module, torchs_own
from cortex.frontend.torch.lookups import Home

DEPTH = 2
"""Objects that modules and global names hold are looked into this far: `self.data.vocab.ids`."""


def dictionaries(entry: Entry) -> Iterator[Home]:
    """Where each dictionary is held, and under which name."""
    known: set[int] = set()
    for space in entry.spaces:
        if space.names is None:
            for home in space.held:
                yield from _within(home, known, DEPTH)
            continue
        outer, *scopes = space.held
        for name in sorted(space.names):
            held = dict.get(outer, name) if isinstance(outer, dict) else None
            if isinstance(held, dict):
                yield from ((scope, name, held) for scope in scopes)
            elif _is_looked_into(held):
                yield from _within(vars(held), known, DEPTH)
    for made, own, name in entry.cells:
        if isinstance(own.cell_contents, dict):
            yield made, name, own.cell_contents


def _within(home: MutableMapping[str, Any], known: set[int], depth: int) -> Iterator[Home]:
    if id(home) in known:
        return
    known.add(id(home))
    for name, held in list(home.items()):
        if isinstance(held, dict) and name not in torchs_own():
            yield home, name, held
        elif depth and _is_looked_into(held):
            yield from _within(vars(held), known, depth - 1)


def _is_looked_into(x: Any) -> bool:
    """Is it an object of some class, other than modules, which have spaces of their own?"""
    found = _looked_into.get(type(x))
    if found is None:
        own = is_node(x) and not (isinstance(x, ModuleType | dict) or is_torch_module(x))
        found = _looked_into[type(x)] = own and hasattr(x, "__dict__")
    return found


_looked_into: WeakKeyDictionary[type, bool] = WeakKeyDictionary()
"""By class; this is asked of everything that a module holds, for each trace."""

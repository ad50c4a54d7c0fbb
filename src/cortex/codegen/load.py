"""From object code to a function pointer, by the linker of Cortex, or LLVM's for what that does not know."""

from __future__ import annotations

import threading
from typing import Protocol
from weakref import WeakValueDictionary

from cortex.codegen.linker import CannotLink, MappedCode, map_code

_lock = threading.Lock()
_mapped: WeakValueDictionary[tuple[bytes, str], MappedCode] = WeakValueDictionary()


class LoadedCode(Protocol):
    """A function in memory, see llvm/module.py for its arguments; valid as long as this object lives."""

    @property
    def address(self) -> int:
        """Where the function is."""


def load(code: bytes, entry: str) -> LoadedCode:
    """Link `entry` into this process, unless it is there: code has no data of its own, so all who load it share it."""
    with _lock:
        found = _mapped.get((code, entry))
        if found is not None:
            return found
        try:
            found = _mapped[code, entry] = map_code(code, entry)
            return found
        except CannotLink:
            pass
    from cortex.codegen.llvm.load import load as link_by_llvm

    return link_by_llvm(code, entry)

"""From object code to a function pointer, by LLVM: code for machines that codegen/linker.py does not know."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from weakref import WeakValueDictionary

import llvmlite.binding as llvm

from cortex.codegen.llvm.host import start_llvm

LIBRARIES = 32  # of a linker
"""A linker keeps some kilobytes of every library for good, so a new one is begun after so many."""


@dataclass(frozen=True, eq=False)
class LoadedCode:
    """A function in memory, see `module` for its arguments; valid as long as this object lives."""

    address: int
    _tracker: llvm.ResourceTracker
    _linker: llvm.LLJIT  # lives as long as what it has linked


class _Linking:
    """What is in memory, by its content, and what links more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: WeakValueDictionary[tuple[bytes, str], LoadedCode] = WeakValueDictionary()
        self._linker: llvm.LLJIT | None = None
        self._linked = 0

    def load(self, code: bytes, entry: str) -> LoadedCode:
        with self._lock:
            found = self._loaded.get((code, entry))
            if found is None:
                found = self._loaded[code, entry] = self._link(code, entry)
            return found

    def _link(self, code: bytes, entry: str) -> LoadedCode:
        if self._linker is None or self._linked == LIBRARIES:
            start_llvm()
            self._linker, self._linked = llvm.create_lljit_compiler(use_jit_link=True), 0
        library = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(entry)
        self._linked += 1  # even if it fails: a name can be used once
        tracker = library.link(self._linker, f"{entry}.{self._linked}")
        return LoadedCode(tracker[entry], tracker, self._linker)


_linking = _Linking()


def load(code: bytes, entry: str) -> LoadedCode:
    """Link `entry` into this process, unless it is there."""
    return _linking.load(code, entry)

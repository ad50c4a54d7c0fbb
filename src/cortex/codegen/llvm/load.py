"""From object code to a function pointer."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

from cortex.codegen.llvm.host import start_llvm
from cortex.codegen.object_code import ObjectCode

_numbers = itertools.count()
_linking = threading.Lock()


@dataclass(frozen=True)
class LoadedCode:
    """A function in memory, see `module` for its arguments; valid as long as this object lives."""

    address: int
    _tracker: llvm.ResourceTracker


@cache
def _linker() -> llvm.LLJIT:
    start_llvm()
    return llvm.create_lljit_compiler(use_jit_link=True)


def load(obj: ObjectCode) -> LoadedCode:
    """Link `obj` into this process. Each call gives a copy of its own."""
    with _linking:
        library = llvm.JITLibraryBuilder().add_object_img(obj.code).export_symbol(obj.entry)
        tracker = library.link(_linker(), f"{obj.entry}.{next(_numbers)}")
        return LoadedCode(tracker[obj.entry], tracker)

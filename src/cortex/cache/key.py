"""The key of object code: a digest of everything that decides it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path


def key_of(ingredients: Iterable[str]) -> str:
    """The digest of `ingredients`, and of the compiler and the LLVM that make code of them."""
    from cortex.codegen.llvm.host import llvm_version  # LLVM is loaded only when it is asked

    digest = hashlib.sha256()
    for each in (COMPILER, llvm_version(), *ingredients):
        text = each.encode("utf-8", "surrogatepass")
        digest.update(len(text).to_bytes(8, "little"))  # so that no text can pass for two
        digest.update(text)
    return digest.hexdigest()


def files(package: Path) -> str:
    """The names, sizes and times of the Python files below a folder and of the native extension."""
    found = []
    for folder, _, names in os.walk(package):
        found += [os.path.join(folder, name) for name in names if name.endswith(".py")]
    lines = [_line(os.path.relpath(file, package), os.stat(file)) for file in found]
    native = find_spec("cortex._native")
    if native is not None and native.origin is not None:
        lines.append(_line("native", os.stat(native.origin)))
    return "\n".join(sorted(lines))


def _line(name: str, about: os.stat_result) -> str:
    return f"{name} {about.st_size} {about.st_mtime_ns}"


COMPILER = files(Path(__file__).parent.parent)
"""This compiler, so that an edited one is another one. Looked at while it is imported: a process that outlives an edit
goes on with the code it has, and must not pass for the new one."""

"""Where a saved model is read from and written to: a path, bytes, or an open file.

A file at a path is mapped, so that all processes share the pages of its weights; it must not be written in place
while it is in use. `fast.save(path)` replaces it instead, as `mv` does and `cp` does not.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from errno import EISDIR
from typing import IO, Any, TypeAlias

from cortex.errors import ModelError

Source: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]"
Sink: TypeAlias = "str | os.PathLike[str] | IO[bytes]"


def read_source(source: Source) -> tuple[str, memoryview]:
    """The name for messages, and the content, which begins at a page of memory and cannot be written."""
    if isinstance(source, str | os.PathLike):
        return repr(os.fspath(source)), _mapped(source)
    if isinstance(source, bytes | bytearray | memoryview):
        return f"<{memoryview(source).nbytes} bytes>", _aligned(source)
    read = getattr(source, "read", None)
    if read is None:
        raise ModelError(f"cortex.load({source!r}): give a path, bytes, or a file that is open for reading bytes.")
    content = read()
    if not isinstance(content, bytes | bytearray | memoryview):
        raise ModelError(f"cortex.load({source!r}): the file gives text; open it for reading bytes, 'rb'.")
    return repr(getattr(source, "name", source)), _aligned(content)


def _mapped(path: str | os.PathLike[str]) -> memoryview:
    what = repr(os.fspath(path))
    try:
        with open(path, "rb") as file:
            if not os.fstat(file.fileno()).st_size:
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise ModelError(f"{what} cannot be read: {error.strerror}.") from None
    except ValueError as error:  # a NUL in the name
        raise ModelError(f"{what} cannot be read: {error}.") from None


def _aligned(content: bytes | bytearray | memoryview) -> memoryview:
    size = memoryview(content).nbytes
    if not size:
        return memoryview(b"")
    memory = mmap.mmap(-1, size)
    memory[:] = bytes(content) if isinstance(content, memoryview) else content
    return memoryview(memory).toreadonly()


def write_sink(sink: Sink, pieces: list[Any]) -> None:
    """Write the pieces of a file. At a path, all of the file is there or nothing: a reader never sees a half."""
    if isinstance(sink, str | os.PathLike):
        _write(os.fspath(sink), pieces)
        return
    if not hasattr(sink, "write"):
        raise ModelError(f"fast.save({sink!r}): give a path, or a file that is open for writing bytes.")
    for piece in pieces:
        sink.write(piece)


def _write(path: str, pieces: list[Any]) -> None:
    """Errors are those of `path`."""
    partial = f"{path or '_'}.{os.getpid()}.partial"
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        with open(partial, "wb") as file:
            file.writelines(pieces)
        os.replace(partial, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(partial)
        raise OSError(error.errno, error.strerror or str(error), path) from None

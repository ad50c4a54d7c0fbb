"""A folder of files by key, bounded in size, which several processes may use at once.

The files hold code that will be executed, so one is read only if it is the user's own and nobody else may write it.
A file is written under another name and renamed: readers see all of it or nothing. Reading a file sets its time; when
the folder outgrows `MOST_BYTES`, those not read for longest are removed. Whatever the file system refuses is no error:
nothing is kept then.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from contextlib import suppress
from pathlib import Path

MOST_BYTES = 256 << 20
LARGEST_FILE = 64 << 20
SUFFIX, PARTIAL = ".code", ".partial"
ABANDONED_SECONDS = 3600
"""A file half written for so long has no writer any more."""


def read(folder: Path, key: str) -> bytes | None:
    """What was written for `key`, if it is there and can be trusted."""
    try:
        # A named pipe in its place must not keep us waiting, nor a link lead elsewhere.
        descriptor = os.open(folder / f"{key}{SUFFIX}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        about = os.fstat(descriptor)
        if not _is_own(about) or about.st_size > LARGEST_FILE:
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(LARGEST_FILE)
        with suppress(OSError):  # a file system that can only be read serves as well
            os.utime(descriptor)
        return content
    except OSError:
        return None
    finally:
        os.close(descriptor)


def write(folder: Path, key: str, content: bytes) -> None:
    """Keep `content` for `key`, if possible."""
    if len(content) > LARGEST_FILE:
        return
    partial = folder / f"{key}.{os.getpid()}.{threading.get_ident()}{PARTIAL}"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(partial, flags, 0o600), "wb") as file:
                file.write(content)
            partial.replace(folder / f"{key}{SUFFIX}")
        except OSError:
            partial.unlink(missing_ok=True)
            raise
        _shrink(folder)


def _is_own(about: os.stat_result) -> bool:
    others = stat.S_IWGRP | stat.S_IWOTH
    return stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & others


def _shrink(folder: Path) -> None:
    """Remove what was used longest ago until the rest fits, and what other writers left unfinished."""
    kept: list[tuple[int, int, str]] = []
    with os.scandir(folder) as found:
        for item in found:
            with suppress(OSError):  # another process may be removing it
                about = item.stat(follow_symlinks=False)
                if item.name.endswith(SUFFIX):
                    kept.append((about.st_mtime_ns, about.st_size, item.path))
                elif item.name.endswith(PARTIAL) and about.st_mtime < time.time() - ABANDONED_SECONDS:
                    os.unlink(item.path)
    excess = sum(size for _, size, _ in kept) - MOST_BYTES
    for _, size, path in sorted(kept):
        if excess <= 0:
            break
        with suppress(OSError):
            os.unlink(path)
        excess -= size

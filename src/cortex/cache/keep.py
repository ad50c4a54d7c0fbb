"""Keep what was compiled, and find it again."""

from __future__ import annotations

from pathlib import Path

from cortex.cache import files
from cortex.cache.entry import Entry


def keep(folder: Path, key: str, entry: Entry) -> None:
    """Write `entry` for later processes, if it can be written."""
    try:
        content = entry.to_bytes(key)
    except ValueError:  # the model compares nodes with a value that JSON cannot hold
        return
    files.write(folder, key, content)


def recall(folder: Path, key: str) -> Entry | None:
    """What was kept for `key`; None where there is nothing, or nothing to be trusted."""
    content = files.read(folder, key)
    return None if content is None else Entry.from_bytes(content, key)

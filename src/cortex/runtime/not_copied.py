"""What can be neither pickled nor copied."""

from __future__ import annotations

from typing import NoReturn


class NotCopied:
    """A compiled model: its code and memory are this process's."""

    def __reduce__(self) -> NoReturn:
        """Refused, with what to do instead."""
        raise TypeError(
            f"{self!r} cannot be pickled or copied: its code is in the memory of this process. Write it to a file, "
            "fast.save(path), and read that where it is wanted, cortex.load(path); threads may share the model itself."
        )

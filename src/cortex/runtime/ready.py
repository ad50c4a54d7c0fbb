"""The arrays of a program as its code takes them: weights padded and packed, as a file holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cortex.runtime.storage import Array


@dataclass(frozen=True, eq=False)
class Ready:
    """The arrays by buffer, and those of the programs that fill the model's tables; none where those are not known."""

    arrays: Mapping[str, Array]
    tables: tuple[Ready, ...]

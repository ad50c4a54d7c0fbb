"""An executable as it is saved."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cortex.frontend.fields import Accessors
from cortex.frontend.torch.interface import Interface
from cortex.frontend.torch.serving import Serving
from cortex.ra import ir as ra
from cortex.runtime.linearize import Checked
from cortex.runtime.storage import Array

if TYPE_CHECKING:
    from cortex.runtime.executable import Compiled


@dataclass(frozen=True)
class Part:
    """An executable as it is at one moment: the model as it was traced, its weights, and what was made of it."""

    model: ra.Model
    weights: Mapping[str, Array]
    accessors: Accessors
    compiled: Compiled
    checked: Sequence[Checked]  # the numbers of children that kinds of any arity are for
    threads: int
    built_for: int  # threads
    serving: Serving | None = None  # of a module: how it is called


Save = Callable[["str | os.PathLike[str]", Sequence[Part], Interface | None], None]
"""Writes a file that `cortex.load` reads."""

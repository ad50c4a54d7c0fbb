"""An executable as it is saved."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from cortex.frontend.fields import Accessors
from cortex.frontend.torch.interface import Interface
from cortex.frontend.torch.serving import Serving
from cortex.ra import ir as ra
from cortex.runtime.linearize import Checked
from cortex.runtime.storage import Array

if TYPE_CHECKING:
    from cortex.codegen.target import Target
    from cortex.runtime.compiled import Compiled
    from cortex.runtime.ready import Ready


@dataclass(frozen=True)
class Built:
    """What was made of a model for one machine and so many threads."""

    compiled: Compiled
    threads: int


@dataclass(frozen=True)
class Part:
    """An executable as it is at one moment: the model as it was traced, its weights, and what was made of it, the
    program in use first."""

    model: ra.Model
    weights: Mapping[str, Array]
    accessors: Accessors
    built: Sequence[Built]
    checked: Sequence[Checked]  # the numbers of children that kinds of any arity are for
    threads: int
    serving: Serving | None = None  # of a module: how it is called


@dataclass(frozen=True)
class Made:
    """A program that was compiled earlier, for so many threads, and its arrays as code takes them."""

    compiled: Compiled
    threads: int
    ready: Ready


BuildLike = Callable[["ra.Model", int, "Target | None", "Compiled"], "Compiled"]
"""Compiles for a number of threads and a machine, by default the one in use; so that bits are those of a program."""
Sink = str | os.PathLike[str] | IO[bytes]
Save = Callable[[Sink, Sequence[Part], Interface | None], None]
"""Writes a file that `cortex.load` reads."""

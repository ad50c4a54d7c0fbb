"""What tuning a primitive found, kept as JSON: a variant by program, instruction set and number of threads.

The text of the program says the shape, the memory format and the epilogue. Reading a file runs no code, and what it
names is taken only if it is one of the variants there are.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from cortex.codegen.target import Target
from cortex.ilir.ir import Func
from cortex.ilir.show import show
from cortex.primitives.variants import Variant


@dataclass(frozen=True)
class Tuned:
    """The fastest of the `tried` variants that were preferred, and the microseconds of its fastest call."""

    variant: Variant
    tried: int
    us: float


def file_of(folder: Path, f: Func, target: Target, threads: int) -> Path:
    """Where the variant of a lowered primitive is kept."""
    parts = (target.triple, target.cpu, target.features, str(threads), show(f))
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]
    return folder / "tuned" / f"{f.name}-{digest}.json"


def remember(file: Path, found: Tuned, about: str) -> None:
    """Write a result, if the folder can be written to; `about` is for whoever reads the file."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(f".{os.getpid()}")  # nobody reads half a file
        partial.write_text(json.dumps({"about": about, **asdict(found)}, indent=1) + "\n", encoding="utf-8")
        partial.replace(file)


def remembered(file: Path, tried: int) -> Tuned | None:
    """The result of trying at least so many; None where none, or nothing readable, is kept."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        found = Tuned(Variant(**kept["variant"]), int(kept["tried"]), float(kept["us"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found.tried >= tried else None

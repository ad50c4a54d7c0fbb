"""Settings from outside the program; the only reader of environment variables."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """What the environment decides.

    `cache` is where measurements of this machine are kept (CORTEX_CACHE, else the user's cache folder); `code` is
    where object code is kept, in that folder, and None, which is nowhere, if CORTEX_CACHE is set to nothing; `data` is
    the folder with treebanks that benchmarks use when it exists (CORTEX_DATA, else ../shared/data), `peers` that with
    programs to compare with (CORTEX_PEERS, else ../shared/peers); `verify` turns on the checks of every intermediate
    program (CORTEX_VERIFY=1; on in tests); `tracing_seconds` is how long the kinds of node that a model has may be
    looked for, at once (CORTEX_TRACING_SECONDS, else a minute of the processor's time).
    """

    cache: Path
    code: Path | None
    data: Path
    peers: Path
    verify: bool
    tracing_seconds: float

    @staticmethod
    def from_environment() -> Options:
        """The options this process runs with."""
        home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        asked = os.environ.get("CORTEX_CACHE")
        cache = Path(asked or Path(home) / "cortex")
        return Options(
            cache=cache,
            code=None if asked == "" else cache / "code",
            data=Path(os.environ.get("CORTEX_DATA") or Path("..") / "shared" / "data"),
            peers=Path(os.environ.get("CORTEX_PEERS") or Path("..") / "shared" / "peers"),
            tracing_seconds=float(os.environ.get("CORTEX_TRACING_SECONDS") or 60),
            verify=os.environ.get("CORTEX_VERIFY", "0") not in ("", "0"),
        )

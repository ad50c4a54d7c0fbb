"""How many threads a call may run on."""

from __future__ import annotations

import numpy as np

from cortex.errors import ModelError

MOST_THREADS = 64  # the size of a team


def checked_threads(threads: int) -> int:
    """`threads`, if a call can run on so many."""
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or not 1 <= threads <= MOST_THREADS:
        raise ModelError(f"threads={threads!r}: a call runs on 1 to {MOST_THREADS} threads")
    return int(threads)

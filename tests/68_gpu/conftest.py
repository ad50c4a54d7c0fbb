"""The modules of this folder that are no tests, and a cache for PoCL that goes when the tests are done."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
_BUILT = tempfile.TemporaryDirectory(prefix="cortex-pocl-")  # removed at exit
os.environ["POCL_CACHE_DIR"] = _BUILT.name

"""The hand-written models of `tests/ra_models.py` are shared with the tests of RA."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

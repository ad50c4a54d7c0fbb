"""Makes `torch_meaning` and `frontend_meaning` importable."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "10_frontend")]

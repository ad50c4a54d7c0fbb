"""What a table of cases says of a step."""

from __future__ import annotations

from cortex.ilir.ir import Func
from cortex.ir.step import Step

Steps = tuple[Step[Func], ...]
Cases = dict[str, tuple[Steps, Step[Func]]]
"""By the name of its golden file: steps that come before, then the step in question."""

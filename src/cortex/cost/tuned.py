"""What tuning found, kept as JSON: a schedule by model and machine. Reading it runs no code."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from cortex.errors import ScheduleError
from cortex.ra import ir as ra
from cortex.ra.show import show
from cortex.schedule.schedule import Schedule


def file_of(folder: Path, m: ra.Model, cpu: str) -> Path:
    """Where the schedule of a traced model on a machine is kept: the name tells the model's text and the machine."""
    digest = hashlib.sha256(f"{cpu}\n{show(m)}".encode()).hexdigest()[:20]
    return folder / "tuned" / f"{m.name}-{digest}.json"


def remember(folder: Path, m: ra.Model, cpu: str, schedule: Schedule, measured: dict[str, Any]) -> Path:
    """Write the winner, and what was measured beside it for whoever reads the file."""
    file = file_of(folder, m, cpu)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"schedule": repr(schedule), **measured}, indent=1) + "\n", encoding="utf-8")
    return file


def remembered(folder: Path, m: ra.Model, cpu: str) -> Schedule | None:
    """The winner for a model on a machine; None where nothing (or nothing readable) is kept."""
    try:
        kept = json.loads(file_of(folder, m, cpu).read_text(encoding="utf-8"))
        return Schedule.parse(kept["schedule"])
    except (OSError, ValueError, KeyError, TypeError, ScheduleError):
        return None

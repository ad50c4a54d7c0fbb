"""What tuning found, kept as JSON: choices by model and machine. Reading it runs no code."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cortex.ra import ir as ra
from cortex.ra.show import show
from cortex.schedule.default import Choices, TileChoice


def file_of(folder: Path, m: ra.Model, cpu: str) -> Path:
    """Where the choices for a traced model on a machine are kept: the name tells the model's text and the machine."""
    digest = hashlib.sha256(f"{cpu}\n{show(m)}".encode()).hexdigest()[:20]
    return folder / "tuned" / f"{m.name}-{digest}.json"


def remember(folder: Path, m: ra.Model, cpu: str, choices: Choices, measured: dict[str, Any]) -> Path:
    """Write the winner, and what was measured beside it for whoever reads the file."""
    file = file_of(folder, m, cpu)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"choices": asdict(choices), **measured}, indent=1) + "\n", encoding="utf-8")
    return file


def remembered(folder: Path, m: ra.Model, cpu: str) -> Choices | None:
    """The winner for a model on a machine; None where nothing (or nothing readable) is kept."""
    try:
        value = json.loads(file_of(folder, m, cpu).read_text(encoding="utf-8"))["choices"]
        return Choices(
            value["fuse"],
            value["inputs_first"],
            TileChoice(**value["tile"]),
            tuple((str(name), TileChoice(**tile)) for name, tile in value["nests"]),
            value.get("parallel"),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None

"""What the rows of docs/performance.json come to: ratios, means and worst cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

OURS = "cortex"
LIMIT_WITH_TABLES = "limit, inputs in tables"
NOT_PEERS = ("limit", LIMIT_WITH_TABLES, "treelstm.c")
"""treelstm.c starts from arrays and is compared apart."""


@dataclass(frozen=True)
class Cell:
    """One line of the suite: microseconds by system, and the least that each took."""

    model: str
    hidden: int
    batch: int
    threads: int
    us: dict[str, float]
    least: dict[str, float]
    peak_bytes: int
    needed_bytes: int

    @property
    def name(self) -> str:
        """tree_lstm 256, batch 1."""
        return f"{self.model} {self.hidden}, batch {self.batch}"

    @property
    def over_limit(self) -> float:
        """Cortex's time over the limit."""
        return self.us[OURS] / self.us["limit"]

    @property
    def least_over_limit(self) -> float:
        """The same by Cortex's least times: the limit is that of the machine at its best."""
        return self.least[OURS] / self.us["limit"]

    @property
    def best_peer(self) -> str:
        """The fastest system that is not Cortex."""
        peers = {name: us for name, us in self.us.items() if not name.startswith(OURS) and name not in NOT_PEERS}
        return min(peers, key=lambda name: peers[name])

    def gain(self, system: str, ours: str = OURS) -> float:
        """How many times longer `system` takes."""
        return self.us[system] / self.us[ours]

    @property
    def over_best(self) -> float:
        """How many times longer the best peer takes."""
        return self.gain(self.best_peer)


def suite(data: dict[str, Any]) -> list[Cell]:
    """The cells of the suite, in order."""
    found = []
    for row in data["suite"]:
        systems, ours = row["systems"], row["systems"][OURS]
        us = {name: s["us"] for name, s in systems.items()}
        least = {name: s["us_min"] for name, s in systems.items()}
        key = (row["model"], row["hidden"], row["batch"], row["threads"])
        found.append(Cell(*key, us, least, ours["peak_bytes"], ours["needed_bytes"]))
    return found


def thread_counts(cells: Iterable[Cell]) -> list[int]:
    """The numbers of threads that were measured."""
    return sorted({cell.threads for cell in cells})


def on(cells: Iterable[Cell], threads: int) -> list[Cell]:
    """The cells on so many threads."""
    return [cell for cell in cells if cell.threads == threads]


def worst(cells: Sequence[Cell], by: Callable[[Cell], float]) -> list[Cell]:
    """The three cells where `by` is largest, worst first."""
    return sorted(cells, key=by, reverse=True)[:3]

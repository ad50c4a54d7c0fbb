"""benchmarks/ablation_page.py: factors against the rung below, gaps where a rung does nothing, numbers in the text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "ablation_page.py"
LADDER = {
    "none": ("", 800.0),
    "batching": ("none", 400.0),
    "fusion": ("batching", 400.0),
    "specialization": ("fusion", 200.0),
    "packing": ("specialization", None),
    "tabulation": ("packing", 50.0),
    "automatic": ("none", 100.0),
}


def rows() -> list[dict[str, object]]:
    sizes = {"peak_bytes": 5000, "packed_bytes": 0, "table_bytes": 7000, "torch_peak_bytes": 3000}
    same = {"model": "gru", "hidden": 256, "threads": 1, "data": "sequences", "linearize_us": 25.0, **sizes}
    return [
        {
            **same,
            "batch": batch,
            "rung": rung,
            "against": against,
            "us": us,
            "us_min": us,
            "torch_batched_peak_bytes": None,
        }
        | {"note": "" if us else "nothing to do"}
        for batch in (1, 10)
        for rung, (against, us) in LADDER.items()
    ]


def test_writes_the_page(tmp_path: Path) -> None:
    data, page = tmp_path / "rows.json", tmp_path / "page.md"
    data.write_text(json.dumps(rows()))
    subprocess.run([sys.executable, SCRIPT, data, page], check=True)
    text = page.read_text()
    assert "**Batching alone** (2.00; 2.00 at batch 10)" in text
    assert "| batching | + nodes of one height together | 2.00 | 2.00 | 2.00 | 2.00 | - | 2.00 to 2.00 | 2 |" in text
    # Tabulation is against what packing left as it was.
    assert "| tabulation | + what depends on a word alone looked up in tables | 4.00 |" in text
    assert "| packing |  |  |" in text
    assert "* packing: nothing to do" in text
    assert "| gru | 256 | 1 | 3 |  | 5 | 5 | 5 | 0 | 7 |" in text
    assert "| gru | 256 | 10 | 25.0 | 25.0 | 25% |" in text

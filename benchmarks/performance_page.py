"""docs/performance.md, its chart and the table of the README.

    python benchmarks/performance_page.py            measure into docs/performance.json and write the pages
    python benchmarks/performance_page.py --pages    write the pages again from docs/performance.json

Measuring (`make performance`) takes about twenty minutes on two cores.
For a look: --models tree_fc --hidden 32 --budget 0.1 --random 1 --compiled 0.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from performance_chart import chart
from performance_figures import suite
from performance_text import page, readme

ROOT = Path(__file__).resolve().parent.parent
START, END = "<!-- table: benchmarks/performance_page.py -->", "<!-- end of table -->"


def documents(data: dict[str, Any], readme_text: str) -> dict[str, str]:
    """The text of every file that is made from the data, by its path in the project."""
    block = re.compile(f"{re.escape(START)}.*?{re.escape(END)}", re.DOTALL)
    if not block.search(readme_text):
        sys.exit(f"README.md has no block from {START} to {END}")
    filled = f"{START}\n{readme(data)}\n{END}"
    return {
        "docs/performance.md": page(data),
        "docs/performance.svg": chart(suite(data), data["date"], data["machine"]["name"]),
        "README.md": block.sub(lambda _: filled, readme_text, count=1),
    }


def write(root: Path) -> None:
    """Make the pages of the project in `root` from its docs/performance.json."""
    data = json.loads((root / "docs" / "performance.json").read_text(encoding="utf-8"))
    for name, text in documents(data, (root / "README.md").read_text(encoding="utf-8")).items():
        (root / name).write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", action="store_true", help="measure nothing")
    parser.add_argument("--root", type=Path, default=ROOT, help="the folder with README.md and docs")
    parser.add_argument("--models", default="")
    parser.add_argument("--hidden", default="")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--budget", type=float, default=4.0, help="seconds per cell")
    parser.add_argument("--random", type=int, default=20, help="random cells")
    parser.add_argument("--compiled", type=int, default=3, help="how often to compile; 0: leave that out")
    a = parser.parse_args()
    if not a.pages:
        from performance_run import run

        hidden = [int(h) for h in a.hidden.split(",") if h] or None
        threads = [int(t) for t in a.threads.split(",")]
        data = run([m for m in a.models.split(",") if m], hidden, threads, a.budget, a.random, a.compiled)
        (a.root / "docs" / "performance.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    write(a.root)


if __name__ == "__main__":
    main()

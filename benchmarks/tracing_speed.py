"""Compiling PyTorch modules whose object code is kept, and calling them on small trees.

    python benchmarks/tracing_speed.py [--only NAME] [--keep FILE] [--against FILE]

For each of some styles of modules: the processor time of `cortex.compile` when the object code is in the cache, how
often user code runs for each kind of node while it is traced (routines of the module, without the self-check), and the
time of a call on a small structure. `--keep` writes the figures to a file, `--against` prints those of such a file
beside them.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from pickle import dumps
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "12_torch" / "calls"))

import torch  # noqa: E402
from torch import nn  # noqa: E402

import cortex  # noqa: E402

SIZE, REPEATS, CALLS = 32, 5, 2000
STYLES = (
    "child_sum", "dicts", "of_none", "classes", "enums", "json", "root_classifier", "node_classifier", "memo",
    "even_odd", "visitor", "flag", "up_and_down", "bidirectional", "accumulated", "inputs",
)  # fmt: skip


class UpDown(nn.Module):
    """An upward and a downward pass, in 12 lines."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.u, self.d = nn.Embedding(50, SIZE), nn.Linear(SIZE, SIZE), nn.Linear(2 * SIZE, SIZE)

    def up(self, node: Any) -> Any:
        x = self.embedding(torch.tensor(node.word))
        node.h = torch.tanh(self.u(x + sum((self.up(c) for c in node.children), torch.zeros(SIZE))))
        return node.h

    def down(self, node: Any, above: Any) -> Any:
        node.z = torch.tanh(self.d(torch.cat([node.h, above])))
        for c in node.children:
            self.down(c, node.z)
        return node.z + sum(c.z for c in node.children)

    def forward(self, node: Any) -> Any:
        self.up(node)
        return self.down(node, torch.zeros(SIZE))


@cortex.model
def function(node: Any, w: Any) -> Any:
    """A recursive function, to compare calls with."""
    return cortex.tanh(w.e[node.word] + w.u @ cortex.sum(function(k, w) for k in node.children))


def styles() -> dict[str, tuple[Any, Callable[[], Any], Callable[[], Any]]]:
    """The class of each module, examples to compile it with, and the arguments of a small call."""
    import nodes
    from test_modules import CASES

    Node = nodes.Node  # noqa: N806 - a class
    seven = Node(1, [Node(2, [Node(4), Node(5)]), Node(3, [Node(6), Node(7)])])
    found = {"up_down": (UpDown, lambda: [seven], lambda: (Node(1, [Node(2), Node(3)]),))}
    for name in STYLES:
        kind, make, _ = CASES[name]
        found[name] = kind, lambda make=make: [make() for _ in range(4)], lambda make=make: smallest(make)
    return found


def smallest(make: Callable[[], Any]) -> tuple[Any, ...]:
    """The arguments of a small call, but not on a leaf, among some."""
    made = sorted((x if type(x) is tuple else (x,) for x in (make() for _ in range(60))), key=lambda x: len(dumps(x)))
    sizes = [len(dumps(x)) for x in made]
    return next((x for x, size in zip(made, sizes, strict=True) if size > 1.2 * sizes[0]), made[0])


def runs(kind: type, compile: Callable[[], Any]) -> tuple[Any, int]:
    """How often routines of the module's file are run."""
    file, found = sys.modules[kind.__module__].__file__, 0

    def see(frame: FrameType, event: str, _: Any) -> None:
        nonlocal found
        code = frame.f_code
        if event == "call" and code.co_filename == file and not code.co_name.startswith(("<", "__")):
            found += "self" in code.co_varnames[:1]

    sys.setprofile(see)
    try:
        return compile(), found
    finally:
        sys.setprofile(None)


def measure(kind: type, examples: Any, small: Any) -> dict[str, float]:
    """The figures of a module."""
    random.seed(3)
    torch.manual_seed(3)
    module, given, call = kind().eval(), examples(), small()
    fast, count = runs(kind, lambda: cortex.compile(module, examples=given, check=False))
    kinds = sum(run._trace.known_kinds for _, run in fast._made.values())
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        fast = cortex.compile(module, examples=given)
        times.append(time.process_time() - start)
    return {"ms": min(times) * 1e3, "runs": count, "kinds": kinds, "us": microseconds(lambda: fast(*call))}


def microseconds(call: Callable[[], Any]) -> float:
    """The shortest time of a call among rounds of many."""
    for _ in range(100):
        call()
    times = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(CALLS):
            call()
        times.append((time.process_time() - start) / CALLS)
    return min(times) * 1e6


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only")
    parser.add_argument("--keep")
    parser.add_argument("--against")
    args = parser.parse_args()
    before = json.loads(Path(args.against).read_text()) if args.against else {}
    figures = {}
    print(f"{'module':16} {'compile ms':>18} {'runs per kind':>18} {'call us':>16}")
    with torch.no_grad():
        for name, (kind, examples, small) in styles().items():
            if args.only in (None, name):
                found = figures[name] = measure(kind, examples, small)
                old = before.get(name)
                cells = [(f["ms"], f["runs"] / f["kinds"], f["us"]) for f in (old, found) if f]
                texts = [" -> ".join(f"{x:.1f}" for x in column) for column in zip(*cells, strict=True)]
                print(f"{name:16} {texts[0]:>18} {texts[1]:>18} {texts[2]:>16}", flush=True)
        weights = {"e": torch.rand(50, SIZE).numpy(), "u": torch.rand(SIZE, SIZE).numpy()}
        fast = cortex.compile(function, weights)
        tree = styles()["up_down"][2]()[0]
        print(f"{'a function':16} {'':18} {'':18} {microseconds(lambda: fast(tree)):16.1f}")
    if args.keep:
        Path(args.keep).write_text(json.dumps(figures))


if __name__ == "__main__":
    main()

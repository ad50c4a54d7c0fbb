"""PyTorch modules as people write them, compiled without a change, against the same modules run by PyTorch.

    python benchmarks/from_pytorch.py [modules] [sentiment] [corpora] [--all] [--only NAME] [--seconds 0.3]

Everything at batch 1 and on one thread each, in turns, every result checked. Times are of the processor: with one
thread that is the time that passes on a machine with nothing else to do, and what else it does is left out.

    modules     the modules of tests/12_torch/calls, with hidden states of 100 and structures of about 40 nodes
    sentiment   the child-sum TreeLSTM with hidden states of 150 and inputs of 300 on the Stanford trees
    corpora     one compiled module on all Stanford and all CoNLL-U trees: how often it was compiled again; compared
                with PyTorch on every 50th tree, with --all on all of them

At the end it prints the table of docs/from-pytorch.md, from which README takes its figures. All of it takes some three
minutes on a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import torch

import cortex
from cortex.options import Options
from cortex.structures.conllu import read_conllu
from cortex.structures.ptb import read_ptb
from cortex.structures.vocabulary import Vocabulary

ROOT = Path(__file__).resolve().parent.parent
DATA = Options.from_environment().data
sys.path.insert(0, str(ROOT / "tests" / "12_torch" / "calls"))
import bottom_up  # noqa: E402 - from the tests' folder
import heads  # noqa: E402
import nodes  # noqa: E402
from test_modules import CASES, arguments, same  # noqa: E402

HIDDEN, INPUT, WORDS, SIZE, STRUCTURES = 100, 100, 1000, 40, 10
EXPECTED_TREES = {"Stanford": 11_855, "CoNLL-U": 4_078}


def realistic() -> dict[str, Callable[[], Any]]:
    """Structures of realistic size for each module of the tests."""
    for module in (bottom_up, heads, nodes):
        vars(module).update(H=HIDDEN, D=INPUT, WORDS=WORDS)
    makers = (nodes.nary, nodes.pairs, nodes.typed, nodes.expression, nodes.dag, nodes.plan)
    sized: dict[Any, Callable[[], Any]] = {make: lambda make=make: make(_size(make)) for make in makers}
    own: dict[str, Callable[[], Any]] = {
        "nested_tuples": lambda: (nodes.nested(SIZE // 2),),
        "two_trees": lambda: (nodes.nary(SIZE), nodes.nary(SIZE)),
        "inputs": _with_inputs,
        "pooling": lambda: nodes.pairs(SIZE // 2),
        "forests": lambda: ([nodes.pairs(SIZE // 2), nodes.pairs(SIZE // 2)],),
    }
    return {name: own.get(name) or sized[make] for name, (_, make, _) in CASES.items()}


def _size(make: Any) -> int:
    """Sizes of trees that branch in two are counted in leaves."""
    return SIZE if make in (nodes.nary, nodes.dag) else SIZE // 2


def _with_inputs() -> tuple[Any, ...]:
    found: list[Any] = []
    for _ in range(2):
        tree, count = nodes.numbered(nodes.nary(SIZE))
        found += [tree, torch.randint(0, WORDS, (count,))]
    return tuple(found)


def in_turns(runs: list[Callable[[], Any]], seconds: float) -> list[float]:
    """The median time of each, in seconds; they take turns so that a busy machine is busy for all of them."""
    times: list[list[float]] = [[] for _ in runs]
    end = time.perf_counter() + seconds
    while len(times[0]) < 3 or time.perf_counter() < end:
        for run, found in zip(runs, times, strict=True):
            start = time.process_time()
            run()
            found.append(time.process_time() - start)
    return [median(found) for found in times]


def over_all(module: Any, requests: list[Any]) -> Callable[[], None]:
    def run() -> None:
        for request in requests:
            module(*arguments(request))

    return run


def modules(seconds: float, only: str) -> dict[str, str]:
    """Each module of the tests: microseconds per call, eager and compiled. Gives rows of the summary."""
    ratios: list[float] = []
    by_mode: dict[bool, list[float]] = {False: [], True: []}
    print(f"{'module':18}{'mode':>8}{'kinds':>6}{'compile s':>10}{'eager us':>10}{'compiled us':>12}{'ratio':>8}")
    for name, make in realistic().items():
        if only not in name:
            continue
        random.seed(1)
        torch.manual_seed(1)
        module = CASES[name][0]().eval()
        requests = [make() for _ in range(STRUCTURES)]
        start = time.perf_counter()
        fast = cortex.compile(module, examples=requests)
        took = time.perf_counter() - start
        for request in requests:
            same(fast(*arguments(request)), module(*arguments(request)))
        eager, compiled = in_turns([over_all(module, requests), over_all(fast, requests)], seconds)
        ratios.append(eager / compiled)
        run = fast.executable(*arguments(requests[0]))
        mode, kinds = run._trace._model.mode, len(run.compiled.model.kinds)
        by_mode[mode == "calls"].append(ratios[-1])
        print(
            f"{name:18}{mode:>8}{kinds:6}{took:10.1f}{eager / STRUCTURES * 1e6:10.0f}"
            f"{compiled / STRUCTURES * 1e6:12.0f}{ratios[-1]:8.1f}",
            flush=True,
        )
    print(f"{len(ratios)} modules, geometric mean {geometric_mean(ratios):.1f}x, least {min(ratios):.1f}x\n")
    rows = {f"all {len(ratios)}, geometric mean": f"{geometric_mean(ratios):.2g}"}
    for calls, what in ((False, "that run on the user's own nodes"), (True, "whose calls are nodes")):
        if found := by_mode[calls]:
            rows[f"those {what}"] = f"{min(found):.2g} to {max(found):.2g}"
    return rows


class Sentiment(bottom_up.ChildSum):
    """The child-sum TreeLSTM of Tai et al. as its public PyTorch version is written, for trees with words in leaves."""

    def __init__(self, words: int) -> None:
        bottom_up.WORDS, bottom_up.D, bottom_up.H = words, 300, 150
        super().__init__()


class Tree:
    """A node as people write it: attributes can be set. Phrases have the word 0."""

    def __init__(self, node: Any) -> None:
        self.word = max(node.word, 0)
        self.children = [Tree(child) for child in node.children]


def stanford() -> tuple[list[Any], int]:
    """All trees and the number of words."""
    files = [DATA / "sst" / f"{part}.txt" for part in ("train", "dev", "test")]
    vocabulary = Vocabulary(w for f in files for w in f.read_text(encoding="utf-8").replace(")", " ").split())
    return [Tree(tree) for f in files for tree in read_ptb(f, words=vocabulary)], len(vocabulary)


def universal(words: int) -> list[Any]:
    """All trees of dependencies."""
    files = sorted((DATA / "ud").glob("*.conllu"))
    return [Tree(tree) for f in files for tree in read_conllu(f, words=lambda w: len(w) * 7919 % words)]


def sentiment(seconds: float) -> dict[str, str]:
    """The TreeLSTM of the Stanford trees: microseconds per sentence. Gives a row of the summary."""
    trees, words = stanford()
    module = Sentiment(words).eval()
    sample = trees[:: len(trees) // 50]
    fast = cortex.compile(module, examples=sample)
    for tree in sample:
        same(fast(tree), module(tree))
    eager, compiled = in_turns([over_all(module, sample), over_all(fast, sample)], max(seconds, 5))
    print(
        f"child-sum TreeLSTM, hidden 150, inputs of 300, {len(sample)} Stanford trees: eager "
        f"{eager / len(sample) * 1e6:.0f} us, compiled {compiled / len(sample) * 1e6:.0f} us per tree, "
        f"{eager / compiled:.1f}x\n"
    )
    return {"child-sum TreeLSTM, hidden 150, inputs of 300, on Stanford trees": f"{eager / compiled:.2g}"}


def corpora(everything: bool) -> None:
    """One compiled module on all trees."""
    trees, words = stanford()
    module = Sentiment(words).eval()
    fast = cortex.compile(module, examples=trees[:5])
    run = fast.executable(trees[0])
    for name, found in (("Stanford", trees), ("CoNLL-U", universal(words))):
        before, nodes_seen, checked = run.compilations, 0, 0
        spent = worst = 0.0
        for i, tree in enumerate(found):
            start = time.process_time()
            got = fast(tree)
            spent += time.process_time() - start
            nodes_seen += sum(1 for _ in below(tree))
            if everything or i % 50 == 0:
                want = module(tree)
                same(got, want)
                worst = max(worst, *(float((a - b).abs().max()) for a, b in zip(got, want, strict=True)))
                checked += 1
        print(
            f"{name}: {len(found)} trees (expected {EXPECTED_TREES[name]}), {nodes_seen} nodes, "
            f"{run.compilations - before} recompilations, {checked} compared with eager, at worst {worst:.1e} apart, "
            f"{spent / len(found) * 1e6:.0f} us per tree",
            flush=True,
        )


def below(tree: Any) -> Iterator[Any]:
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        todo += node.children


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["modules", "sentiment", "corpora"])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=0.3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    summary: dict[str, str] = {}
    with torch.no_grad():
        if "modules" in given.parts:
            summary |= modules(given.seconds, given.only)
        if "sentiment" in given.parts:
            summary |= sentiment(given.seconds)
        if "corpora" in given.parts:
            corpora(given.all)
    print("\n| modules | times as fast |\n| --- | --: |")
    for what, ratio in summary.items():
        print(f"| {what} | {ratio} |")


if __name__ == "__main__":
    main()

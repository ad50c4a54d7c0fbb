"""The training suite: a step, forward and backward, by Cortex and by PyTorch, and the machine's limit.

A child-sum TreeLSTM with words at the leaves and a class at the root, on trees as large as those of the Stanford
treebank. All systems of a cell train one module, interleaved in one process; before that, their gradients are
compared. Timed is the way from the user's objects to gradients in place, without the optimizer, in microseconds per
tree. Sums over nodes are products of NumPy's, whose threads OPENBLAS_NUM_THREADS chooses when Python starts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from random import Random
from statistics import median
from typing import Any

import torch
from torch import nn

from cortex.bench.limit import BYTES, L2_SHARE, Machine
from cortex.bench.quiet import watch
from cortex.bench.timing import Timing, interleave
from cortex.bench.training_module import WORDS, TreeLSTM, batched, eager
from cortex.errors import InternalError
from cortex.structures.tree import postorder
from cortex.zoo.structures import parse_trees_with_children

SIZES = ((300, 150), (256, 256), (512, 512))
"""Elements of a word's vector, and of a state."""
CLOSE = 1e-3
MOST_BATCHES = 8


@dataclass(frozen=True)
class Cell:
    """One configuration in which all systems are timed."""

    model: str
    inputs: int
    hidden: int
    batch: int
    threads: int


@dataclass(frozen=True)
class Row:
    """What one system takes in one cell: microseconds per tree."""

    model: str
    inputs: int
    hidden: int
    batch: int
    threads: int
    system: str
    us: float
    us_min: float
    repetitions: int
    batches: int
    form: str

    def as_json(self) -> dict[str, Any]:
        """Plain data for a JSON file."""
        return asdict(self)


def cells(hidden: Sequence[int] | None, batch: Iterable[int], threads: Iterable[int]) -> list[Cell]:
    """The cells for these choices; without `hidden`, all sizes."""
    sizes = SIZES if hidden is None else [next((s for s in SIZES if s[1] == h), (h, h)) for h in hidden]
    return [Cell("tree_lstm", *size, b, t) for t in threads for size, b in product(sizes, batch)]


def run_cell(cell: Cell, machine: Machine, budget: float) -> list[Row]:
    """Check and time every system in one cell for about `budget` seconds."""
    import cortex

    torch.set_num_threads(cell.threads)
    torch.manual_seed(0)
    module, rng = TreeLSTM(cell.inputs, cell.hidden), Random(0)
    examples = parse_trees_with_children(rng, 10, WORDS)
    fast = cortex.compile(module, examples=examples, check=False, threads=cell.threads).train()
    runs: dict[str, Callable[[list[Any]], torch.Tensor]] = {
        "cortex": fast,
        "torch-eager": partial(eager, module),
        "torch-batched": partial(batched, module),
    }
    _check(module, runs, parse_trees_with_children(Random(1), min(cell.batch, 10), WORDS))
    systems = {name: partial(_step, module, run) for name, run in runs.items()}
    seeds = range(max(1, min(MOST_BATCHES, 256 // cell.batch)))
    batches = [partial(_trees, seed, cell.batch) for seed in seeds]
    timings = interleave(systems, batches, budget, is_slow=watch(machine, cell.threads))
    bound = median(limit_us(cell, _levels(fresh()), machine) for fresh in batches)
    forms = {
        "cortex": f"OPENBLAS_NUM_THREADS={os.environ.get('OPENBLAS_NUM_THREADS', '')}",
        "torch-eager": "node by node, the embedding looked up once per tree",
        "torch-batched": "by level over the whole batch, by hand",
        "limit": f"FMA peak {machine.peak:.0f} GFLOP/s, reads {machine.l2:.0f} and {machine.beyond:.0f} GB/s",
    }
    timings["limit"] = Timing(bound, bound, 1, len(batches))
    return [
        Row(**asdict(cell), system=name, us=t.us / cell.batch, us_min=t.us_min / cell.batch,
            repetitions=t.repetitions, batches=t.batches, form=forms[name])
        for name, t in timings.items()
    ]  # fmt: skip


def limit_us(cell: Cell, levels: Sequence[int], machine: Machine) -> float:
    """Lower bound for a step of trees with `levels[k]` nodes of height k.

    It is the products of the forward pass and as many again for the adjoints of inputs, group by group, each reading
    the weights once; then the gradients of weights, one product each over all nodes, written once.
    """
    weights = 3 * cell.hidden * cell.inputs, 4 * cell.hidden**2
    macs = weights[0], 5 * cell.hidden**2
    groups = [(levels[0], macs[0], weights[0]), *((n, macs[1], weights[1]) for n in levels[1:])]

    def flops_us(n: int, of_node: int) -> float:
        return 2e-3 * n * of_node / (machine.peak * cell.threads)

    def moved_us(elements: int) -> float:
        each = BYTES * elements / cell.threads
        near = min(each, L2_SHARE * machine.l2_bytes)
        return 1e-3 * (near / machine.l2 + (each - near) / machine.beyond)

    passes = 2 * sum(max(flops_us(n, m), moved_us(w)) for n, m, w in groups)
    of_weights = sum(flops_us(n, m) for n, m, _ in groups)
    return passes + max(of_weights, moved_us(sum(weights)))


def _trees(seed: int, count: int) -> list[Any]:
    return parse_trees_with_children(Random(seed), count, WORDS)


def _levels(trees: list[Any]) -> list[int]:
    """How many nodes have each height."""
    heights: dict[int, int] = {}
    counts: list[int] = []
    for tree in trees:
        for node in postorder(tree):
            height = heights[id(node)] = 1 + max((heights[id(k)] for k in node.children), default=-1)
            counts += [0] * (height + 1 - len(counts))
            counts[height] += 1
    return counts


def _step(module: TreeLSTM, run: Callable[[list[Any]], torch.Tensor], trees: list[Any]) -> None:
    """Gradients in place of those of the last step."""
    module.zero_grad(set_to_none=True)
    labels = torch.tensor([t.word % 5 for t in trees])
    nn.functional.cross_entropy(run(trees), labels).backward()  # type: ignore[no-untyped-call]


def _check(module: TreeLSTM, runs: dict[str, Callable[[list[Any]], torch.Tensor]], trees: list[Any]) -> None:
    """Refuse systems whose gradients differ from those of the first one."""
    wanted: dict[str, torch.Tensor] = {}
    for system, run in runs.items():
        _step(module, run, trees)
        for name, p in module.named_parameters():
            assert p.grad is not None
            exact = wanted.setdefault(name, p.grad.clone())
            if not torch.allclose(p.grad, exact, CLOSE, CLOSE * float(exact.abs().max())):
                raise InternalError(f"{system} gives another gradient of {name}")

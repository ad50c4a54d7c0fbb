"""How fast a request could be on this machine at best, whoever runs it.

A group of n nodes that reads W bytes of weights and does F floating-point operations per node takes, on t
threads, at least

    max(n * F / (t * peak), read(W / t))      with  read(w) = min(w, s) / bw(L2) + max(0, w - s) / bw(beyond L2)

where s, the part of a core's L2 that weights can hold, is 7/8 of it. A request takes at least the sum over its
groups. Products of inputs (`W @ emb[word]`) do not depend on the recursion and form one group of their own.
Gathers, activation functions, barriers and linearizing count as nothing; leaves are not tabulated and equal
subtrees are not merged, so a program that does either may go below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

L2_SHARE = 0.875
BYTES = 4


@dataclass(frozen=True)
class Machine:
    """What one core does: FMA peak in GFLOP/s, reads in GB/s by where the data lies, and the size of its L2."""

    peak: float
    l2: float
    beyond: float
    l2_bytes: int


@dataclass(frozen=True)
class Work:
    """Multiply-adds per node and elements of weights read per group, as multiples of H**2.

    `input_*` belong to the products of inputs, for every node that has one; `cell_*` to a node with children.
    """

    input_macs: float
    input_weights: float
    cell_macs: float
    cell_weights: float
    inputs_at: str  # "leaves" or "nodes"


def work(model: str, hidden: int) -> Work:
    """The work of one node of a model of the recursive suite, its children being two where that matters.

    The gate r of a TreeGRU leaf multiplies nothing and is not counted. The last term of MV-RNN, two products of
    H x H matrices, is 2 H**3.
    """
    match model:
        case "tree_fc":
            return Work(0, 0, 2, 2, "leaves")
        case "tree_lstm":
            return Work(3, 3, 5, 4, "leaves")
        case "tree_gru":
            return Work(2, 2, 3, 3, "leaves")
        case "mv_rnn":
            return Work(0, 0, 4 + 2 * hidden, 4, "leaves")
        case "dag_rnn":
            return Work(1, 1, 1, 1, "nodes")
        case "lstm":
            return Work(4, 4, 4, 4, "nodes")
        case "gru":
            return Work(3, 3, 3, 3, "nodes")
        case _:
            raise KeyError(model)


def limit_us(
    model: str, hidden: int, levels: Sequence[int], machine: Machine, threads: int, *, tables: bool = False
) -> float:
    """Lower bound, in microseconds, for a request with `levels[k]` nodes of height k.

    With `tables`, products of inputs are looked up and count as nothing.
    """
    w = work(model, hidden)
    inputs = sum(levels) if w.inputs_at == "nodes" else levels[0]
    square = hidden * hidden

    def group(nodes: int, macs: float, weights: float) -> float:
        compute = nodes * 2 * macs * square / (threads * machine.peak)
        return max(compute, read_ns(BYTES * weights * square / threads, machine))

    nanoseconds = 0.0 if tables else group(inputs, w.input_macs, w.input_weights)
    nanoseconds += sum(group(n, w.cell_macs, w.cell_weights) for n in levels[1:])
    return nanoseconds / 1e3


def read_ns(size: float, machine: Machine) -> float:
    """Nanoseconds one core takes to read `size` bytes of weights again."""
    share = L2_SHARE * machine.l2_bytes
    return min(size, share) / machine.l2 + max(0.0, size - share) / machine.beyond

"""torch-batched, second form: the level loop itself in TorchScript, frozen, so that no Python runs between operators.

The programs are those of `batched` in the form TorchScript runs fastest. There is none for sequences: the loops of
torch.nn.LSTM and GRU are native already. Annotations stay objects here (no future import): TorchScript reads them.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from cortex.bench.batched import SIDE, WAVEFRONT_ORDER
from cortex.bench.walk import by_level, grid_words

Run = Callable[[list[Any]], Tensor]


class Program(torch.nn.Module):
    """Weights as buffers, so that freezing makes them constants."""

    H: int

    def __init__(self, weights: Mapping[str, npt.NDArray[Any]]) -> None:
        """Register every weight under its name."""
        super().__init__()
        self.H = weights["emb"].shape[1]
        for name, value in weights.items():
            self.register_buffer(name, torch.from_numpy(np.ascontiguousarray(value)))


class TreeFC(Program):
    """relu(W [h_l ; h_r] + b)"""

    emb: Tensor
    W: Tensor
    b: Tensor

    def forward(self, parts: list[Tensor], nodes: int) -> Tensor:
        """Root states, given what `by_level` returns."""
        H = self.H
        end = parts[0].size(0)
        h = torch.empty(nodes, H)
        torch.index_select(self.emb, 0, parts[0], out=h.narrow(0, 0, end))
        for k in range(1, len(parts) - 1):
            n = parts[k].size(0) // 2
            out = h.narrow(0, end, n)
            torch.addmm(self.b, h.index_select(0, parts[k]).view(n, 2 * H), self.W, out=out)
            out.relu_()
            end += n
        return h.index_select(0, parts[len(parts) - 1])


class TreeLSTM(Program):
    """The child-sum TreeLSTM on binary trees."""

    emb: Tensor
    W_iou: Tensor
    U_iou: Tensor
    b_iou: Tensor
    U_f: Tensor
    b_f: Tensor

    def forward(self, parts: list[Tensor], nodes: int) -> Tensor:
        """Root states, given what `by_level` returns."""
        H = self.H
        end = parts[0].size(0)
        h = torch.empty(nodes, H)
        c = torch.empty(nodes, H)
        i, o, u = torch.addmm(self.b_iou, self.emb.index_select(0, parts[0]), self.W_iou).chunk(3, 1)
        new = c.narrow(0, 0, end)
        torch.mul(i.sigmoid(), u.tanh(), out=new)
        torch.mul(o.sigmoid(), new.tanh(), out=h.narrow(0, 0, end))
        for k in range(1, len(parts) - 1):
            children = parts[k]
            n = children.size(0) // 2
            below = h.index_select(0, children)
            left, right = below.view(n, 2, H).unbind(1)
            kept = torch.addmm(self.b_f, below, self.U_f).sigmoid_().mul_(c.index_select(0, children))
            kept_left, kept_right = kept.view(n, 2, H).unbind(1)
            i, o, u = torch.addmm(self.b_iou, left + right, self.U_iou).chunk(3, 1)
            new = c.narrow(0, end, n)
            torch.addcmul(kept_left + kept_right, i.sigmoid(), u.tanh(), out=new)
            torch.mul(o.sigmoid(), new.tanh(), out=h.narrow(0, end, n))
            end += n
        return h.index_select(0, parts[len(parts) - 1])


class TreeGRU(Program):
    """The child-sum TreeGRU on binary trees."""

    emb: Tensor
    W_zg: Tensor
    b_zg: Tensor
    U_zr: Tensor
    b_zr: Tensor
    U_g: Tensor
    b_g: Tensor

    def forward(self, parts: list[Tensor], nodes: int) -> Tensor:
        """Root states, given what `by_level` returns."""
        H = self.H
        end = parts[0].size(0)
        h = torch.empty(nodes, H)
        z, g = torch.addmm(self.b_zg, self.emb.index_select(0, parts[0]), self.W_zg).chunk(2, 1)
        torch.mul(1 - z.sigmoid(), g.tanh(), out=h.narrow(0, 0, end))
        for k in range(1, len(parts) - 1):
            n = parts[k].size(0) // 2
            left, right = h.index_select(0, parts[k]).view(n, 2, H).unbind(1)
            s = left + right
            z, r = torch.addmm(self.b_zr, s, self.U_zr).sigmoid_().chunk(2, 1)
            g = torch.addmm(self.b_g, r * s, self.U_g).tanh_()
            torch.lerp(g, s, z, out=h.narrow(0, end, n))
            end += n
        return h.index_select(0, parts[len(parts) - 1])


class MVRNN(Program):
    """MV-RNN, matrices transposed and flattened in `mat`."""

    emb: Tensor
    mat: Tensor
    W: Tensor
    b: Tensor
    W_M_left: Tensor
    W_M_right: Tensor

    def forward(self, parts: list[Tensor], nodes: int) -> Tensor:
        """Root states, given what `by_level` returns."""
        H = self.H
        end = parts[0].size(0)
        v = torch.empty(nodes, H)
        M = torch.empty(nodes, H * H)
        torch.index_select(self.emb, 0, parts[0], out=v.narrow(0, 0, end))
        torch.index_select(self.mat, 0, parts[0], out=M.narrow(0, 0, end))
        for k in range(1, len(parts) - 1):
            n = parts[k].size(0) // 2
            left, right = parts[k].view(n, 2).unbind(1)
            A = M.index_select(0, left)
            B = M.index_select(0, right)
            a = torch.bmm(v.index_select(0, left).view(n, 1, H), B.view(n, H, H))
            c = torch.bmm(v.index_select(0, right).view(n, 1, H), A.view(n, H, H))
            torch.addmm(self.b, torch.cat([a, c], 2).view(n, 2 * H), self.W, out=v.narrow(0, end, n)).tanh_()
            P = M.narrow(0, end, n).view(n * H, H)
            torch.mm(A.view(n * H, H), self.W_M_left, out=P)
            P.addmm_(B.view(n * H, H), self.W_M_right)
            end += n
        return v.index_select(0, parts[len(parts) - 1])


class DagRNN(Program):
    """DAG-RNN on square grids; `words` has a column per grid, row by row."""

    emb: Tensor
    W: Tensor
    U: Tensor
    b: Tensor
    order: Tensor
    side: int

    def __init__(self, weights: Mapping[str, npt.NDArray[Any]]) -> None:
        """Register every weight under its name, and the side of the grid."""
        super().__init__(weights)
        self.side = SIDE

    def forward(self, words: Tensor) -> Tensor:
        """States of the last cells."""
        H = self.H
        side = self.side
        size = words.size(1)
        ids = words.index_select(0, self.order).reshape(-1)
        x = torch.addmm(self.b, self.emb.index_select(0, ids), self.W).view(-1, size, H)
        h = torch.zeros(side + 2, size, H)
        start = 0
        for d in range(2 * side - 1):
            lo = max(0, d - side + 1)
            n = min(d, side - 1) - lo + 1
            below = h.narrow(0, lo, n) + h.narrow(0, lo + 1, n)
            out = h.narrow(0, lo + 1, n).view(n * size, H)
            torch.addmm(x.narrow(0, start, n).view(n * size, H), below.view(n * size, H), self.U, out=out)
            out.tanh_()
            start += n
        return h[side]


def make(model: str, weights: Mapping[str, npt.NDArray[Any]]) -> Run | None:
    """The scripted program for `model` over `weights` (see `peer_weights`), where there is one."""
    match model:
        case "tree_fc":
            program: Program = TreeFC(weights)
        case "tree_lstm":
            program = TreeLSTM(weights)
        case "tree_gru":
            program = TreeGRU(weights)
        case "mv_rnn":
            H = weights["emb"].shape[1]
            program = MVRNN({**weights, "mat": weights["mat"].transpose(0, 2, 1).reshape(-1, H * H)})
        case "dag_rnn":
            program = DagRNN({**weights, "order": np.array(WAVEFRONT_ORDER)})
        case _:
            return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # TorchScript is deprecated, and still the fastest
        script = torch.jit.freeze(torch.jit.script(program.eval()))
    if model == "dag_rnn":
        return lambda batch: script(torch.tensor([grid_words(grid) for grid in batch]).t())
    return lambda batch: script(*by_level(batch))

"""torch-batched, first form: level-wise batching by hand over the whole batch.

One gather per level, gate products of one operand fused, biases through addmm, elementwise work in place, results
written into buffers for all nodes, inference mode. Sequences go through torch.nn.LSTM and GRU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from cortex.bench.walk import by_level, grid_words, sequence_words

Run = Callable[[list[Any]], Tensor]
Weights = Mapping[str, Tensor]
SIDE = 10
WAVEFRONTS = [(max(0, d - SIDE + 1), min(d, SIDE - 1)) for d in range(2 * SIDE - 1)]
WAVEFRONT_ORDER = [SIDE * i + d - i for d, (lo, hi) in enumerate(WAVEFRONTS) for i in range(lo, hi + 1)]


def make(model: str, weights: Mapping[str, npt.NDArray[Any]]) -> Run:
    """The program for `model` over `weights` (see `peer_weights`): a batch of structures to their root states."""
    w = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in weights.items()}
    return _PROGRAMS[model](w)


def _tree_fc(w: Weights) -> Run:
    emb, W, b = w["emb"], w["W"], w["b"]
    H = emb.shape[1]

    def run(batch: list[Any]) -> Tensor:
        parts, nodes = by_level(batch)
        end = parts[0].numel()
        h = torch.empty(nodes, H)
        torch.index_select(emb, 0, parts[0], out=h[:end])
        for children in parts[1:-1]:
            n = children.numel() // 2
            out = h[end : end + n]
            torch.addmm(b, h.index_select(0, children).view(n, 2 * H), W, out=out)
            out.relu_()
            end += n
        return h.index_select(0, parts[-1])

    return run


def _tree_lstm(w: Weights) -> Run:
    emb, W, U, b, Uf, bf = w["emb"], w["W_iou"], w["U_iou"], w["b_iou"], w["U_f"], w["b_f"]
    H = emb.shape[1]

    def run(batch: list[Any]) -> Tensor:
        parts, nodes = by_level(batch)
        end = parts[0].numel()
        hc = torch.empty(nodes, 2 * H)  # h and c side by side: one gather per level
        gates = torch.addmm(b, emb.index_select(0, parts[0]), W)
        io = gates[:, : 2 * H].sigmoid_()
        out = hc[:end]
        c = out[:, H:]
        torch.mul(io[:, :H], gates[:, 2 * H :].tanh_(), out=c)
        torch.mul(io[:, H:], c.tanh(), out=out[:, :H])
        for children in parts[1:-1]:
            n = children.numel() // 2
            below = hc.index_select(0, children)
            pairs = below.view(n, 2, 2 * H)
            gates = torch.addmm(b, pairs[:, 0, :H] + pairs[:, 1, :H], U)
            kept = torch.addmm(bf, below[:, :H], Uf).sigmoid_().mul_(below[:, H:]).view(n, 2, H)
            io = gates[:, : 2 * H].sigmoid_()
            out = hc[end : end + n]
            c = out[:, H:]
            torch.addcmul(kept[:, 0] + kept[:, 1], io[:, :H], gates[:, 2 * H :].tanh_(), out=c)
            torch.mul(io[:, H:], c.tanh(), out=out[:, :H])
            end += n
        return hc.index_select(0, parts[-1])[:, :H]

    return run


def _tree_gru(w: Weights) -> Run:
    emb, W_zg, b_zg = w["emb"], w["W_zg"], w["b_zg"]
    U_zr, b_zr, U_g, b_g = w["U_zr"], w["b_zr"], w["U_g"], w["b_g"]
    H = emb.shape[1]

    def run(batch: list[Any]) -> Tensor:
        parts, nodes = by_level(batch)
        end = parts[0].numel()
        h = torch.empty(nodes, H)
        gates = torch.addmm(b_zg, emb.index_select(0, parts[0]), W_zg)
        torch.mul(1 - gates[:, :H].sigmoid_(), gates[:, H:].tanh_(), out=h[:end])
        for children in parts[1:-1]:
            n = children.numel() // 2
            pairs = h.index_select(0, children).view(n, 2, H)
            s = pairs[:, 0] + pairs[:, 1]
            zr = torch.addmm(b_zr, s, U_zr).sigmoid_()
            g = torch.addmm(b_g, zr[:, H:].mul_(s), U_g).tanh_()
            torch.lerp(g, s, zr[:, :H], out=h[end : end + n])
            end += n
        return h.index_select(0, parts[-1])

    return run


def _mv_rnn(w: Weights) -> Run:
    emb, W, b, W_left, W_right = w["emb"], w["W"], w["b"], w["W_M_left"], w["W_M_right"]
    H = emb.shape[1]
    # Matrices are kept transposed, so that a level's products are two tall ones: P' = A' W_left + B' W_right.
    mat = w["mat"].transpose(1, 2).reshape(-1, H * H).contiguous()

    def run(batch: list[Any]) -> Tensor:
        parts, nodes = by_level(batch)
        end = parts[0].numel()
        v, M = torch.empty(nodes, H), torch.empty(nodes, H * H)
        torch.index_select(emb, 0, parts[0], out=v[:end])
        torch.index_select(mat, 0, parts[0], out=M[:end])
        for children in parts[1:-1]:
            n = children.numel() // 2
            left, right = children[0::2], children[1::2]
            A, B = M.index_select(0, left), M.index_select(0, right)
            a, c = v.index_select(0, left).view(n, 1, H), v.index_select(0, right).view(n, 1, H)
            crossed = torch.cat((torch.bmm(a, B.view(n, H, H)), torch.bmm(c, A.view(n, H, H))), 2)
            torch.addmm(b, crossed.view(n, 2 * H), W, out=v[end : end + n]).tanh_()
            P = M[end : end + n].view(n * H, H)
            torch.mm(A.view(n * H, H), W_left, out=P)
            P.addmm_(B.view(n * H, H), W_right)
            end += n
        return v.index_select(0, parts[-1])

    return run


def _dag_rnn(w: Weights) -> Run:
    emb, W, U, b = w["emb"], w["W"], w["U"], w["b"]
    H = emb.shape[1]
    order = torch.tensor(WAVEFRONT_ORDER)

    def run(batch: list[Any]) -> Tensor:
        words = torch.tensor([grid_words(grid) for grid in batch]).t()
        size = words.shape[1]
        x = torch.addmm(b, emb.index_select(0, words.index_select(0, order).reshape(-1)), W).view(-1, size, H)
        h = torch.zeros(SIDE + 2, size, H)  # one row of the grid each, the latest wavefront, zeros around
        start = 0
        for lo, hi in WAVEFRONTS:
            n = hi - lo + 1
            below = h[lo : hi + 1] + h[lo + 1 : hi + 2]
            level = torch.addmm(x[start : start + n].view(n * size, H), below.view(n * size, H), U)
            h[lo + 1 : hi + 2] = level.tanh_().view(n, size, H)
            start += n
        return h[SIDE]

    return run


def _sequence(net: torch.nn.LSTM | torch.nn.GRU, w: Weights, b_x: Tensor, b_h: Tensor) -> Run:
    net.load_state_dict(
        {"weight_ih_l0": w["W_x"].t(), "weight_hh_l0": w["W_h"].t(), "bias_ih_l0": b_x, "bias_hh_l0": b_h}
    )
    net.eval()
    emb = w["emb"]

    def run(batch: list[Any]) -> Tensor:
        words = torch.tensor([sequence_words(last) for last in batch]).t()
        final = net(torch.nn.functional.embedding(words, emb))[1]
        h: Tensor = final[0] if isinstance(final, tuple) else final
        return h[0]

    return run


def _lstm(w: Weights) -> Run:
    H = w["emb"].shape[1]
    return _sequence(torch.nn.LSTM(H, H), w, w["b"], torch.zeros(4 * H))


def _gru(w: Weights) -> Run:
    H = w["emb"].shape[1]
    return _sequence(torch.nn.GRU(H, H), w, w["b_x"], w["b_h"])


_PROGRAMS: dict[str, Callable[[Weights], Run]] = {
    "tree_fc": _tree_fc,
    "tree_lstm": _tree_lstm,
    "tree_gru": _tree_gru,
    "mv_rnn": _mv_rnn,
    "dag_rnn": _dag_rnn,
    "lstm": _lstm,
    "gru": _gru,
}

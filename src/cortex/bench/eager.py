"""torch-eager: the recursive PyTorch program, node by node, as one writes it first.

Gate products of one operand are fused, and nothing else is: every node is a handful of small operators. In
double precision the same programs are the reference that all systems are checked against.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import linear

from cortex.bench.walk import sequence_words

Run = Callable[[list[Any]], Tensor]


def make(model: str, weights: Mapping[str, npt.NDArray[Any]], dtype: torch.dtype = torch.float32) -> Run:
    """The program for `model` over `weights` (see `peer_weights`): a batch of structures to their root states."""
    # linear() takes matrices as (out, in); the peers' layout is (in, out). Tables stay as they are.
    tables = ("emb", "mat")
    w = {
        name: torch.from_numpy(np.ascontiguousarray(value.T if value.ndim == 2 and name not in tables else value))
        for name, value in weights.items()
    }
    w = {name: value.to(dtype) for name, value in w.items()}
    encode = _PROGRAMS[model](w)
    return lambda batch: torch.stack([encode(structure) for structure in batch])


def _tree_fc(w: dict[str, Tensor]) -> Callable[[Any], Tensor]:
    emb, W, b = w["emb"], w["W"], w["b"]

    def encode(node: Any) -> Tensor:
        if node.left is None:
            return emb[node.word]
        return linear(torch.cat((encode(node.left), encode(node.right))), W, b).relu_()

    return encode


def _tree_rnn(w: dict[str, Tensor]) -> Callable[[Any], Tensor]:
    emb, b = w["emb"], w["b"]

    def encode(node: Any) -> Tensor:
        if node.left is None:
            return emb[node.word]
        return (encode(node.left) + encode(node.right) + b).tanh_()

    return encode


def _tree_lstm(w: dict[str, Tensor]) -> Callable[[Any], Tensor]:
    emb, W, U, b, Uf, bf = w["emb"], w["W_iou"], w["U_iou"], w["b_iou"], w["U_f"], w["b_f"]

    def encode(node: Any) -> tuple[Tensor, Tensor]:
        if node.left is None:
            i, o, u = linear(emb[node.word], W, b).chunk(3)
            c = i.sigmoid() * u.tanh()
        else:
            h_left, c_left = encode(node.left)
            h_right, c_right = encode(node.right)
            i, o, u = linear(h_left + h_right, U, b).chunk(3)
            f_left = linear(h_left, Uf, bf).sigmoid()
            f_right = linear(h_right, Uf, bf).sigmoid()
            c = i.sigmoid() * u.tanh() + f_left * c_left + f_right * c_right
        return o.sigmoid() * c.tanh(), c

    return lambda node: encode(node)[0]


def _nary_tree_lstm(w: dict[str, Tensor]) -> Callable[[Any], Tensor]:
    emb, W, U, b, Uf, bf = w["emb"], w["W_iou"], w["U_iou"], w["b_iou"], w["U_f"], w["b_f"]

    def encode(node: Any) -> tuple[Tensor, Tensor]:
        if node.left is None:
            i, o, u = linear(emb[node.word], W, b).chunk(3)
            c = i.sigmoid() * u.tanh()
        else:
            h_left, c_left = encode(node.left)
            h_right, c_right = encode(node.right)
            h = torch.cat((h_left, h_right))
            i, o, u = linear(h, U, b).chunk(3)
            f_left, f_right = linear(h, Uf, bf).sigmoid().chunk(2)
            c = i.sigmoid() * u.tanh() + f_left * c_left + f_right * c_right
        return o.sigmoid() * c.tanh(), c

    return lambda node: encode(node)[0]


def _tree_gru(w: dict[str, Tensor]) -> Callable[[Any], Tensor]:
    return _child_sum_gru(w, simple=False)


def _simple_tree_gru(w: dict[str, Tensor]) -> Callable[[Any], Tensor]:
    return _child_sum_gru(w, simple=True)


def _child_sum_gru(w: dict[str, Tensor], simple: bool) -> Callable[[Any], Tensor]:
    emb, W_zg, b_zg = w["emb"], w["W_zg"], w["b_zg"]
    U_zr, b_zr, U_g, b_g = w["U_zr"], w["b_zr"], w["U_g"], w["b_g"]

    def encode(node: Any) -> Tensor:
        if node.left is None:
            z, g = linear(emb[node.word], W_zg, b_zg).chunk(2)
            return (1 - z.sigmoid()) * g.tanh()
        s = encode(node.left) + encode(node.right)
        z, r = linear(s, U_zr, b_zr).sigmoid().chunk(2)
        new = (1 - z) * linear(r * s, U_g, b_g).tanh()
        return new if simple else z * s + new

    return encode


def _mv_rnn(w: dict[str, Tensor]) -> Callable[[Any], Tensor]:
    emb, mat, W, b = w["emb"], w["mat"], w["W"], w["b"]
    W_M = torch.cat((w["W_M_left"], w["W_M_right"]), 1)

    def encode(node: Any) -> tuple[Tensor, Tensor]:
        if node.left is None:
            return emb[node.word], mat[node.word]
        v_left, M_left = encode(node.left)
        v_right, M_right = encode(node.right)
        v = linear(torch.cat((M_right @ v_left, M_left @ v_right)), W, b).tanh()
        return v, W_M @ torch.cat((M_left, M_right))

    return lambda node: encode(node)[0]


def _rntn(w: dict[str, Tensor]) -> Callable[[Any], Tensor]:
    emb, V, W, b = w["emb"], w["V"], w["W"], w["b"]

    def encode(node: Any) -> Tensor:
        if node.left is None:
            return emb[node.word]
        x = torch.cat((encode(node.left), encode(node.right)))
        return ((V @ x) @ x + linear(x, W, b)).tanh_()

    return encode


def _dag_rnn(w: dict[str, Tensor]) -> Callable[[Any], Tensor]:
    emb, W, U, b = w["emb"], w["W"], w["U"], w["b"]

    def encode(node: Any, seen: dict[int, Tensor]) -> Tensor:
        if id(node) in seen:
            return seen[id(node)]
        x = linear(emb[node.word], W, b)
        predecessors = [encode(p, seen) for p in (node.up, node.left) if p is not None]
        match predecessors:
            case [up, left]:
                x = x + linear(up + left, U)
            case [only]:
                x = x + linear(only, U)
        h = x.tanh()
        seen[id(node)] = h
        return h

    return lambda node: encode(node, {})


def _lstm(w: dict[str, Tensor]) -> Callable[[Any], Tensor]:
    emb, Wx, Wh, b = w["emb"], w["W_x"], w["W_h"], w["b"]
    zero = torch.zeros(Wh.shape[1], dtype=Wh.dtype)

    def encode(last: Any) -> Tensor:
        h = c = zero
        for word in sequence_words(last):
            i, f, g, o = (linear(emb[word], Wx, b) + linear(h, Wh)).chunk(4)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return h

    return encode


def _gru(w: dict[str, Tensor]) -> Callable[[Any], Tensor]:
    emb, Wx, Wh, bx, bh = w["emb"], w["W_x"], w["W_h"], w["b_x"], w["b_h"]
    zero = torch.zeros(Wh.shape[1], dtype=Wh.dtype)

    def encode(last: Any) -> Tensor:
        h = zero
        for word in sequence_words(last):
            xr, xz, xn = linear(emb[word], Wx, bx).chunk(3)
            hr, hz, hn = linear(h, Wh, bh).chunk(3)
            r = (xr + hr).sigmoid()
            z = (xz + hz).sigmoid()
            h = (1 - z) * (xn + r * hn).tanh() + z * h
        return h

    return encode


_PROGRAMS: dict[str, Callable[[dict[str, Tensor]], Callable[[Any], Tensor]]] = {
    "tree_fc": _tree_fc,
    "tree_rnn": _tree_rnn,
    "tree_lstm": _tree_lstm,
    "nary_tree_lstm": _nary_tree_lstm,
    "tree_gru": _tree_gru,
    "simple_tree_gru": _simple_tree_gru,
    "mv_rnn": _mv_rnn,
    "rntn": _rntn,
    "dag_rnn": _dag_rnn,
    "lstm": _lstm,
    "gru": _gru,
}

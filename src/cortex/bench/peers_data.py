"""The requests and weights of a cell as the files that the programs of the peers' folder read.

Every peer then runs on the same structures and the same weights as Cortex does, and checks its results against the
same double-precision reference.

    trees.json          structures: trees as lists of left, right and word, parents first; sequences as lists of words
    w_MODEL_H.npz       matrices as (in, out), gates of one operand side by side
    emb_H.npy           and mat_H.npy, the matrices of MV-RNN
    ref_MODEL_H.npy     root states of the first structures, in float64
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cortex.bench.data import Shape, Workload

Array = npt.NDArray[Any]
CHECKED = 20  # structures that the peers check
TREES = ("tree_lstm", "tree_gru", "mv_rnn")


def peer_name(model: str) -> str:
    """What the peers call a model: treelstm."""
    return model.replace("_", "")


def write_data(
    folder: Path, model: str, hidden: int, weights: Mapping[str, Array], requests: Workload, reference: Any
) -> None:
    """Write what the peers read for one model and size; `reference` gives root states for a list of structures."""
    name, words = peer_name(model), len(weights["emb"])
    kept: dict[str, list[Any]] = {"trees": [], "perfect": [], "seqs": []}
    if model in TREES or model == "tree_fc":
        kept["perfect" if model == "tree_fc" else "trees"] = [_tree(shape) for shape in requests.shapes]
    else:
        kept["seqs"] = [[word for _, _, word in shape] for shape in requests.shapes]
    (folder / "trees.json").write_text(json.dumps({"vocab": words, "mvvocab": words, **kept}), encoding="utf-8")
    arrays: dict[str, Any] = _weights(model, weights)
    np.savez(folder / f"w_{name}_{hidden}.npz", **arrays)
    np.save(folder / f"emb_{hidden}.npy", weights["emb"])
    if "mat" in weights:
        np.save(folder / f"mat_{hidden}.npy", weights["mat"])
    expected = np.asarray(reference(requests.fresh(0, CHECKED)), np.float64)
    np.save(folder / f"ref_{name}_{hidden}.npy", expected)


def _tree(shape: Shape) -> dict[str, list[int]]:
    """A shape in the peers' numbering: its own backwards, so that parents come first."""
    last = len(shape) - 1
    nodes = [(-1 if a < 0 else last - a, -1 if b < 0 else last - b, word if a < 0 else -1) for a, b, word in shape]
    left, right, word = zip(*reversed(nodes), strict=True)
    return {"left": list(left), "right": list(right), "word": list(word)}


def _weights(model: str, w: Mapping[str, Array]) -> dict[str, Array]:
    match model:
        case "tree_fc":
            own = {"W": w["W"].T, "b": w["b"]}
        case "tree_lstm":
            own = {"Wiou": w["W"].T, "Uiou": w["U"].T, "biou": w["b"], "Uf": w["Uf"].T, "bf": w["bf"]}
        case "tree_gru":
            gates = [w["Wz"], np.zeros_like(w["Wz"]), w["Wh"]]  # r multiplies nothing at a leaf
            own = {
                "Wzrh": np.concatenate(gates).T,
                "Uzr": np.concatenate([w["Uz"], w["Ur"]]).T,
                "Uh": w["Uh"].T,
                "b": np.concatenate([w["bz"], w["br"], w["bh"]]),
            }
        case "mv_rnn":
            own = {"W": w["W"].T, "b": w["b"], "WM": w["WM"].T}
        case "dag_rnn":
            own = {"U": w["W"].T, "W": w["U"].T, "b": w["b"]}
        case "lstm":
            own = {"Wx": w["Wx"].T, "Wh": w["Wh"].T, "b": w["b"]}
        case "gru":
            own = {"Wx": w["Wx"].T, "Wh": w["Wh"].T, "bx": w["bx"], "bh": w["bh"]}
        case _:
            raise KeyError(model)
    return {name: np.ascontiguousarray(value, np.float32) for name, value in own.items()}

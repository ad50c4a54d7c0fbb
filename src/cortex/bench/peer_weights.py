"""The zoo's weights in the layout the hand-written peers want: matrices as (in, out), gates of one operand fused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def peer_weights(model: str, w: Mapping[str, Array]) -> dict[str, Array]:
    """Weights of a model of the zoo for `eager` and, where they have the model, `batched` and `scripted`."""
    match model:
        case "tree_fc":
            own = {"W": w["W"].T, "b": w["b"]}
        case "tree_lstm":
            own = {"W_iou": w["W"].T, "U_iou": w["U"].T, "b_iou": w["b"], "U_f": w["Uf"].T, "b_f": w["bf"]}
        case "tree_rnn":
            own = {"b": w["b"]}
        case "nary_tree_lstm":
            bf = np.concatenate([w["bf"], w["bf"]])
            own = {"W_iou": w["W"].T, "U_iou": w["U"].T, "b_iou": w["b"], "U_f": w["Uf"].T, "b_f": bf}
        case "tree_gru" | "simple_tree_gru":
            own = {
                "W_zg": np.concatenate([w["Wz"], w["Wh"]]).T,
                "b_zg": np.concatenate([w["bz"], w["bh"]]),
                "U_zr": np.concatenate([w["Uz"], w["Ur"]]).T,
                "b_zr": np.concatenate([w["bz"], w["br"]]),
                "U_g": w["Uh"].T,
                "b_g": w["bh"],
            }
        case "mv_rnn":
            left, right = np.split(w["WM"], 2, axis=1)
            own = {"mat": w["mat"], "W": w["W"].T, "b": w["b"], "W_M_left": left.T, "W_M_right": right.T}
        case "rntn":
            own = {"V": w["V"], "W": w["W"].T, "b": w["b"]}
        case "dag_rnn":
            own = {"W": w["W"].T, "U": w["U"].T, "b": w["b"]}
        case "lstm":
            own = {"W_x": w["Wx"].T, "W_h": w["Wh"].T, "b": w["b"]}
        case "gru":
            own = {"W_x": w["Wx"].T, "W_h": w["Wh"].T, "b_x": w["bx"], "b_h": w["bh"]}
        case _:
            raise KeyError(model)
    return {"emb": w["emb"]} | {name: np.ascontiguousarray(value) for name, value in own.items()}

"""The zoo's entries: what they hold, and weights that keep activations alive."""

import random
import subprocess
import sys

import numpy as np
import pytest

from cortex import zoo
from cortex.errors import ModelError
from cortex.structures.tree import below, measure, postorder

NAMES = [
    *("tree_fc", "tree_rnn", "tree_lstm", "tree_lstm_words", "nary_tree_lstm", "tree_gru", "tree_gru_words"),
    *("simple_tree_gru", "mv_rnn", "dag_rnn", "lstm", "gru", "rntn"),
]
H, V = 6, 11
SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "tree_fc": {"W": (H, 2 * H), "b": (H,)},
    "tree_rnn": {"b": (H,)},
    "tree_lstm": {"W": (3 * H, H), "U": (3 * H, H), "b": (3 * H,), "Uf": (H, H), "bf": (H,)},
    "nary_tree_lstm": {"W": (3 * H, H), "U": (3 * H, 2 * H), "b": (3 * H,), "Uf": (2 * H, 2 * H), "bf": (H,)},
    "tree_gru": dict.fromkeys(("Wz", "Wh", "Uz", "Ur", "Uh"), (H, H)) | dict.fromkeys(("bz", "br", "bh"), (H,)),
    "mv_rnn": {"mat": (V, H, H), "W": (H, 2 * H), "b": (H,), "WM": (H, 2 * H)},
    "dag_rnn": {"U": (H, H), "W": (H, H), "b": (H,)},
    "lstm": {"Wx": (4 * H, H), "Wh": (4 * H, H), "b": (4 * H,)},
    "gru": {"Wx": (3 * H, H), "Wh": (3 * H, H), "bx": (3 * H,), "bh": (3 * H,)},
    "rntn": {"V": (H, 2 * H, 2 * H), "W": (H, 2 * H), "b": (H,)},
}
SHAPES["tree_lstm_words"] = SHAPES["tree_lstm"] | {"Wf": (H, H)}
SHAPES["tree_gru_words"] = SHAPES["tree_gru"] | {"Wr": (H, H)}
SHAPES["simple_tree_gru"] = SHAPES["tree_gru"]


def test_the_names() -> None:
    assert list(zoo.ENTRIES) == NAMES
    assert all(zoo.load(name).name == name for name in NAMES)
    with pytest.raises(ModelError, match=r"zoo.load\('tree_gpt'\): no such model; there are tree_fc, tree_rnn, "):
        zoo.load("tree_gpt")


@pytest.mark.parametrize("name", NAMES)
def test_weights_have_their_shapes_and_follow_the_seed(name: str) -> None:
    make = zoo.load(name).weights
    weights = make(H, V)
    assert {k: v.shape for k, v in weights.items()} == SHAPES[name] | {"emb": (V, H)}
    assert all(v.dtype == np.float32 for v in weights.values())
    assert all((weights[k] == make(H, V, seed=0)[k]).all() for k in weights)
    assert all((weights[k] != make(H, V, seed=1)[k]).any() for k in weights)


@pytest.mark.parametrize("name", NAMES)
def test_structures_have_words_in_range_where_the_model_reads_them(name: str) -> None:
    everywhere = name.endswith("_words") or name in ("dag_rnn", "lstm", "gru")
    for root in zoo.load(name).structures(random.Random(0), 3, V):
        for node in postorder(root):
            if everywhere or not below(node):
                assert 0 <= node.word < V


def test_structures_are_fresh_and_of_the_published_shape() -> None:
    rng = random.Random(0)
    assert measure(zoo.load("tree_fc").structures(rng, 1)[0]).nodes == 255
    assert measure(zoo.load("dag_rnn").structures(rng, 1)[0]).levels == 19
    assert measure(zoo.load("lstm").structures(rng, 1)[0]).levels == 100
    first, second = zoo.load("tree_lstm").structures(rng, 2)
    assert first is not second


@pytest.mark.parametrize("name", NAMES)
def test_activations_neither_vanish_nor_saturate_at_the_small_size(name: str) -> None:
    pytest.importorskip("torch")
    entry = zoo.load(name)
    f = entry.reference(entry.weights(entry.hidden[0], 100))
    for root in entry.structures(random.Random(4), 3, 100):
        h = getattr(f(root), entry.states[0]).numpy()
        assert 0.02 < h.std() < 3
        assert np.isfinite(h).all() and np.median(np.abs(h)) < 0.99


def test_the_zoo_does_not_import_torch() -> None:
    code = "import sys, cortex.zoo; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

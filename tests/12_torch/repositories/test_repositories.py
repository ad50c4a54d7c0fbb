"""Modules in the manner of public repositories: compiled without a change, each agrees with itself run by torch.

`CORTEX_FUZZ=long` tries a hundred structures of each instead of ten.
"""

from __future__ import annotations

import os
import random
from typing import Any

import language
import programs
import pytest
import structures
import torch

import cortex

CASES: dict[str, tuple[Any, Any]] = {
    "similarity_tree_lstm": (language.SimilarityTreeLSTM, structures.similar_trees),
    "rntn": (language.RNTN, structures.phrase),
    "attentive_tree_lstm": (language.AttentiveTreeLSTM, structures.dependency),
    "spinn": (language.SPINN, structures.two_phrases),
    "tree_attention": (language.TreeAttention, structures.dependency),
    "recursive_autoencoder": (language.RecursiveAutoencoder, structures.phrase),
    "astnn": (programs.ASTNN, structures.ast_node),
    "tbcnn": (programs.TBCNN, structures.ast_node),
    "children_lstm": (programs.ChildrenLSTM, structures.ast_node),
    "qppnet": (programs.QPPNet, structures.query),
    "neural_module_network": (programs.NeuralModuleNetwork, structures.layout),
    "dvae_encoder": (programs.DVAEEncoder, structures.graph),
    "evaluator": (programs.Evaluator, structures.expression),
    "linked_rnn": (programs.LinkedRNN, structures.linked),
    "top_down_bottom_up": (programs.TopDownBottomUp, structures.ast_node),
}
STRUCTURES = 100 if os.environ.get("CORTEX_FUZZ") == "long" else 10


def arguments(example: Any) -> tuple[Any, ...]:
    return example if type(example) is tuple else (example,)


@pytest.mark.parametrize("name", CASES)
def test_a_module_of_a_repository_agrees_with_itself(name: str) -> None:
    random.seed(7)
    torch.manual_seed(7)
    kind, make = CASES[name]
    module = kind().eval()
    fast = cortex.compile(module, examples=[make() for _ in range(8)])
    with torch.no_grad():
        for _ in range(STRUCTURES):
            example = make()
            got, want = fast(*arguments(example)), module(*arguments(example))
            assert isinstance(want, type(got))  # an evaluator may return a Parameter itself
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)

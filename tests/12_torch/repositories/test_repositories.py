"""Modules in the manner of public repositories: compiled without a change, each agrees with itself run by torch.

`CORTEX_FUZZ=long` tries a hundred structures of each instead of six, whose kinds of nodes the examples need not have.
"""

from __future__ import annotations

import random
from typing import Any

import language
import pytest
import repository_programs
import shapes_and_plans
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
    "astnn": (repository_programs.ASTNN, structures.ast_node),
    "tbcnn": (repository_programs.TBCNN, structures.ast_node),
    "children_lstm": (repository_programs.ChildrenLSTM, structures.ast_node),
    "qppnet": (repository_programs.QPPNet, structures.query),
    "neural_module_network": (repository_programs.NeuralModuleNetwork, structures.layout),
    "dvae_encoder": (repository_programs.DVAEEncoder, structures.graph),
    "evaluator": (repository_programs.Evaluator, structures.expression),
    "linked_rnn": (repository_programs.LinkedRNN, structures.linked),
    "top_down_bottom_up": (repository_programs.TopDownBottomUp, structures.ast_node),
    "shape_encoder": (shapes_and_plans.ShapeEncoder, structures.shape),
    "plan_estimator": (shapes_and_plans.PlanEstimator, structures.operator),
    "tree_decoder": (shapes_and_plans.TreeDecoder, structures.binary),
    "tree_convolution": (shapes_and_plans.TreeConvolution, structures.binary),
    "with_parents": (shapes_and_plans.WithParents, structures.binary),
    "nary_tree_lstm": (shapes_and_plans.NaryTreeLSTM, structures.two_children),
    "child_attention": (shapes_and_plans.ChildAttention, structures.ast_node),
    "mean_by_size": (shapes_and_plans.MeanBySize, structures.ast_node),
    "partial": (shapes_and_plans.Partial, structures.ast_node),
    "named_tuple_tree": (shapes_and_plans.NamedTupleTree, structures.named),
}
ONLY_LONG = ("plan_estimator", "tree_convolution", "nary_tree_lstm", "child_attention")
"""What they need of the front end, others need too; each takes seconds."""
EXAMPLES, STRUCTURES = (8, 100) if structures.LONG else (12, 6)


def arguments(example: Any) -> tuple[Any, ...]:
    return example if type(example) is tuple else (example,)


@pytest.mark.parametrize("name", [name for name in CASES if structures.LONG or name not in ONLY_LONG])
def test_a_module_of_a_repository_agrees_with_itself(name: str) -> None:
    random.seed(7)
    torch.manual_seed(7)
    kind, make = CASES[name]
    module = kind().eval()
    fast = cortex.compile(module, examples=[make() for _ in range(EXAMPLES)])
    with torch.no_grad():
        for _ in range(STRUCTURES):
            example = make()
            got, want = fast(*arguments(example)), module(*arguments(example))
            assert isinstance(want, type(got))  # an evaluator may return a Parameter itself
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def test_another_number_of_children_is_not_compiled_for() -> None:
    """Trees say `num_children`, words are in a tensor beside them: nodes are calls, and still of any arity."""

    def star(arity: int) -> tuple[Any, ...]:
        root = language.Tree()
        root.idx = 0
        for i in range(arity):
            child = language.Tree()
            child.idx = i + 1
            root.add_child(child)
        words = torch.arange(arity + 1) % language.V
        return root, words, root, words

    module = language.SimilarityTreeLSTM().eval()
    fast = cortex.compile(module, examples=[star(2), star(3)])
    run = fast.executable(*star(2))
    before = run.compilations
    with torch.no_grad():
        for arity in (1, 4, 9, 17):
            torch.testing.assert_close(fast(*star(arity)), module(*star(arity)), rtol=1e-4, atol=1e-5)
    assert run.compilations == before


class OfPairs(torch.nn.Module):
    """Tuples in tuples."""

    def __init__(self) -> None:
        super().__init__()
        self.emb, self.join = torch.nn.Embedding(9, 4), torch.nn.Linear(8, 4)

    def forward(self, node: Any) -> Any:
        if isinstance(node, int):
            return self.emb(torch.tensor(node))
        return torch.tanh(self.join(torch.cat([self(node[0]), self(node[1])])))


def test_nested_tuples_are_looked_into_only_as_far_as_code_does() -> None:
    module = OfPairs().eval()
    fast = cortex.compile(module, examples=[((((1, 2), 3), (4, (5, 6))),)])
    deep: Any = (1, 2)
    for i in range(12):
        deep = (deep, i % 9) if i % 2 else (i % 9, deep)
    with torch.no_grad():
        torch.testing.assert_close(fast(deep), module(deep), rtol=1e-4, atol=1e-5)
    assert len(fast.executable(deep).compiled.model.kinds) < 9

"""A compiled module in the place of the module: batches, new weights, other arguments, evaluation."""

from __future__ import annotations

import random
from typing import Any

import bottom_up
import heads
import nodes
import pytest
import torch
from test_modules import same

import cortex


@pytest.fixture(autouse=True)
def seeds() -> None:
    random.seed(5)
    torch.manual_seed(5)


def test_a_list_of_structures_gives_tensors_with_a_row_for_each() -> None:
    module = bottom_up.Dicts().eval()
    trees = [nodes.pairs() for _ in range(6)]
    fast = cortex.compile(module, examples=trees)
    with torch.no_grad():
        want = [module(tree) for tree in trees]
    same(fast(trees), {name: torch.stack([one[name] for one in want]) for name in ("h", "c")})


def test_new_weights_need_no_compiling() -> None:
    module, other = heads.RootClassifier().eval(), heads.RootClassifier().eval()
    trees = [nodes.pairs() for _ in range(4)]
    fast = cortex.compile(module, examples=trees)
    run = fast.executable(trees[0])
    before = run.compilations, run.compiled
    fast.update(other.state_dict())
    with torch.no_grad():
        for tree in trees:
            same(fast(tree), other(tree))
    assert (run.compilations, run.compiled) == before


def test_new_weights_of_another_shape_are_refused() -> None:
    fast = cortex.compile(heads.RootClassifier().eval(), examples=[nodes.pairs()])
    weights = heads.RootClassifier().state_dict()
    with pytest.raises(cortex.ModelError, match=r"the new weights lack 'out\.bias'"):
        fast.update({name: value for name, value in weights.items() if name != "out.bias"})
    weights["out.bias"] = torch.zeros(7)
    with pytest.raises(cortex.ModelError, match=r"'out\.bias' has shape \(7,\); the model was compiled for \(3,\)"):
        fast.update(weights)


def test_it_stays_on_the_processor() -> None:
    fast = cortex.compile(bottom_up.Dicts().eval(), examples=[nodes.pairs()])
    assert fast.eval() is fast and fast.train(False) is fast and fast.to("cpu") is fast and not fast.training
    with pytest.raises(cortex.StructureError, match="runs on the processor"):
        fast.to("cuda:0")


def test_constants_of_forward_may_differ_from_call_to_call() -> None:
    module = heads.Flag().eval()
    tree = nodes.pairs()
    fast = cortex.compile(module, examples=[tree])
    with torch.no_grad():
        same(fast(tree, 3.0), module(tree, 3.0))
        same(fast(tree, scale=-1.0), module(tree, scale=-1.0))
        same(fast(tree), module(tree))


def test_without_examples_the_first_call_is_one() -> None:
    module = heads.RootClassifier().eval()
    fast = cortex.compile(module)
    tree = nodes.pairs()
    with torch.no_grad():
        same(fast(tree), module(tree))


def test_the_module_is_as_it_was() -> None:
    module = heads.UpAndDown().eval()
    attributes = [dict(vars(part)) for part in module.modules()]
    tree = nodes.pairs()
    cortex.compile(module, examples=[tree])
    assert [dict(vars(part)) for part in module.modules()] == attributes
    assert not hasattr(tree, "up")


def test_states_left_on_nodes_by_torch_are_not_read() -> None:
    module = bottom_up.ChildSum().eval()
    tree = nodes.nary()
    with torch.no_grad():
        module(tree)
        want = module(tree)
        fast = cortex.compile(module, examples=[tree])
        tree.children[0].state = (torch.ones(1, 4), torch.ones(1, 4))
        same(fast(tree), want)


emb = torch.nn.Embedding(nodes.WORDS, 4)
join = torch.nn.Linear(8, 4)


def encode(node: Any) -> Any:
    if node.left is None:
        return emb(torch.tensor(node.word))
    return torch.tanh(join(torch.cat([encode(node.left), encode(node.right)])))


def test_a_function_that_uses_torch() -> None:
    trees = [nodes.pairs() for _ in range(3)]
    fast = cortex.compile(encode, examples=trees)
    with torch.no_grad():
        for tree in trees:
            same(fast(tree), encode(tree))


def test_a_function_without_a_name() -> None:
    words = torch.randn(nodes.WORDS, 3)
    encode = lambda node: words[node.word] if node.left is None else encode(node.left) - encode(node.right)  # noqa: E731
    tree = nodes.pairs()
    same(cortex.compile(encode, examples=[tree])(tree), encode(tree))


@pytest.mark.parametrize("module", [bottom_up.Dicts(), heads.RootClassifier()])
def test_it_reports_and_explains_its_calls(module: Any) -> None:
    trees = [nodes.pairs() for _ in range(3)]
    fast = cortex.compile(module.eval(), examples=trees)
    assert "3 structures" in str(fast.report(trees))
    assert "1 structure" in str(fast.report(trees[0]))
    assert "1 structure" in fast.explain(trees[0])


def test_a_call_on_several_threads() -> None:
    trees = [nodes.pairs() for _ in range(5)]
    fast = cortex.compile(heads.RootClassifier().eval(), examples=trees)
    assert torch.equal(fast(trees, threads=2), fast(trees))
    with pytest.raises(cortex.ModelError, match="threads=0"):
        fast(trees, threads=0)

"""An exported package computes, to the bit, what the Python path computes on the same machine."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from breadth import LONG
from c_program import Answer, Package, forest_of
from package_models import comparing, comparing_forest, counting, curious, curious_forest
from sums_and_products import cell, cell_forest, weights

import cortex
from cortex import zoo
from cortex.codegen.target import Target
from cortex.cost.choose import ALWAYS
from cortex.ir.step import Step
from cortex.ra import ir as ra
from cortex.recursion.batch import Batch
from cortex.recursion.dedup import Dedup
from cortex.recursion.specialize import Specialize
from cortex.recursion.tabulate import Tabulate
from cortex.recursion.tabulate_leaf_products import TabulateLeafProducts
from cortex.recursion.unroll import UnrollRecursion
from cortex.runtime.forest import Forest
from cortex.schedule.default import Choices

Exported = Callable[..., tuple[Package, Any]]
VOCABULARY = 50

pytestmark = pytest.mark.skipif(
    Target.host().architecture not in ("x86_64", "aarch64"), reason="packages are for x86-64 and AArch64"
)


def same_bits(got: Answer, want: Any) -> None:
    assert got.status == 0
    for name in got.roots:
        assert got.roots[name].tobytes() == want[name].tobytes()
        assert got.nodes[name].tobytes() == want.nodes[name].tobytes()


@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_zoo(name: str, exported: Exported) -> None:
    entry = zoo.load(name)
    trees = entry.structures(random.Random(1), 4, VOCABULARY)
    fast = cortex.compile(entry.model, entry.weights(24, VOCABULARY), examples=trees)
    package, program = exported(fast, name)
    requests = [trees, trees[:1], []]
    answers, _ = package.run(program, [forest_of(fast, request) for request in requests])
    for request, answer in zip(requests, answers, strict=True):
        same_bits(answer, fast(request))


STEPS: list[tuple[Step[ra.Model], ...]] = [
    (Batch("depth"),),
    (Batch("agenda"),),
    (Batch("none"),),
    (Specialize(("leaf",)), Batch("agenda")),
    (Tabulate(),),
    (Dedup(), Batch("depth"), Tabulate()),
    (Tabulate(), TabulateLeafProducts(), Batch("agenda")),
]


@pytest.mark.parametrize("steps", STEPS, ids=repr)
def test_steps_on_the_recursion(steps: tuple[Step[ra.Model], ...], exported: Exported) -> None:
    forests = [cell_forest(seed, count, dag) for seed, (count, dag) in enumerate([(1, False), (40, False), (60, True)])]
    fast = cortex.compile(cell, weights(), examples=forests[1].root_nodes(), recursion=(*ALWAYS, *steps))
    package, program = exported(fast, "cell")
    for forest, answer in zip(forests, package.run(program, forests)[0], strict=True):
        same_bits(answer, fast(forest))


def test_unrolled_recursion(exported: Exported) -> None:
    entry = zoo.load("tree_rnn")
    trees = entry.structures(random.Random(1), 6, VOCABULARY)
    steps = (*ALWAYS, UnrollRecursion(3 if LONG else 2))
    fast = cortex.compile(entry.model, entry.weights(24, VOCABULARY), examples=trees, recursion=steps)
    package, program = exported(fast, "unrolled")
    same_bits(package.run(program, [forest_of(fast, trees)])[0][0], fast(trees))


@pytest.mark.parametrize("dedup", [False, True])
@pytest.mark.filterwarnings("ignore:.curious. has 32 kinds")
def test_everything_a_guard_can_ask(dedup: bool, exported: Exported) -> None:
    forests = [curious_forest(seed, count) for seed, count in enumerate([5, 60, 61])]
    steps = (*ALWAYS, Dedup()) if dedup else None
    fast = cortex.compile(curious, weights(), fields={"x": cortex.field((19,))}, recursion=steps)
    fast(forests[1]), fast(forests[2])  # this is where kinds are met
    forests.append(replace(forests[1], roots=np.array([7, 3, 7, 59], np.int32)))
    want = [fast(forest) for forest in forests]
    package, program = exported(fast, "curious")
    for answer, expected in zip(package.run(program, forests)[0], want, strict=True):
        same_bits(answer, expected)


def test_numbers_that_are_compared(exported: Exported) -> None:
    forests = [comparing_forest(seed, count) for seed, count in enumerate([1, 200, 201])]
    fast = cortex.compile(comparing, weights(), examples=forests[1].root_nodes())
    fast(forests[2])
    assert len(fast.traced.kinds) <= 8
    package, program = exported(fast, "comparing")
    for answer, forest in zip(package.run(program, forests)[0], forests, strict=True):
        same_bits(answer, fast(forest))


def test_attributes_that_count_children(exported: Exported) -> None:
    forest = cell_forest(1, 40, False)
    arity = np.diff(forest.lists["children"][0])
    honest = replace(forest, fields={"word": forest.fields["word"], "arity": arity.astype(np.int64)})
    lying = replace(honest, fields={**honest.fields, "arity": np.where(arity == 2, 1, arity)})
    fast = cortex.compile(counting, weights(), examples=honest.root_nodes())
    fast(lying)
    package, program = exported(fast, "counting")
    for request, answer in zip([honest, lying], package.run(program, [honest, lying])[0], strict=True):
        same_bits(answer, fast(request))


@pytest.mark.parametrize("mapping", ["columns", "nodes", "trees"])
def test_threads(mapping: Any, exported: Exported) -> None:
    entry = zoo.load("tree_lstm")
    trees = entry.structures(random.Random(1), 5, VOCABULARY)
    choices = Choices(parallel=mapping)
    fast = cortex.compile(entry.model, entry.weights(64, VOCABULARY), examples=trees, threads=2, choices=choices)
    assert fast.compiled.signature.shared_out
    package, program = exported(fast, mapping)
    want, forests = fast(trees), [forest_of(fast, trees)] * 3
    for threads in (1, 2, 5):
        for answer in package.run(program, forests, threads)[0]:
            same_bits(answer, want)


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "int16", "int8"])
def test_narrow_weights(dtype: str, exported: Exported) -> None:
    entry = zoo.load("tree_gru")
    trees = entry.structures(random.Random(1), 2, VOCABULARY)
    fast = cortex.compile(entry.model, entry.weights(32, VOCABULARY), examples=trees, weights_dtype=dtype)
    package, program = exported(fast, dtype)
    same_bits(package.run(program, [forest_of(fast, trees)])[0][0], fast(trees))


def test_other_processors_of_this_machine(exported: Exported) -> None:
    entry = zoo.load("tree_lstm")
    trees = entry.structures(random.Random(1), 2, VOCABULARY)
    for target in ("sse2", "avx2"):
        fast = cortex.compile(entry.model, entry.weights(24, VOCABULARY), examples=trees, target=Target.x86(target))
        if fast.compiled.code.target.runs_here():
            package, program = exported(fast, f"tree_{target}")
            same_bits(package.run(program, [forest_of(fast, trees)])[0][0], fast(trees))


def test_clang(exported: Exported) -> None:
    entry = zoo.load("tree_fc")
    trees = entry.structures(random.Random(1), 2, VOCABULARY)
    fast = cortex.compile(entry.model, entry.weights(24, VOCABULARY), examples=trees)
    package, program = exported(fast, "tree_fc", compiler="clang")
    same_bits(package.run(program, [forest_of(fast, trees)])[0][0], fast(trees))


class Node:
    def __init__(self, word: int, *children: Node) -> None:
        self.word, self.children = word, list(children)


@pytest.mark.parametrize("is_field", [False, True])
def test_zeros_have_signs(is_field: bool, exported: Exported) -> None:
    @cortex.model
    def zeros(node: Any, w: Any) -> Any:
        return w.b * len(str(node.x)) * (node.x + 2 if is_field else 1)

    nodes = [SimpleNamespace(x=x) for x in (0.0, -0.0, 1.0, *(() if is_field else (1, True, 0)))]
    fast = cortex.compile(zeros, {"b": np.ones(2, np.float32)}, examples=nodes)
    package, program = exported(fast, "zeros")
    same_bits(package.run(program, [forest_of(fast, nodes)])[0][0], fast(nodes))


@pytest.mark.parametrize("kind", [float, np.float32, np.float64])
def test_classes_of_numbers_are_those_of_the_examples(kind: Any, exported: Exported) -> None:
    @cortex.model
    def printed(node: Any, w: Any) -> Any:
        return w.b * len(str(node.x)) + sum(printed(k, w) for k in node.kids)

    def node(x: float, *kids: Any) -> Any:
        return SimpleNamespace(x=kind(x), kids=list(kids))

    nodes = [node(0.5, node(-0.0), node(0.25, node(0.0))), node(0.25)]
    fast = cortex.compile(printed, {"b": np.ones(2, np.float32)}, examples=nodes)
    package, program = exported(fast, "printed")
    assert "class" not in (package.directory / "printed.h").read_text()
    same_bits(package.run(program, [forest_of(fast, nodes)])[0][0], fast(nodes))


def module_of(body: str) -> Any:
    torch = pytest.importorskip("torch")

    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.inner = torch.nn.Embedding(9, 4), torch.nn.Linear(4, 4)

        def encode(self, node: Node) -> Any:
            h = self.words(torch.tensor(node.word))
            return torch.tanh(h + sum((self.inner(self.encode(child)) for child in node.children), 0.0))

        def down(self, node: Node, above: Any) -> Any:
            h = self.inner(above)
            return h + sum((self.down(child, h) for child in node.children), 0.0)

        def forward(self, node: Node) -> Any:
            if body == "calls itself":
                h = self.words(torch.tensor(node.word))
                return torch.tanh(h + sum((self.inner(self(child)) for child in node.children), 0.0))
            return self.inner(self.encode(node)) if body == "head" else self.down(node, torch.ones(4))

    torch.manual_seed(1)
    return Module().eval()


@pytest.mark.parametrize("body", ["calls itself", "head"])
def test_modules(body: str, exported: Exported) -> None:
    trees = [Node(1, Node(2), Node(3, Node(4))), Node(5)]
    fast = cortex.compile(module_of(body), examples=trees)
    package, program = exported(fast, "module")
    nodes = [
        each for tree in trees for each in ([tree, *tree.children, *(c for k in tree.children for c in k.children)])
    ]
    heads = len(trees) if body == "head" else 0
    rank = {id(each): heads + number for number, each in enumerate(nodes)}
    below = [[rank[id(child)] for child in each.children] for each in nodes]
    pointers = np.cumsum([0] * heads + [0, *map(len, below)])
    slots = {"cortex_argument_node": [rank[id(tree)] for tree in trees] + [-1] * len(nodes)} if heads else {}
    fields: dict[str, Any] = {"word": [0] * heads + [each.word for each in nodes]}
    if heads:
        fields["cortex_head"] = [True] * heads + [None] * len(nodes)
    lists = {"children": (pointers, np.array([child for each in below for child in each]))}
    roots = list(range(heads)) or [rank[id(tree)] for tree in trees]
    forest = Forest(heads + len(nodes), slots, lists, fields, roots)
    ((answer,), _) = package.run(program, [forest])
    assert answer.status == 0
    assert next(iter(answer.roots.values())).tobytes() == fast(trees).numpy().tobytes()
    assert not heads or "leads to the structure" in (package.directory / "module.h").read_text()


def test_a_module_is_compiled_for_its_export(tmp_path: Path) -> None:
    trees, module = [Node(1, Node(2), Node(3, Node(4))), Node(5)], module_of("head")
    cortex.export(cortex.compile(module, examples=trees), tmp_path / "compiled")
    written = cortex.export(module, tmp_path / "here", examples=trees)
    assert {file.name: file.read_bytes() for file in written} == {
        file.name: file.read_bytes() for file in (tmp_path / "compiled").iterdir()
    }


def test_modules_whose_nodes_are_calls_are_refused(tmp_path: Path) -> None:
    fast = cortex.compile(module_of("down"), examples=[Node(1, Node(2))])
    with pytest.raises(cortex.ModelError, match="are calls of its methods"):
        cortex.export(fast, tmp_path)

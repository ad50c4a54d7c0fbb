"""What reading structures of other packages costs, in nanoseconds per node.

    python benchmarks/structures.py

A call of a model with states of 4 numbers, whose arithmetic takes next to nothing, on the same random trees in every
form (with tree-sitter, on Python lists nested like them); for forests of arrays, making them and the call apart.
Packages that are not installed are left out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from importlib import import_module
from random import Random
from typing import Any

import numpy as np

import cortex
from cortex import Forest
from cortex.structures import (
    conllu_trees,
    from_networkx,
    from_pyg,
    from_spacy,
    json_trees,
    lark_trees,
    nltk_trees,
    tree_sitter_nodes,
)
from cortex.structures.generators import random_tree
from cortex.structures.tree import Node, postorder

TREES, NODES, VOCABULARY, ROUNDS = 50, 40, 1000, 50
WEIGHTS = {"emb": np.zeros((VOCABULARY, 4), np.float32)}


@cortex.model
def total(node: Any, w: Any) -> Any:
    return w.emb[node.word] + cortex.sum(total(k, w) for k in node.children)


def best(run: Callable[[], Any], nodes: int = TREES * NODES) -> str:
    run()
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return f"{min(seconds) / nodes * 1e9:.0f}"


def package(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module(name)


def rebuilt(root: Node, make: Callable[[int, list[Any]], Any]) -> Any:
    """The same tree in other objects."""
    made: dict[int, Any] = {}
    for node in postorder(root):
        made[id(node)] = make(node.word, [made[id(child)] for child in node.children])
    return made[id(root)]


def parents_and_words(root: Node) -> tuple[list[int], list[int]]:
    """The head of every node, roots their own, in preorder."""
    heads, found, stack = [], [], [(root, 0)]
    while stack:
        node, head = stack.pop()
        heads.append(head)
        stack += [(child, len(found)) for child in reversed(node.children)]
        found.append(node.word)
    return heads, found


def walked(trees: list[Node]) -> dict[str, Callable[[], str]]:
    """Objects that are walked as they are: the time of a call."""

    def call(meaning: Any, make: Callable[[int, list[Any]], Any] | None) -> str:
        given = trees if make is None else [rebuilt(tree, make) for tree in trees]
        fast = cortex.compile(total, WEIGHTS, **meaning)
        return best(lambda: fast(given))

    number = {"word": lambda tree: int(tree.label())}

    def nltk() -> str:
        return call(nltk_trees(fields=number), package("nltk").Tree)

    def lark() -> str:
        return call(lark_trees(fields={"word": "data"}), package("lark").Tree)

    def conllu() -> str:
        tree = package("conllu").models.TokenTree
        return call(conllu_trees(words=int), lambda word, kids: tree({"form": str(word)}, kids))

    def tree_sitter() -> str:
        made, grammar = package("tree_sitter"), package("tree_sitter_python")
        code = "\n".join(f"x = {rebuilt(tree, lambda _, kids: kids)}" for tree in trees)  # lists of lists
        tree = made.Parser(made.Language(grammar.language())).parse(code.encode())
        fast = cortex.compile(total, WEIGHTS, **tree_sitter_nodes(fields={"word": "child_count"}))
        return best(lambda: fast(tree.root_node), fast(tree.root_node).nodes.out.shape[0])

    def dictionaries() -> str:
        return call(json_trees("kids", fields={"word": "word"}), lambda word, kids: {"word": word, "kids": kids})

    return {
        "own nodes": lambda: call({}, None),
        "nested dictionaries": dictionaries,
        "nltk": nltk,
        "lark": lark,
        "conllu": conllu,
        "tree-sitter": tree_sitter,
    }


def arrays(trees: list[Node]) -> dict[str, Callable[[], str]]:
    """Forests of arrays: the time to make one of all trees."""
    fields = [parents_and_words(tree) for tree in trees]
    heads = np.concatenate([np.array(heads) + NODES * i for i, (heads, _) in enumerate(fields)])
    words = np.concatenate([words for _, words in fields])
    below = np.flatnonzero(heads != np.arange(len(heads)))
    forest = Forest.from_edges(heads[below], below, child="target", fields={"word": words})
    fast = cortex.compile(total, WEIGHTS)

    def networkx() -> str:
        graph = package("networkx").DiGraph()
        graph.add_nodes_from((i, {"word": word}) for i, word in enumerate(words.tolist()))
        graph.add_edges_from(zip(heads[below].tolist(), below.tolist(), strict=True))
        return best(lambda: from_networkx(graph, child="target"))

    def pyg() -> str:
        torch, data = package("torch"), package("torch_geometric.data")
        edges = torch.tensor(np.stack([heads[below], below]))
        graph = data.Data(word=torch.tensor(words), edge_index=edges, num_nodes=len(words))
        return best(lambda: from_pyg(graph, child="target"))

    def spacy() -> str:
        made = package("spacy")
        forms = [str(word) for word in words]
        doc = made.tokens.Doc(made.blank("en").vocab, forms, heads=heads.tolist(), deps=["dep"] * len(forms))
        return best(lambda: from_spacy(doc, words=int))

    return {
        "a forest, the call": lambda: best(lambda: fast(forest)),
        "from_networkx": networkx,
        "from_pyg": pyg,
        "from_spacy": spacy,
    }


def main() -> None:
    rng = Random(0)
    trees = [random_tree(rng, NODES, VOCABULARY) for _ in range(TREES)]
    print("| structures | ns per node |\n| --- | --: |")
    for name, measure in {**walked(trees), **arrays(trees)}.items():
        try:
            print(f"| {name} | {measure()} |")
        except ModuleNotFoundError as error:
            print(f"| {name} | {error.name} is not installed |")


if __name__ == "__main__":
    main()

"""Structures: adapters from the formats trees, graphs and sequences come in to nodes a model can recurse over.

Every adapter is a function in the file named after the format. Nothing here is needed to use your own objects:
`cortex.compile` reads whatever attributes the model names. There are three sorts:

* `read_*` reads a file or a text into nodes of this package;
* `*_trees`, `*_nodes` and `*_plans` say what a model's names mean on objects of another package, which are walked as
  they are: `cortex.compile(model, weights, **nltk_trees())`;
* `from_*` makes a `Forest` of arrays of what another package keeps in arrays or tables.

No other package is imported for any of them. docs/structures.md shows each.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cortex.structures.aiger import read_aiger
    from cortex.structures.conllu import read_conllu
    from cortex.structures.conllu_tree import conllu_trees
    from cortex.structures.dgl_graph import from_dgl
    from cortex.structures.joined import join
    from cortex.structures.json_tree import json_trees
    from cortex.structures.lark_tree import lark_trees
    from cortex.structures.listops import read_listops
    from cortex.structures.networkx_graph import from_networkx
    from cortex.structures.nltk_tree import nltk_trees
    from cortex.structures.postgres_plan import postgres_plans, read_explain
    from cortex.structures.ptb import read_ptb
    from cortex.structures.pyg_data import from_pyg
    from cortex.structures.spacy_doc import from_spacy
    from cortex.structures.tree_sitter_node import tree_sitter_nodes
    from cortex.structures.vocabulary import Vocabulary, hashed

_HOME = {
    "Vocabulary": "vocabulary",
    "conllu_trees": "conllu_tree",
    "from_dgl": "dgl_graph",
    "from_networkx": "networkx_graph",
    "from_pyg": "pyg_data",
    "from_spacy": "spacy_doc",
    "hashed": "vocabulary",
    "join": "joined",
    "json_trees": "json_tree",
    "lark_trees": "lark_tree",
    "nltk_trees": "nltk_tree",
    "postgres_plans": "postgres_plan",
    "read_aiger": "aiger",
    "read_conllu": "conllu",
    "read_explain": "postgres_plan",
    "read_listops": "listops",
    "read_ptb": "ptb",
    "tree_sitter_nodes": "tree_sitter_node",
}

__all__ = [
    "Vocabulary", "conllu_trees", "from_dgl", "from_networkx", "from_pyg", "from_spacy", "hashed", "join", "json_trees",
    "lark_trees", "nltk_trees", "postgres_plans", "read_aiger", "read_conllu", "read_explain", "read_listops",
    "read_ptb", "tree_sitter_nodes",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'cortex.structures' has no attribute {name!r}")
    value = getattr(import_module(f"cortex.structures.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

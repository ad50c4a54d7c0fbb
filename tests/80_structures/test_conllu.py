"""CoNLL-U dependency trees and enhanced graphs."""

from pathlib import Path

import pytest

from cortex.errors import StructureError
from cortex.structures.conllu import ROOT, Token, read_conllu
from cortex.structures.tree import postorder


def row(id_: str, form: str, head: str, deprel: str, deps: str, upos: str = "X") -> str:
    return "\t".join([id_, form, "_", upos, "_", "_", head, deprel, deps, "_"])


SENTENCE = "\n".join(
    [
        "# text = Sue won't eat or drink",
        row("1", "Sue", "4", "nsubj", "4:nsubj|6:nsubj", "PROPN"),
        row("2-3", "won't", "_", "_", "_"),
        row("2", "wo", "4", "aux", "4:aux"),
        row("3", "n't", "4", "advmod", "4:advmod"),
        row("4", "eat", "0", "root", "0:root", "VERB"),
        row("5", "or", "6", "cc", "6:cc"),
        row("6", "drink", "4", "conj", "4:conj:or", "VERB"),
        row("6.1", "tea", "_", "_", "6:obj"),
        "",
        "",
    ]
)
CYCLE = "\n".join([row("1", "a", "0", "root", "0:root|2:x"), row("2", "b", "1", "y", "1:y")])


def forms(tokens: list[Token]) -> list[str]:
    return [token.form for token in tokens]


def test_the_basic_tree() -> None:
    (root,) = read_conllu(SENTENCE, words=len)
    assert (root.form, root.word, root.upos, root.deprel) == ("eat", 3, "VERB", "root")
    assert forms(root.children) == ["Sue", "wo", "n't", "drink"]
    assert forms(root.children[3].children) == ["or"]


def test_the_enhanced_graph_shares_nodes_and_has_empty_ones() -> None:
    (root,) = read_conllu(SENTENCE, graph="enhanced")
    drink = root.children[3]
    assert forms(drink.children) == ["Sue", "or", "tea"]
    assert drink.children[0] is root.children[0]
    assert root.children[0].deprel == "nsubj"
    assert len(postorder(root, lambda token: token.children)) == 7


def test_several_sentences_and_line_ends() -> None:
    assert forms(read_conllu(f"{SENTENCE}\n{SENTENCE}".replace("\n", "\r\n"))) == ["eat", "eat"]
    assert read_conllu("# nothing\n\n") == []


def test_several_roots_of_an_enhanced_graph_hang_under_node_zero() -> None:
    text = "\n".join([row("1", "a", "0", "root", "0:root"), row("2", "b", "1", "x", "0:root")])
    (top,) = read_conllu(text, graph="enhanced")
    assert (top.form, forms(top.children)) == (ROOT, ["a", "b"])


def test_cycles() -> None:
    assert forms(read_conllu(CYCLE)) == ["a"]
    with pytest.raises(StructureError, match="line 1: the enhanced graph of this sentence has a cycle"):
        read_conllu(CYCLE, graph="enhanced")
    assert forms(read_conllu(f"{CYCLE}\n\n{SENTENCE}", graph="enhanced", cycles="skip")) == ["eat"]
    apart = "\n".join([row("1", "a", "0", "r", "_"), row("2", "b", "3", "x", "_"), row("3", "c", "2", "x", "_")])
    with pytest.raises(StructureError, match="the basic graph of this sentence has a cycle"):
        read_conllu(apart)


@pytest.mark.parametrize(
    ("text", "graph", "problem"),
    [
        ("1\ta\t_", "basic", "line 1: 3 columns between tabs; CoNLL-U has 10"),
        (f"# c\n{row('x', 'a', '0', 'root', '_')}", "basic", "line 2: id 'x'"),
        (row("1.", "a", "0", "root", "0:root"), "enhanced", "line 1: id '1.'"),
        (row("1", "a", "7", "x", "_"), "basic", "line 1: head '7' is not in this sentence"),
        (row("1", "a", "_", "x", "_"), "basic", "line 1: head '_' is not in this sentence"),
        (row("1", "a", "1", "x", "_"), "basic", "has 0 tokens with head 0; a tree has one"),
        (f"{row('1', 'a', '0', 'r', '_')}\n{row('2', 'b', '0', 'r', '_')}", "basic", "has 2 tokens with head 0"),
        (f"{row('1', 'a', '0', 'r', '_')}\n{row('1', 'b', '1', 'r', '_')}", "basic", "line 2: id '1' occurs twice"),
        (row("1", "a", "0", "root", "_"), "enhanced", "line 1: column DEPS is empty"),
        (row("1", "a", "0", "root", "0"), "enhanced", "line 1: '0' in column DEPS"),
        (row("1", "a", "0", "root", "0:root"), "dotted", "graph is 'basic' or 'enhanced'"),
    ],
)
def test_malformed(text: str, graph: str, problem: str) -> None:
    with pytest.raises(StructureError) as error:
        read_conllu(text, graph=graph)  # type: ignore[arg-type]
    assert problem in str(error.value)


def test_universal_dependencies_english(data: Path) -> None:
    files = [data / "ud" / f"en_ewt-ud-{part}.conllu" for part in ("dev", "test")]
    trees = [tree for file in files for tree in read_conllu(file)]
    assert len(trees) == 4078
    for tree in trees:
        order = postorder(tree, lambda token: token.children)
        assert sum(len(token.children) for token in order) == len(order) - 1
    graphs = [graph for file in files for graph in read_conllu(file, graph="enhanced", cycles="skip")]
    shared = 0
    for graph in graphs:
        order = postorder(graph, lambda token: token.children)
        shared += sum(len(token.children) for token in order) > len(order) - 1
    # 1,330 sentences have a token with several heads; in 397 of these the enhanced graph is cyclic.
    assert len(graphs) == 4078 - 397
    assert 1330 - 397 - 3 <= shared <= 1330 - 397

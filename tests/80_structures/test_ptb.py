"""Penn Treebank brackets."""

from pathlib import Path
from statistics import mean

import pytest

from cortex.errors import StructureError
from cortex.structures.ptb import read_ptb
from cortex.structures.tree import measure, postorder

IDS = {"It": 0, "works": 1, ".": 2, "(": 3, "1\N{NO-BREAK SPACE}1": 4}


def test_a_tree() -> None:
    (tree,) = read_ptb("(3 (2 It) (4 (2 works) (NP .)))", words=IDS)
    assert (tree.label, tree.word) == (3, -1)
    assert [child.label for child in tree.children] == [2, 4]
    assert [(leaf.word, leaf.label) for leaf in postorder(tree) if not leaf.children] == [(0, 2), (1, 2), (2, "NP")]


def test_a_binary_tree() -> None:
    (tree,) = read_ptb("(3 (2 It) (4 (2 works) (2 .)))", words=IDS, binary=True)
    assert tree.left is not None and tree.right is not None and tree.right.right is not None
    assert (tree.left.word, tree.right.label, tree.right.right.word) == (0, 4, 2)
    assert tree.left.left is None


def test_white_space_wrappers_escapes_and_many_trees() -> None:
    text = "( (S\n  (NP It)\t( VP works )\r\n (PU .)))\n\n(X -LRB-)(X 1\N{NO-BREAK SPACE}1)"
    trees = read_ptb(text, words=IDS)
    assert [tree.label for tree in trees] == ["S", "X", "X"]
    assert [len(tree.children) for tree in trees] == [3, 0, 0]
    assert [tree.word for tree in trees] == [-1, 3, 4]
    assert read_ptb(" \n") == []


def test_depth_is_not_limited() -> None:
    depth = 100_000
    (tree,) = read_ptb("(1 " * depth + "w" + ")" * depth)
    assert measure(tree).levels == depth


def test_the_default_vocabulary_is_stable() -> None:
    (tree,) = read_ptb("(2 lovely)")
    assert tree.word == 8102  # CRC-32 894408102


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("(3 (2 It)\n  (4 works)", "this '(' is never closed"),
        ("(2 It))", "')' outside any bracket"),
        ("sst/train.txt", "'sst/train.txt' outside any bracket; a tree starts with '(' (to read a file, pass a Path)"),
        ("(2 It) (3)", "this bracket holds nothing"),
        ("()", "this bracket holds nothing"),
        ("(2 It works)", "'works' beside other content"),
        ("(2 (3 It) works)", "'works' beside other content"),
        ("(2 It (3 works))", "this bracket holds a word and a bracket"),
        ("(2 what)", "looking up 'what': it is not in the vocabulary"),
    ],
)
def test_malformed(text: str, problem: str) -> None:
    with pytest.raises(StructureError) as error:
        read_ptb(text, words=IDS)
    assert problem in str(error.value)


def test_an_error_shows_the_place() -> None:
    with pytest.raises(StructureError) as error:
        read_ptb("(3 (2 It)\n  (4 works .))", words=IDS)
    assert str(error.value) == (
        "read_ptb: '.' beside other content; a bracket holds one word or only brackets\n\n"
        "  text, line 2, column 12:\n"
        "      (4 works .))\n"
        "               ^"
    )


def test_binary_refuses_other_arities() -> None:
    with pytest.raises(StructureError, match="this node has 3 children, not 2; use binary=False"):
        read_ptb("(1 (2 It) (2 works) (2 .))", words=IDS, binary=True)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StructureError, match="No such file"):
        read_ptb(tmp_path / "none.txt")
    (tmp_path / "latin.txt").write_bytes(b"(2 caf\xe9)")
    with pytest.raises(StructureError, match="byte 6 is not UTF-8"):
        read_ptb(tmp_path / "latin.txt")


def test_the_stanford_treebank(data: Path) -> None:
    counts = {"train": 8544, "dev": 1101, "test": 2210}
    trees = {name: read_ptb(data / "sst" / f"{name}.txt", binary=True) for name in counts}
    assert {name: len(found) for name, found in trees.items()} == counts
    sizes = [measure(tree) for found in trees.values() for tree in found]
    assert mean(s.nodes for s in sizes) == pytest.approx(37.3, abs=0.05)
    assert mean(s.leaves for s in sizes) == pytest.approx(19.2, abs=0.05)
    assert mean(s.levels for s in sizes) == pytest.approx(10.85, abs=0.05)
    assert (max(s.nodes for s in sizes), max(s.levels for s in sizes)) == (111, 30)
    assert {tree.label for found in trees.values() for tree in found} == {0, 1, 2, 3, 4}

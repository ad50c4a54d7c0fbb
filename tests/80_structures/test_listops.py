"""ListOps expressions."""

from pathlib import Path
from statistics import median

import pytest

from cortex.errors import StructureError
from cortex.structures.listops import read_listops
from cortex.structures.tree import Node, measure, postorder

EVALUATE = {
    "MIN": min,
    "MAX": max,
    "MED": lambda xs: int(median(xs)),
    "SM": lambda xs: sum(xs) % 10,
    "FIRST": lambda xs: xs[0],
    "LAST": lambda xs: xs[-1],
}


def value(tree: Node) -> int:
    values: dict[int, int] = {}
    for node in postorder(tree):
        if node.children:
            values[id(node)] = EVALUATE[str(node.label)]([values[id(child)] for child in node.children])
        else:
            values[id(node)] = node.word
    return values[id(tree)]


def test_an_expression() -> None:
    ((answer, tree),) = read_listops("7\t( ( ( [MAX 4 ) ( ( ( [MIN 9 ) 7 ) ] ) ) ] )\n")
    assert answer == 7 == value(tree)
    assert (tree.label, tree.word, len(tree.children)) == ("MAX", 11, 2)
    assert [child.word for child in tree.children] == [4, 10]
    assert read_listops("5\t5")[0][1].word == 5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("( [MAX 1 ) ] )", "line 1: '( [MAX 1 ) ] )' is not 'value TAB expression'"),
        ("\n1\t[MAX 1", "line 2: not one complete expression"),
        ("1\t1 2", "line 1: not one complete expression"),
        ("1\t]", "line 1: ']' closes no operator with operands"),
        ("1\t[MAX ]", "line 1: ']' closes no operator with operands"),
        ("1\t[AVG 1 ]", "line 1: unknown token '[AVG'; known are [MIN,"),
        ("1\tMAX", "line 1: unknown token 'MAX'"),
    ],
)
def test_malformed(text: str, problem: str) -> None:
    with pytest.raises(StructureError) as error:
        read_listops(text)
    assert problem in str(error.value)


def test_every_published_expression_has_its_published_value(data: Path) -> None:
    examples = [e for file in sorted((data / "listops").glob("*.tsv")) for e in read_listops(file)]
    assert len(examples) == 30_000
    assert all(value(tree) == answer for answer, tree in examples)
    assert max(measure(tree).nodes for _, tree in examples) == 739

"""Python syntax trees."""

import itertools

import pytest

from cortex.errors import StructureError
from cortex.structures.python_ast import functions, standard_library
from cortex.structures.tree import Node, measure, postorder

SOURCE = """
def outer(a):
    async def inner(): return a.b + 1
    return inner

class C:
    def method(self): pass
"""


def text(node: Node) -> str:
    inside = " ".join(text(child) for child in node.children)
    return f"({node.label} {inside})" if inside else str(node.label)


def test_every_function_with_its_qualified_name() -> None:
    found = dict(functions(SOURCE))
    assert list(found) == ["outer.inner", "outer", "C.method"]
    assert text(found["outer.inner"]) == ("(AsyncFunctionDef arguments (Return (BinOp (Attribute Name) Add Constant)))")
    assert found["outer.inner"] is found["outer"].children[1]


def test_words_tell_type_and_identifier() -> None:
    seen: list[str] = []

    def note(word: str) -> int:
        seen.append(word)
        return len(seen)

    list(functions("def f(x): return x.y(1, 'a', k=None)", words=note))
    assert sorted(seen) == [
        *("Attribute:y", "Call", "Constant:NoneType", "Constant:int", "Constant:str", "FunctionDef:f"),
        *("Module", "Name:x", "Return", "arg:x", "arguments", "keyword:k"),
    ]


def test_operators_are_not_shared() -> None:
    ((_, tree),) = functions("def f(a, b): return a + b + a + b")
    order = postorder(tree)
    assert sum(node.label == "Add" for node in order) == 3


def test_source_that_does_not_parse() -> None:
    with pytest.raises(StructureError, match=r"functions\(source\), line 2: "):
        list(functions("x = 1\ndef f(:"))
    with pytest.raises(StructureError, match="give Python source that parses"):
        list(functions("\0"))


def test_the_standard_library_is_a_corpus() -> None:
    trees = list(itertools.islice(standard_library(), 1500))
    names = [name for name, _ in trees]
    assert len(trees) == 1500
    assert len(set(names)) > 1400  # a few functions are defined twice under a condition
    assert all(".py:" in name and "site-packages" not in name for name in names)
    assert all(tree.label in ("FunctionDef", "AsyncFunctionDef") for _, tree in trees)
    assert max(measure(tree).nodes for _, tree in trees) > 500

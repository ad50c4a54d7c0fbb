"""Modules of PyTorch, saved and loaded: the same bits in the module's own form, in a process without torch."""

from __future__ import annotations

import collections
import dataclasses
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cortex
from cortex import ModelError, StructureError

torch = pytest.importorskip("torch")
nn = torch.nn
HALF = np.float32(0.5)
CALLS = Path(__file__).parent.parent / "12_torch" / "calls"


@pytest.fixture(scope="module", autouse=True)
def modules_of_others() -> Iterator[None]:
    sys.path.insert(0, str(CALLS))
    yield
    sys.path.remove(str(CALLS))


@pytest.fixture(autouse=True)
def seeds() -> None:
    random.seed(7)
    torch.manual_seed(7)


def cases() -> dict[str, Any]:
    from test_modules import CASES

    return CASES


NAMES = (
    *("child_sum", "tuples", "dicts", "dataclass", "named_tuples", "of_none", "classes", "type_names", "attributes"),
    *(
        "enums",
        "own_cell",
        "nested_tuples",
        "json",
        "root_classifier",
        "node_classifier",
        "two_trees",
        "inputs",
        "memo",
    ),
    *("even_odd", "visitor", "flag", "pooling", "forests", "up_and_down", "bidirectional", "accumulated"),
)


def test_every_module_is_here() -> None:
    assert set(NAMES) == set(cases())


def same(got: Any, want: Any) -> None:
    """The same form and the same bits."""
    assert type(got) is type(want)
    match want:
        case torch.Tensor():
            assert got.dtype == want.dtype and got.shape == want.shape
            assert got.numpy().tobytes() == want.numpy().tobytes()
        case dict():
            assert list(got) == list(want)
            for name in want:
                same(got[name], want[name])
        case tuple() | list():
            for a, b in zip(got, want, strict=True):
                same(a, b)
        case _ if hasattr(want, "__dict__"):
            same(vars(got), vars(want))
        case _:
            assert got == want


# What is saved differs by the form of results and by what nodes are; all modules in the long run.
SAVED = NAMES if os.environ.get("CORTEX_FUZZ") == "long" else NAMES[::3]


@pytest.mark.parametrize("name", SAVED)
def test_same_bits_in_the_same_form(name: str, again: Any) -> None:
    kind, make, _ = cases()[name]
    examples = [make() for _ in range(6)]
    fast = cortex.compile(kind().eval(), examples=examples)
    got = again(fast, as_torch=True)
    for example in examples:
        arguments = example if type(example) is tuple else (example,)
        same(got(*arguments), fast(*arguments))
        run = got.executable(*arguments)
        assert run.compilations == 0
    assert repr(got) == repr(fast)


class Encoder(nn.Module):
    """What the tests below save."""

    def __init__(self) -> None:
        super().__init__()
        self.emb, self.two = nn.Embedding(10, 4), nn.Linear(8, 4)

    def forward(self, node: Any, scale: float = 1.0) -> Any:
        if not node.children:
            return self.emb(torch.tensor(node.word)) * scale
        h = [self(child, scale) for child in node.children]
        return torch.tanh(self.two(torch.cat((sum(h), h[0]))))


@dataclass(eq=False)
class Node:
    word: int = 0
    children: tuple[Node, ...] = ()


def tree(arity: int = 2) -> Node:
    return Node(0, tuple(Node(random.randrange(10), (Node(i % 10), Node(1))) for i in range(arity)))


def test_arrays_unless_tensors_are_asked_for(again: Any) -> None:
    fast = cortex.compile(Encoder().eval(), examples=[tree()])
    one = tree()
    got = again(fast)(one)
    assert type(got) is np.ndarray and got.tobytes() == fast(one).numpy().tobytes()
    rows = again(fast)([one, one])
    assert type(rows) is np.ndarray and rows.tobytes() == fast([one, one]).numpy().tobytes()


def test_other_constants(again: Any) -> None:
    fast = cortex.compile(Encoder().eval(), examples=[tree(), (tree(), 2.0)])
    got, one = again(fast, as_torch=True), tree()
    same(got(one), fast(one))
    same(got(one, scale=2.0), fast(one, 2.0))
    assert not torch.equal(got(one), got(one, 2.0))
    same(got(one, 3.0), fast(one, 3.0))  # a number is data of the request
    with pytest.raises(StructureError, match=r"scale=True\): the saved module has no code .* scale=1\.0\).*\. Compile"):
        got(one, True)
    with pytest.raises(StructureError, match="call of Encoder: missing a required argument"):
        got()


def test_weights_of_a_state_dict(again: Any) -> None:
    other = Encoder().eval()
    fast = cortex.compile(Encoder().eval(), examples=[tree(), (tree(), 2.0)])
    got, one = again(fast, as_torch=True), tree()
    for each in (fast, got):
        each.update(other.state_dict())
    same(got(one), fast(one))
    same(again(got, as_torch=True)(one, 2.0), fast(one, 2.0))
    assert got.eval() is got and got.cpu() is got and got.to("cpu") is got


def test_kinds_that_are_not_known(again: Any) -> None:
    fast = cortex.compile(Encoder().eval(), examples=[Node(3)])
    got = again(fast)
    got(Node(4))
    with pytest.raises(StructureError, match=r"at root, a Node is of a kind .*save it again"):
        got(tree())


def test_kinds_of_calls_that_are_not_known(again: Any) -> None:
    from heads import RootClassifier, UpAndDown
    from nodes import Pair

    for kind, place in ((RootClassifier, r"root\.\w+\.left"), (UpAndDown, r"root\.")):
        known = Pair(None, Pair(1), Pair(2))
        got = again(cortex.compile(kind().eval(), examples=[known]))
        got(known)
        with pytest.raises(StructureError, match=f"at {place}.* a Pair is of a kind"):
            got(Pair(None, Pair(None, Pair(3), None), Pair(2)))


def test_functions_are_given_again(file: Path) -> None:
    meaning = {"fields": {"word": lambda node: node.word % 3}}
    fast = cortex.compile(Encoder().eval(), examples=[tree()], **meaning)
    one = tree()
    fast.save(file)
    with pytest.raises(ModelError, match=r"functions say what node\.word is"):
        cortex.load(file)
    assert cortex.load(file, **meaning)(one).tobytes() == fast(one).numpy().tobytes()


def test_records_where_their_class_is_not_loaded() -> None:
    from cortex.frontend.torch.forms import Form
    from cortex.saved.forms import decode_form, encode_form

    parts = (Form("tensor"), Form("plain", 3))
    pair = collections.namedtuple("pair", ["a", "b"])
    pair.__module__ = "elsewhere"
    made = decode_form(encode_form(Form("record", pair, ("a", "b"), parts))).rebuild([1])
    assert type(made) is tuple and made == (1, 3)
    record = dataclasses.make_dataclass("Record", ["a", "b"])
    record.__module__ = "elsewhere"
    made = decode_form(encode_form(Form("record", record, ("a", "b"), parts))).rebuild([1])
    assert made == {"a": 1, "b": 3}
    loaded = Form("record", Node, ("word", "children"), parts)
    assert decode_form(encode_form(loaded)) == loaded


def test_any_arity(again: Any) -> None:
    class ChildSum(Encoder):
        def forward(self, node: Any) -> Any:
            h = torch.zeros(4)
            for child in node.children:
                h = h + self(child)
            return torch.tanh(self.two(torch.cat((h, self.emb(torch.tensor(node.word))))))

    fast = cortex.compile(ChildSum().eval(), examples=[tree(2), tree(3)])
    got = again(fast, as_torch=True)
    for arity in range(40):
        one = tree(arity)
        same(got(one), fast(one))
        assert got.executable(one).compilations == 0


def test_what_cannot_be_saved(file: Path) -> None:
    class WithDefault(Encoder):
        def forward(self, node: Any, scale: Any = HALF) -> Any:
            return super().forward(node) * scale

    fast = cortex.compile(Encoder().eval())
    with pytest.raises(ModelError, match="before it was compiled for any call"):
        fast.save(file)
    fast = cortex.compile(WithDefault().eval(), examples=[tree()])
    with pytest.raises(ModelError, match=r"cannot be saved: the default of the parameter 'scale' is"):
        fast.save(file)
    assert not file.exists()


def test_no_torch_in_the_process_that_serves(file: Path, tmp_path: Path) -> None:
    from heads import UpAndDown
    from nodes import pairs

    examples = [pairs() for _ in range(12)]
    fast = cortex.compile(UpAndDown().eval(), examples=examples)
    fast.save(file)
    random.seed(11)
    one = pairs()
    want = fast(one)
    program = (
        f"import sys, random; sys.path.insert(0, {str(CALLS)!r}); import cortex\n"
        f"from nodes import pairs; fast = cortex.load({str(file)!r}); random.seed(11); got = fast(pairs())\n"
        "print(got.tobytes().hex(), 'torch' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert said == [want.numpy().tobytes().hex(), "False"]

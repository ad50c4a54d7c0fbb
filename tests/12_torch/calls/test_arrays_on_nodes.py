"""What code asks about arrays and tensors on nodes without reading them: it is true of each node, not of the first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import cortex

T = torch.tensor
ONE, THREE, FOUR = T([2.0]), T([1.0, -2.0, 3.0]), T([1.0, -2.0, 3.0, 0.5])
MATRIX = T([[1.0, 2.0], [3.0, 4.0]])


class Summed(nn.Module):
    """What `own` says of each node, summed up."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(T([0.5, -1.0, 2.0, 3.0]))
        self.three, self.four, self.emb = nn.Linear(3, 4), nn.Linear(4, 4), nn.Embedding(10, 4)

    def own(self, x):
        raise NotImplementedError

    def forward(self, node):
        h = self.own(node.x)
        for child in node.children:
            h = h + 0.5 * self(child)
        return h


class Sizes(Summed):
    def own(self, x):
        return self.w * (len(x) + 10 * x.shape[0] + 100 * x.size(0) + 1000 * x.numel()) + len(f"{x.shape}")


class Axes(Summed):
    def own(self, x):
        return self.w * (x.ndim + 10 * x.dim() + 100 * sum(x.shape))


class ElementTypes(Summed):
    def own(self, x):
        kinds = [torch.float32, torch.float64, torch.int64, torch.int32, torch.bool]
        return self.w * (kinds.index(x.dtype) + 10 * x.is_floating_point() + 20 * torch.is_floating_point(x))


class Classes(Summed):
    def own(self, x):
        if x is None:
            return self.w
        if isinstance(x, float):
            return self.w * x
        scale = 2.0 if torch.is_tensor(x) else 3.0 if isinstance(x, np.ndarray) else 5.0
        return self.w * scale * len(x) + (7.0 if type(x) is torch.Tensor else 0.0)


class Attributes(Summed):
    def own(self, x):
        return self.w * (x.shape[0] if hasattr(x, "shape") else 20.0)


class Layouts(Summed):
    def own(self, x):
        return self.w * (2.0 if x.is_contiguous() else 3.0) + x.stride(0) + (10.0 if x.requires_grad else 0.0)


class Made(Summed):
    """Tensors of the same shape, with other elements."""

    def own(self, x):
        made = torch.ones_like(x).sum() + torch.zeros(x.shape).add(1).sum() + T([1.0]).expand_as(x).sum()
        return self.w * (made + x.new_ones(x.shape).sum())


class Rows(Summed):
    def own(self, x):
        h = torch.zeros(4)
        for i, row in enumerate(x):
            h = h + self.w * row.sum() * (i + 1)
        first, *others = x
        return h + first.sum() + len(others) + x[-1].sum() + x.view(-1).mean()


class Layers(Summed):
    """Another layer for another length, as operators of a plan have."""

    def own(self, x):
        return self.three(x) if x.shape[0] == 3 else self.four(x)


class Empty(Summed):
    def own(self, x):
        return self.w if x.numel() == 0 else self.w * x.max() * len(x)


class Broadcast(Summed):
    def own(self, x):
        return self.w * x


class Words(Summed):
    def own(self, x):
        return self.emb(x).mean(0) * len(x)


class Truths(Summed):
    def own(self, x):
        return torch.where(x, self.w, -self.w) + (x + x).float() + x.sum()


class Contained(Summed):
    def own(self, x):
        return self.w * (2.0 if 1 in x else 3.0)


class NumPy(Summed):
    def own(self, x):
        known = x.size + x.ndim + x.itemsize + (100 if x.dtype == np.float64 else 0) + x.nbytes
        return self.w * known + x.std() + x.max(0) + torch.from_numpy(x.astype(np.float32)).std() + x.var(ddof=1)


class NumPyOrNot(Summed):
    def own(self, x):
        x = x if torch.is_tensor(x) else torch.from_numpy(x)
        return self.w * x.std()


CASES: dict[str, tuple[type[Summed], list[Any]]] = {
    "sizes": (Sizes, [ONE, THREE, MATRIX]),
    "axes": (Axes, [ONE, T(3.0), MATRIX]),
    "element_types": (ElementTypes, [THREE, THREE.double(), T([1, 2, 3]), T([1, 2, 3]).int(), T([True, False, True])]),
    "classes": (Classes, [THREE, THREE.numpy(), 2.5, None, [1.0, 2.0]]),
    "attributes": (Attributes, [THREE, 2.0, FOUR]),
    "layouts": (Layouts, [MATRIX, MATRIX.clone().t(), MATRIX.clone().requires_grad_()]),
    "made": (Made, [ONE, THREE]),
    "rows": (Rows, [MATRIX, MATRIX[:1], THREE]),
    "layers": (Layers, [THREE, FOUR]),
    "empty": (Empty, [T([]), THREE]),
    "broadcast": (Broadcast, [T(2.0), FOUR, T([1, 2, 3, 4])]),
    "words": (Words, [T([1, 2, 3]), T([4])]),
    "truths": (Truths, [T([True, False, True, True]), T([False, False, True, False])]),
    "contained": (Contained, [[1, 2], [3], [2, 1, 1]]),
    "numpy": (NumPy, [THREE.numpy(), FOUR.numpy(), FOUR.double().numpy()]),
    "numpy_or_not": (NumPyOrNot, [THREE.numpy(), FOUR]),
}


def tree(*values: Any) -> SimpleNamespace:
    """A node for the first value, above nodes for the others."""
    return SimpleNamespace(x=values[0], children=[SimpleNamespace(x=x, children=[]) for x in values[1:]])


@pytest.mark.parametrize("name", CASES)
def test_forms_are_facts_of_each_node(name: str) -> None:
    """The first example alone is known when the module is compiled."""
    made, values = CASES[name]
    module = made().eval()
    compiled = cortex.compile(module, examples=[tree(values[0])])
    for structure in (*map(tree, values), tree(*values), tree(*reversed(values))):
        with torch.no_grad():
            expected = module(structure)
        torch.testing.assert_close(compiled(structure), expected, rtol=1e-5, atol=1e-5)


class OfChildren(Summed):
    def forward(self, node):
        h = self.w * node.x.sum()
        for child in node.children:
            h = h + self(child) * child.x.numel()
        return h


class WithChildren(Summed):
    def forward(self, node):
        h = self.w
        for child in node.children:
            h = h + self(child) * child.x
        return h


def test_forms_of_childrens_arrays() -> None:
    module = OfChildren().eval()
    compiled = cortex.compile(module, examples=[tree(ONE, ONE)])
    for structure in (tree(ONE, ONE), tree(THREE, ONE, THREE), tree(ONE, THREE, ONE, FOUR)):
        with torch.no_grad():
            torch.testing.assert_close(compiled(structure), module(structure))


def test_kinds_that_read_childrens_arrays_are_of_any_arity() -> None:
    compiled = cortex.compile(WithChildren().eval(), examples=[tree(FOUR, *[FOUR] * n) for n in (1, 2, 3)])
    assert len(compiled.executable(tree(FOUR, FOUR)).traced.kinds) <= 2
    with pytest.raises(
        cortex.StructureError, match=r"has shape \(1,\); it must be an array of numbers of shape \(4,\)"
    ):
        compiled(tree(FOUR, FOUR, ONE))


def test_forms_after_saving(tmp_path: Path) -> None:
    module = Layers().eval()
    compiled = cortex.compile(module, examples=[tree(FOUR, THREE, FOUR)])
    compiled.save(tmp_path / "layers.cortex")
    loaded = cortex.load(tmp_path / "layers.cortex")
    with torch.no_grad():
        torch.testing.assert_close(torch.as_tensor(loaded(tree(FOUR, THREE, FOUR))), module(tree(FOUR, THREE, FOUR)))
    with pytest.raises(cortex.StructureError, match=r"form_x is 'float32\[1\]', and known is 'float32"):
        loaded(tree(ONE))


class Beside(Summed):
    """A tensor beside the structure, of which the head takes a row."""

    def forward(self, node, inputs):
        return self.up(node) * inputs[0] + self.w * (inputs.dtype == torch.float32) + inputs[node.row].numel()

    def up(self, node):
        return self.w + sum((self.up(child) for child in node.children), torch.zeros(4))


def test_rows_that_a_head_takes() -> None:
    module = Beside().eval()
    leaf = SimpleNamespace(row=1, children=[])
    root = SimpleNamespace(row=0, children=[leaf, leaf])
    compiled = cortex.compile(module, examples=[(leaf, torch.randn(2, 4))])
    for node, inputs in ((root, torch.randn(3, 4)), (leaf, torch.randn(2, 1)), (root, torch.randn(2, 1))):
        with torch.no_grad():
            torch.testing.assert_close(compiled(node, inputs), module(node, inputs))


class OnlyBeside(Summed):
    """No call on another node: nothing but the tensor differs."""

    def forward(self, node, inputs):
        return self.w * inputs[node.row] + inputs[0]


def test_a_tensor_beside_the_structure_is_no_constant() -> None:
    module = OnlyBeside().eval()
    leaf = SimpleNamespace(row=1)
    compiled = cortex.compile(module, examples=[(leaf, torch.randn(2, 4))])
    for inputs in (torch.randn(2, 4), torch.randn(5, 4)):
        with torch.no_grad():
            torch.testing.assert_close(compiled(leaf, inputs), module(leaf, inputs))


class Repeats(Summed):
    def own(self, x):
        return self.w * torch.from_numpy(x.repeat(2))[:4]


class SpreadOfComputed(Summed):
    def own(self, x):
        return self.w * (x * 2).std()


class Wraps(Summed):
    def own(self, x):
        return self.w * (x - 5).float()


class ContainsTensor(Summed):
    def own(self, x):
        return self.w * (2.0 if self.w in x else 3.0)


class CountsRows(Summed):
    def forward(self, node, inputs):
        return self.w * len(inputs)


class LoopsOverRows(Summed):
    def forward(self, node, inputs):
        return sum((self.w * row for row in inputs), torch.zeros(4))


REFUSED: dict[str, tuple[type[Summed], tuple[Any, ...]]] = {
    "numpy_attribute": (Repeats, (tree(FOUR.numpy()),)),
    "numpy_computed": (SpreadOfComputed, (tree(FOUR.numpy()),)),
    "tensor_in_array": (ContainsTensor, (tree(FOUR),)),
    "rows_counted": (CountsRows, (tree(FOUR), torch.randn(3, 4))),
    "rows_iterated": (LoopsOverRows, (tree(FOUR), torch.randn(3, 4))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, golden: Callable[[str, str], None]) -> None:
    made, call = REFUSED[name]
    with pytest.raises(cortex.ModelError) as raised:
        cortex.compile(made().eval(), examples=[call])(*call)
    golden(f"errors/torch_arrays/{name}", f"{type(raised.value).__name__}: {raised.value}".partition("\n")[0])


def test_narrow_integers_wrap_as_those_of_torch() -> None:
    module = Wraps().eval()
    fast = cortex.compile(module, examples=[tree(T([1, 2, 3, 4]).byte())])
    for numbers in ([1, 2, 3, 4], [0, 5, 250, 255]):
        with torch.no_grad():
            torch.testing.assert_close(fast(tree(T(numbers).byte())), module(tree(T(numbers).byte())))

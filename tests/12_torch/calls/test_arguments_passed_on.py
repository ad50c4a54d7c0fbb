"""A tensor beside the structure may be handed on in recursive calls, by place or by name."""

from typing import Any

import pytest

import cortex

torch = pytest.importorskip("torch")
nn = torch.nn

SIZE = 4


class Node:
    def __init__(self, at: int, *children: Any) -> None:
        self.at = at
        self.children = list(children)


class ByPlace(nn.Module):  # type: ignore[name-defined,misc]
    def __init__(self) -> None:
        super().__init__()
        self.W = nn.Linear(SIZE, SIZE)

    def forward(self, node: Any, inputs: Any) -> Any:
        h = inputs[node.at]
        for child in node.children:
            h = h + self(child, inputs)
        return torch.tanh(self.W(h))


class ByName(ByPlace):
    def forward(self, node: Any, inputs: Any) -> Any:
        below = sum((self(child, inputs=inputs) for child in node.children), torch.zeros(SIZE))
        return torch.tanh(self.W(inputs[node.at] + below))


class ByMethod(ByPlace):
    def forward(self, node: Any, inputs: Any) -> Any:
        return self.encode(node, inputs)

    def encode(self, node: Any, inputs: Any) -> Any:
        h = self.W(inputs[node.at])
        for child in node.children:
            h = h + torch.tanh(self.encode(child, inputs))
        return h


@pytest.mark.parametrize("cls", [ByPlace, ByName, ByMethod])
def test_handed_on(cls: type[Any]) -> None:
    torch.manual_seed(0)
    module = cls().eval()
    requests = [(Node(1, Node(2), Node(0, Node(3))), torch.randn(5, SIZE)), (Node(0, Node(2)), torch.randn(3, SIZE))]
    with torch.no_grad():
        fast = cortex.compile(module, examples=requests[:1])
        want = torch.stack([module(*each) for each in requests])
        torch.testing.assert_close(fast(requests), want, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(fast(*requests[1]), want[1], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("cls", [ByPlace, ByName, ByMethod])
def test_a_vector_that_is_used_as_a_whole_is_refused_by_its_use(cls: type[Any]) -> None:
    class Whole(cls):  # type: ignore[misc]
        def forward(self, node: Any, inputs: Any) -> Any:
            return self.W(inputs.mT if node.at else inputs)

    with torch.no_grad(), pytest.raises(cortex.CortexError) as caught:
        cortex.compile(Whole().eval(), examples=[(Node(1), torch.randn(SIZE))])
    assert "_cortex" not in str(caught.value)

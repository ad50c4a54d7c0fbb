"""Training in two processes that average their gradients: DistributedDataParallel around the compiled module."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn

from training_modules import Node, assert_same, compiled, trees  # noqa: E402


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.cell = nn.Embedding(20, 4), nn.Linear(4, 4)

    def forward(self, node: Node) -> Any:
        below = sum([self.forward(k) for k in node.children], torch.zeros(4))
        return torch.tanh(self.cell(self.embedding(torch.tensor(node.word)) + below))


class Trained(nn.Module):
    """A module with its compiled one, which computes what it computes, and a head."""

    def __init__(self, module: Encoder, fast: Any) -> None:
        super().__init__()
        self.module, self.head = module, nn.Linear(4, 3)
        self.fast = fast

    def forward(self, batch: list[Node]) -> Any:
        return self.head(self.fast(batch))


def train(rank: int, folder: str) -> None:
    """Two steps of one of two processes, each with half of the trees."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=2)
    torch.manual_seed(rank)  # the first process's parameters are sent to the other one
    module = Encoder()
    both = torch.nn.parallel.DistributedDataParallel(Trained(module, compiled(module)))
    before = copy.deepcopy(both.module.state_dict())
    optimizer = torch.optim.SGD(both.parameters(), lr=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        both(trees(4)[2 * rank : 2 * rank + 2]).logsumexp(1).mean().backward()
        optimizer.step()
    torch.save((before, both.module.state_dict()), f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch was built without it")
def test_two_processes_train_as_one(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(train, (str(tmp_path),), nprocs=2)
    (before, found), (_, other) = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    module = Encoder()
    alone = Trained(module, lambda batch: torch.stack([module(t) for t in batch]))
    alone.load_state_dict(before)
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        alone(trees(4)).logsumexp(1).mean().backward()
        optimizer.step()
    assert_same(found, alone.state_dict())
    assert_same(other, alone.state_dict())
    assert any(not torch.equal(x, found[name]) for name, x in before.items())

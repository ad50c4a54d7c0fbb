"""What outlives calls: right where nothing depends on it, refused where something does; never silently wrong."""

from __future__ import annotations

import functools
import linecache
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from outside_lists import COLLECTED
from torch import nn

import cortex

H = 4
COUNT = {"calls": 0}


class Tree:
    def __init__(self, word: int, children: list[Any]) -> None:
        self.word = word
        self.children = children


def tree(rng: random.Random, depth: int, *, none: bool = False) -> Tree:
    below = (
        [tree(rng, depth - rng.randint(1, 2), none=none) for _ in range(rng.randint(1, 2 if none else 3))]
        if depth > 0
        else []
    )
    if none and below and rng.random() < 0.6:
        below.insert(rng.randrange(len(below) + 1), None)
    return Tree(rng.randrange(10), below)


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb, self.lin = nn.Embedding(10, H), nn.Linear(H, H)
        self.prepare()

    def prepare(self) -> None:
        """What a module has beside."""

    def join(self, node: Any, below: list[Any]) -> Any:
        return torch.tanh(self.lin(self.emb(torch.tensor(node.word)) + sum(below, torch.zeros(H))))

    def forward(self, node: Any) -> Any:
        return self.join(node, [self(child) for child in node.children])


class ReadsMemo(Cell):
    def encode(self, node: Any, memo: dict[int, Any]) -> None:
        for child in node.children:
            self.encode(child, memo)
        memo[id(node)] = self.join(node, [memo[id(child)] for child in node.children])

    def forward(self, node: Any) -> Any:
        memo: dict[int, Any] = {}
        self.encode(node, memo)
        return memo[id(node)]


class OwnMemo(Cell):
    def prepare(self) -> None:
        self.memo: dict[int, Any] = {}

    def encode(self, node: Any) -> Any:
        if id(node) not in self.memo:
            self.memo[id(node)] = self.join(node, [self.encode(child) for child in node.children])
        return self.memo[id(node)]

    def forward(self, node: Any) -> Any:
        self.memo = {}
        return self.encode(node)


class OnNode(Cell):
    """Remembers on the node, which has such an attribute or not."""

    def encode(self, node: Any) -> Any:
        if getattr(node, "h", None) is None:
            node.h = self.join(node, [self.encode(child) for child in node.children])
        return node.h

    def forward(self, node: Any) -> Any:
        return self.encode(node)


class Logs(Cell):
    """Counts and keeps what it never looks at."""

    def prepare(self) -> None:
        self.calls, self.kept = 0, list[Any]()

    def forward(self, node: Any) -> Any:
        self.calls += 1
        COUNT["last"] = 1
        h = super().forward(node)
        self.kept.append(h)
        return h


class Cached(Cell):
    @functools.lru_cache(maxsize=None)  # noqa: B019, UP033 - as people write it
    def forward(self, node: Any) -> Any:
        return super().forward(node)


class NoGrad(Cell):
    @torch.no_grad()
    def forward(self, node: Any) -> Any:
        with torch.inference_mode():
            return super().forward(node)


class Hooked(Cell):
    def prepare(self) -> None:
        self.register_forward_pre_hook(lambda module, args: None)
        self.register_forward_hook(lambda module, args, out: out * 2)
        self.lin.register_forward_hook(lambda module, args, out: out + 1)


class OwnCall(Cell):
    def __call__(self, node: Any) -> Any:
        return self.forward(node) * 2


class Normed(Cell):
    def prepare(self) -> None:
        self.lin = nn.utils.parametrizations.weight_norm(nn.utils.spectral_norm(self.lin), "bias", dim=0)


class Tied(Cell):
    def prepare(self) -> None:
        self.out = nn.Linear(H, 10, bias=False)
        self.out.weight = self.emb.weight

    def encode(self, node: Any) -> Any:
        return self.join(node, [self.encode(child) for child in node.children])

    def forward(self, node: Any) -> Any:
        return self.out(self.encode(node))


class Constants(Cell):
    def encode(self, node: Any, shifts: list[float], options: dict[str, float]) -> Any:
        below = [self.encode(child, shifts, options) for child in node.children]
        return self.join(node, below) * options.get("scale", 1.0) + sum(shifts)

    def forward(self, node: Any) -> Any:
        return self.encode(node, [1.0, 2.0], {"scale": 0.5})


class Nones(Cell):
    def forward(self, node: Any) -> Any:
        return self.join(node, [self(c) * i for i, c in enumerate(node.children) if c is not None])


class NonesBelowHead(Cell):
    def encode(self, node: Any, above: Any) -> Any:
        x = self.join(node, [above])
        return self.join(node, [self.encode(c, x) * i for i, c in enumerate(node.children) if c is not None])

    def forward(self, node: Any) -> Any:
        return self.encode(node, torch.zeros(H))


def check(module: nn.Module, *, none: bool = False) -> None:
    rng = random.Random(1)
    fast = cortex.compile(module, examples=[tree(rng, 2) for _ in range(3)])
    for depth in (1, 2, 2) if none else (0, 1, 2, 3, 3, 4):
        given = tree(rng, depth, none=none)
        with torch.no_grad():
            torch.testing.assert_close(fast(given), module(given).clone(), rtol=1e-4, atol=1e-5)


RIGHT = (ReadsMemo, OwnMemo, OnNode, Logs, Cached, NoGrad, Hooked, OwnCall, Normed, Tied, Constants)


@pytest.mark.parametrize("kind", RIGHT)
def test_right(kind: type[Cell]) -> None:
    torch.manual_seed(0)
    check(kind().eval())


@pytest.mark.parametrize("kind", [Nones, NonesBelowHead])
def test_none_among_children_that_no_example_showed(kind: type[Cell]) -> None:
    torch.manual_seed(0)
    check(kind().eval(), none=True)


def test_a_trace_leaves_everything_as_it_was() -> None:
    module = Logs().eval()
    COUNT.clear()
    cortex.compile(module, examples=[tree(random.Random(0), 2)])
    assert (module.calls, module.kept, COUNT) == (0, [], {})


HEADER = """\
import random, time, torch
from torch import nn
FOUND = []
TOTAL = 0

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.lin, self.count, self.found = nn.Embedding(10, 4), nn.Linear(4, 4), 0, []
    def join(self, node, below):
        return torch.tanh(self.lin(self.emb(torch.tensor(node.word)) + sum(below, torch.zeros(4))))
"""
ENCODE = "def encode(self, node{0}):\n    {1}\n    return self.join(node, [self.encode(c{2}) for c in node.children])\n"
BODIES = {
    "memo_values": """
def encode(self, node, memo):
    memo[id(node)] = self.join(node, [self.encode(c, memo) for c in node.children])
    return memo[id(node)]
def forward(self, node):
    memo = {}
    self.encode(node, memo)
    return sum(memo.values())
""",
    "memo_length": ENCODE.format(", memo", "memo[node] = 1", ", memo")
    + "def forward(self, node):\n    memo = {}\n    return self.encode(node, memo) * len(memo)\n",
    "visited": ENCODE.format(", seen", "seen.add(id(node))", ", seen")
    + "def forward(self, node):\n    seen = set()\n    return self.encode(node, seen) * len(seen)\n",
    "seen_before": """
def encode(self, node, seen):
    if id(node) in seen:
        return torch.zeros(4)
    seen.add(id(node))
    return self.join(node, [self.encode(c, seen) for c in node.children])
def forward(self, node):
    return self.encode(node, set())
""",
    "remembers_other": """
def encode(self, node, memo):
    if id(node) in memo:
        return memo[id(node)]
    memo[id(node)] = self.join(node, [self.encode(c, memo) for c in node.children])
    return memo[id(node)] * 2
def forward(self, node):
    return self.encode(node, {})
""",
    "counter": ENCODE.format("", "self.count += 1", "")
    + "def forward(self, node):\n    self.count = 0\n    return self.encode(node) / self.count\n",
    "of_the_last_request": """
def encode(self, node):
    return self.join(node, [self.encode(c) for c in node.children]) + self.count
def forward(self, node):
    h = self.encode(node)
    self.count = h
    return h
""",
    "not_emptied": """
def encode(self, node):
    self.found.append(self.join(node, [self.encode(c) for c in node.children]))
    return self.found[-1]
def forward(self, node):
    h = self.encode(node)
    self.last = torch.stack(self.found)
    return self.last.sum(0)
""",
    "read_before_it_is_bound": """
def encode(self, node):
    return self.join(node, [self.encode(c) for c in node.children])
def forward(self, node):
    before, self.found = self.found, []
    h = self.encode(node) + len(before)
    self.found = [h]
    return h
""",
    "depth": """
def forward(self, node):
    self.count += 1
    h = self.join(node, [self(c) for c in node.children]) / self.count
    self.count -= 1
    return h
""",
    "memo_by_word": """
def encode(self, node):
    if node.word not in self.memo:
        self.memo[node.word] = self.join(node, [self.encode(c) for c in node.children])
    return self.memo[node.word]
def forward(self, node):
    self.memo = {}
    return self.encode(node)
""",
    "memo_setdefault": """
def encode(self, node, memo):
    return memo.setdefault(node.word, self.join(node, [self.encode(c, memo) for c in node.children]))
def forward(self, node):
    return self.encode(node, {})
""",
    "kept_on_self": """
def encode(self, node):
    h = self.join(node, [self.encode(c) for c in node.children])
    self.found.append(h)
    return h
def forward(self, node):
    self.encode(node)
    return torch.stack(self.found).mean(0)
""",
    "kept_in_global": """
def encode(self, node):
    h = self.join(node, [self.encode(c) for c in node.children])
    FOUND.append(h)
    return h
def forward(self, node):
    h = self.encode(node)
    return h * len(FOUND)
""",
    "emptied_afterwards": """
def encode(self, node):
    h = self.join(node, [self.encode(c) for c in node.children])
    self.found.append(h)
    return h
def forward(self, node):
    self.encode(node)
    total = sum(self.found)
    self.found = self.found[-1:]
    return total
""",
    "emptied_below": """
def encode(self, node):
    if not node.children:
        self.found = []
    h = self.join(node, [self.encode(c) for c in node.children])
    self.found.append(h)
    return h
def forward(self, node):
    self.found = []
    self.encode(node)
    return sum(self.found)
""",
    "emptied_sometimes": """
def encode(self, node):
    h = self.join(node, [self.encode(c) for c in node.children])
    self.found.append(h)
    return h
def forward(self, node):
    if node.word > 9:
        self.found = []
    self.encode(node)
    return sum(self.found)
""",
    "class_list": """
collected = []
def encode(self, node):
    h = self.join(node, [self.encode(c) for c in node.children])
    self.collected.append(h)
    return h
def forward(self, node):
    self.collected.clear()
    return self.encode(node) + sum(self.collected)
""",
    "generator": """
def walk(self, node):
    for child in node.children:
        yield from self.walk(child)
    yield self.emb(torch.tensor(node.word))
def forward(self, node):
    return torch.stack(list(self.walk(node))).mean(0)
""",
    "nonlocal_total": """
def forward(self, node):
    total = torch.zeros(4)
    def walk(x):
        nonlocal total
        total = total + self.join(x, [walk(c) for c in x.children])
        return total
    return walk(node)
""",
    "visits": """
def encode(self, node):
    node.visits = getattr(node, "visits", 0) + 1
    return self.join(node, [self.encode(c) for c in node.children]) * node.visits
def forward(self, node):
    return self.encode(node)
""",
    "zeros_next_time": """
def encode(self, node):
    if hasattr(node, "seen"):
        return torch.zeros(4)
    node.seen = True
    return self.join(node, [self.encode(c) for c in node.children])
def forward(self, node):
    return self.encode(node)
""",
    "head_sets_attribute": """
def encode(self, node):
    return self.join(node, [self.encode(c) for c in node.children])
def forward(self, tree):
    tree.h = self.encode(tree)
    return tree.h
""",
    "setting": """
def encode(self, node):
    return self.join(node, [self.encode(c) for c in node.children]) * self.count
def forward(self, node):
    self.count = 2.0
    return self.encode(node)
""",
    "global_name": """
def encode(self, node):
    global TOTAL
    TOTAL += 1
    return self.join(node, [self.encode(c) for c in node.children])
def forward(self, node):
    return self.encode(node) / TOTAL
""",
    "accumulated": ENCODE.format(", total", "total.add_(self.emb(torch.tensor(node.word)))", ", total")
    + "def forward(self, node):\n    total = torch.zeros(4)\n    self.encode(node, total)\n    return total\n",
    "entry": ENCODE.format(", found", "found['sum'] = found['sum'] + 1", ", found")
    + "def forward(self, node):\n    return self.encode(node, {'sum': 0})\n",
    "random": "def forward(self, node):\n"
    "    return self.join(node, [self(c) for c in node.children]) * random.random()\n",
    "clock": "def forward(self, node):\n"
    "    return self.join(node, [self(c) for c in node.children]) * time.perf_counter()\n",
    "scripted_function": """
def forward(self, node):
    return scripted(self.join(node, [self(c) for c in node.children]))
""",
}


def define(name: str) -> Any:
    """A module as if it stood in a file."""
    source = HEADER + "".join(f"    {line}\n" for line in (BODIES | COLLECTED)[name].strip().split("\n"))
    file = f"outside_{name}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": "encoder", "scripted": torch.jit.script(_halved)}
    exec(compile(source, file, "exec"), names)
    return names["Encoder"]()


def _halved(x: torch.Tensor) -> torch.Tensor:
    return x / 2


@pytest.mark.filterwarnings("ignore:.*torch.jit.*")
@pytest.mark.parametrize("name", COLLECTED)
def test_collected(name: str) -> None:
    torch.manual_seed(0)
    check(define(name).eval())


@pytest.mark.filterwarnings("ignore:.*torch.jit.*")
@pytest.mark.parametrize("name", BODIES)
def test_refused(name: str, golden: Callable[[str, str], None]) -> None:
    with pytest.raises(cortex.ModelError) as raised:
        cortex.compile(define(name).eval(), examples=[tree(random.Random(0), 2)])
    golden(f"errors/torch_outside/{name}", f"{type(raised.value).__name__}: {raised.value}")


@pytest.mark.filterwarnings("ignore:.*torch.jit.*")
@pytest.mark.parametrize(
    ("name", "made"),
    {
        "double": lambda: Cell().double(),
        "half": lambda: Cell().half(),
        "meta": lambda: Cell().to("meta"),
        "wrapped": lambda: nn.DataParallel(Cell()),
        "scripted_part": lambda: nn.Module.add_module(made := Cell(), "lin", torch.jit.script(nn.Linear(H, H))) or made,
    }.items(),
)
def test_refused_module(name: str, made: Callable[[], nn.Module], golden: Callable[[str, str], None]) -> None:
    with pytest.raises(cortex.ModelError) as raised:
        cortex.compile(made().eval(), examples=[tree(random.Random(0), 2)])
    golden(f"errors/torch_outside/{name}", f"{type(raised.value).__name__}: {raised.value}")

"""Loading a file whose code fits takes little: no compiler, no copy of the weights, memory that processes share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex

COMPILER = ("llvmlite", "islpy", "z3", "click", "rich", "torch", "safetensors")

PROGRAM = """
import sys
from types import SimpleNamespace as Node
import cortex
fast = cortex.load(sys.argv[1])
tree = Node(word=1, children=[Node(word=2, children=[]), Node(word=0, children=[])])
first = fast(tree).out
heavy = [name for name in sys.modules if name.split(".")[0] in {compiler}]
modules = [name for name in sys.modules if name.startswith("cortex.")]
print(len(modules), *heavy)
fast.bind(tree)
{more}
print(0, *[name for name in sys.modules if name.split(".")[0] in {compiler}])
"""


@cortex.model
def tree(node: Any, w: Any) -> Any:
    return cortex.tanh(w.U @ (w.emb[node.word] + cortex.sum(tree(k, w) for k in node.children)))


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A model of 64 MB of embeddings and 4 MB of matrices."""
    weights = {"emb": np.ones((1 << 14, 1024), np.float32), "U": np.ones((1024, 1024), np.float32) / 1024}
    cortex.compile(tree, weights, table_bytes=0).save(tmp_path / "large.cortex")
    return tmp_path / "large.cortex"


def run(program: str, *args: object) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program, *map(str, args)], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


def test_no_compiler_is_imported(tmp_path: Path) -> None:
    """By a first call a few modules of Cortex, by everything else that loads no code all but the compiler's own."""
    weights = {"emb": np.ones((5, 4), np.float32), "U": np.eye(4, dtype=np.float32)}
    cortex.compile(tree, weights).save(tmp_path / "model.cortex")
    more = "fast.update({'emb': 2 * fast.weights['emb'], 'U': fast.weights['U']}); fast(tree, threads=1); repr(fast)"
    light, whole = run(PROGRAM.format(compiler=COMPILER, more=more), tmp_path / "model.cortex")
    assert int(light.split()[0]) < 40
    assert light.split()[1:] == whole.split()[1:] == []


def test_weights_are_not_copied(large: Path) -> None:
    """Anonymous memory, which is a process's own, does not grow by the weights; what is read of the file is shared."""
    program = (
        "import sys; import numpy as np; import cortex, cortex.loader; from types import SimpleNamespace as Node\n"
        "def own():\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return int(next(l for l in lines if l.startswith('RssAnon')).split()[1]) << 10\n"
        "node = Node(word=3, children=[Node(word=i, children=[]) for i in range(8)])\n"
        "before = own(); fast = cortex.load(sys.argv[1]); fast(node); print(own() - before)\n"
        "fast.bind(node); print(own() - before)"
    )
    light, whole = map(int, run(program, large))
    assert light < 8 << 20
    assert whole < 72 << 20  # the compiler's modules; none of it is weights


def test_the_peak_is_hardly_more_than_the_weights(large: Path) -> None:
    program = (
        "import sys; import cortex, cortex.loader; from types import SimpleNamespace as Node\n"
        "def peak():\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return int(next(l for l in lines if l.startswith('VmHWM')).split()[1]) << 10\n"
        "before = peak(); fast = cortex.load(sys.argv[1]); fast(Node(word=3, children=[Node(word=4, children=[])]))\n"
        "print(peak() - before)"
    )
    [grown] = map(int, run(program, large))
    assert grown < 1.15 * (68 << 20)


def Words(word: Any, *children: Any) -> Any:
    return SimpleNamespace(word=word, children=list(children))


CHAIN = Words(0)
for word in range(400):
    CHAIN = Words(word % 5, CHAIN)
GIVEN = [
    *(Words(1), Words(1, Words(2)), CHAIN, Words(3, *(Words(i % 5) for i in range(70))), [], [Words(1), CHAIN]),
    *((Words(4), Words(0, Words(1))), cortex.Forest.from_parents([-1, 0, 0, 1], fields={"word": [1, 2, 3, 4]})),
    *(None, 3, "text", {}, [None], [Words(1), Words(5)], Words("a"), Words(-1), iter([1]), Words(1, None)),
]


def said(call: Callable[[], Any]) -> Any:
    """The bits of a result, or the error."""
    try:
        out = call()
        return [a.tobytes() for a in (*out, *out.nodes)]
    except cortex.CortexError as error:
        return type(error), str(error)


def test_calls_by_the_record_are_those_of_the_model(tmp_path: Path) -> None:
    """Results and refusals: whatever is given, by the record alone and by all of the model."""
    weights = {"emb": np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4), "U": np.eye(4, dtype=np.float32)}
    path = tmp_path / "model.cortex"
    cortex.compile(tree, weights, examples=[Words(1, Words(2))]).save(path, threads=[1, 2])
    for threads in (1, 2):
        whole = cortex.load(path, threads=threads).whole  # type: ignore[union-attr]
        for given in GIVEN:
            by_record = cortex.load(path, threads=threads)
            assert said(lambda: by_record(given)) == said(lambda: whole(given)), given  # noqa: B023
    for wrong in (0, -1, 65, True, "2", 1.5):
        with pytest.raises(cortex.ModelError, match="a call runs on 1 to 64 threads"):
            cortex.load(path, threads=wrong)  # type: ignore[call-overload]

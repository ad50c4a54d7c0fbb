"""Loading a file whose code fits takes little: no compiler, no copy of the weights, memory that processes share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
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

"""The interpreter ends while daemon threads are inside calls: no abort, and no call is cut in two."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import atexit, threading, time
from types import SimpleNamespace as NS

def last():
    fast(chain)
    print("called at exit")

atexit.register(last)  # before cortex registers its own, so that it runs after it

import numpy as np
import cortex

W = {"emb": np.ones((4, 64)), "U": np.eye(64)}

@cortex.model
def tree(node, w):
    if node.is_leaf:
        return w.emb[node.word]
    return cortex.tanh(w.U @ cortex.sum(tree(k, w) for k in node.children))

chain = NS(children=[], word=1)
for _ in range(500):
    chain = NS(children=[chain], word=1)
fast = cortex.compile(tree, W, children=CHILDREN)
fast(chain)
begun = threading.Barrier(4)

def forever():
    begun.wait()
    while True:
        fast(chain)

for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
begun.wait()
time.sleep(0.05)
print("end")
"""


@pytest.mark.parametrize("children", ["None", "lambda node: node.children"])
def test_daemon_threads_at_exit(children: str) -> None:
    """With an accessor in Python a thread can lose the GIL anywhere inside a call, else only around the kernel."""
    script = SCRIPT.replace("CHILDREN", children)
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\ncalled at exit\n", "")

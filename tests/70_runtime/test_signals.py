"""Handlers of signals run while structures are walked and while compiled functions run, and stop them by raising.

Functions here are written in Python and go on until they are told to stop, so nothing depends on how long a machine
takes: where signals are not handled in the middle, a test does not end.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from cortex import _native

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")

ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
BARRIER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


class Interrupted(Exception):
    """What the handlers here raise."""


@contextmanager
def handler(handle: Callable[[], None], often: float = 0.0) -> Iterator[None]:
    """Handle a signal that comes in a moment, and then every `often` seconds."""
    before = signal.signal(signal.SIGALRM, lambda number, frame: handle())
    signal.setitimer(signal.ITIMER_REAL, 0.02, often)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def interrupt() -> None:
    raise Interrupted


def is_stopped(sizes: int) -> bool:
    """The function here has no sizes: the word behind them is the first."""
    return bool(ctypes.c_int64.from_address(sizes).value)


class Endless:
    """A function that goes on until it is stopped, or until somebody sets `go_on`."""

    def __init__(self, meets: bool = False) -> None:
        self.go_on, self.meets, self.stopped = threading.Event(), meets, 0
        self.function = ENTRY(self._run)
        self.address = ctypes.cast(self.function, ctypes.c_void_p).value

    def _run(self, arrays: int, sizes: int, thread: int, threads: int, team: int) -> None:
        if self.meets and thread > 0:  # waits for one that does not come
            BARRIER(ctypes.c_void_p.from_address(team).value or 0)(team, thread)
        while not self.go_on.is_set():
            if is_stopped(sizes):
                self.stopped += 1
                return
            time.sleep(0.001)

    def ends_soon(self) -> None:
        """Go on in a moment, which is long enough for the next call to be expected to be long."""
        threading.Timer(0.05, self.go_on.set).start()

    def program(self, linearizer: Any) -> Any:
        layout = {"entry": self.address, "keepalive": self, "sizes": [], "arrays": [("state", "h", (), 1)]}
        return _native.Program(linearizer(), layout)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_handler_that_raises_stops_the_function(node: Any, linearizer: Any, threads: int) -> None:
    endless = Endless(meets=True)
    program = endless.program(linearizer)
    for _ in range(2):
        with handler(interrupt), pytest.raises(Interrupted):
            program.run([node(word=1)], True, threads)
    assert endless.stopped >= 2
    endless.go_on.set()
    endless.meets = False
    assert program.run([node(word=1)], True, threads).num_nodes == 1


def test_a_handler_that_returns_lets_it_go_on(node: Any, linearizer: Any) -> None:
    endless, seen = Endless(), []

    def handle() -> None:
        seen.append(threading.current_thread())
        if len(seen) == 3:
            endless.go_on.set()

    with handler(handle, 0.02):
        endless.program(linearizer).run([node(word=1)], True)
    assert seen[:3] == [threading.main_thread()] * 3
    assert not endless.stopped


def test_a_handler_may_call(node: Any, linearizer: Any) -> None:
    """Even the program that runs; the inner call is interrupted as well."""
    endless = Endless()
    program = endless.program(linearizer)

    def handle() -> None:
        with handler(interrupt), pytest.raises(Interrupted):
            program.run([node(word=1)], True)
        endless.go_on.set()

    with handler(handle):
        program.run([node(word=1)], True)
    assert endless.stopped == 1


def test_a_bound_request_is_run_again(node: Any, linearizer: Any) -> None:
    endless = Endless()
    out = [np.full((), 7, np.float32)]
    bound = _native.Bound(endless.program(linearizer), [node(word=1)], True, 1, out)
    with handler(interrupt), pytest.raises(Interrupted):
        bound.run()
    assert out[0] == 7
    with pytest.raises(RuntimeError, match="has not been run"):
        bound.root(0)
    endless.ends_soon()
    bound.run()
    assert bound.root(0) is out[0]
    endless.go_on.clear()
    with handler(interrupt), pytest.raises(Interrupted):
        bound.run()
    with pytest.raises(RuntimeError, match="the last run of the request was interrupted; run it again"):
        bound.nodes(0)
    endless.go_on.set()
    bound.run()
    assert bound.nodes(0).shape == (1,)


@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_are_stopped(threads: int) -> None:
    endless = Endless(meets=True)
    kernel = _native.Kernel(endless.address, [("input", 4), ("output", 4)], endless)
    x, out = np.ones(4, np.float32), np.full(4, 7, np.float32)
    with handler(interrupt), pytest.raises(Interrupted):
        kernel.run((x,), out, (4,), threads)
    endless.go_on.set()
    endless.meets = False
    assert kernel.run((x,), out, (4,), threads) is out


def test_other_threads_leave_signals_to_the_main_thread(node: Any, linearizer: Any) -> None:
    endless = Endless()
    caller = threading.Thread(target=endless.program(linearizer).run, args=([node(word=1)], True))
    caller.start()
    try:
        with handler(interrupt), pytest.raises(Interrupted):
            caller.join()
    finally:
        endless.go_on.set()
        caller.join()
    assert not endless.stopped


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_handler_that_forks(node: Any, linearizer: Any) -> None:
    """The child has no thread that runs the function: it begins again, and the parent's goes on."""
    endless, children = Endless(), []

    def handle() -> None:
        if not children:
            children.append(os.fork())
            endless.go_on.set()

    with handler(handle):
        found = endless.program(linearizer).run([node(word=1)], True).num_nodes
    if children[0] == 0:
        os._exit(40 + found)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 41


LONG = """
import signal, sys
import numpy as np
import cortex
from cortex import Forest

@cortex.model
def tree(node, w):
    if node.is_leaf:
        return w.emb[node.word]
    return cortex.tanh(w.U @ cortex.sum(tree(k, w) for k in node.children))

rng = np.random.default_rng(0)
weights = {"emb": rng.normal(size=(9, 512)) / 9, "U": rng.normal(size=(512, 512)) / 30}
fast = cortex.compile(tree, weights, threads=THREADS)

def forest(parents):
    return Forest.from_parents(parents, fields={"word": np.arange(len(parents)) % 9})

small = forest(np.arange(20) // 3 - 1)
want = fast(small).nodes.out
n = 150_000
shapes = {
    "chain": np.arange(n) - 1,
    "wide": np.concatenate([[-1], np.zeros(n, int), np.arange(1, n + 1)]),
}
big = forest(shapes["SHAPE"])
out = np.full((len(big.roots), 512), 7, np.float32)

def interrupt(number, frame):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    fast(big, out=out)
    signal.pause()
except KeyboardInterrupt:
    assert (out == 7).all(), "the call went on to its end"
assert (fast(small).nodes.out == want).all()
"""


@pytest.mark.parametrize(("shape", "threads"), [("chain", 1), ("chain", 2), ("wide", 1), ("wide", 2)])
def test_compiled_code_is_stopped(shape: str, threads: int) -> None:
    """Seconds of work, in many small groups or in one large one, and an alarm long before its end."""
    script = LONG.replace("THREADS", str(threads)).replace("SHAPE", shape)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")

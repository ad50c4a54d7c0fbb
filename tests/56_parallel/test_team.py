"""The team of threads: concurrent callers, forks, the end of the process, what is refused."""

from __future__ import annotations

import ast
import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cortex import _native
from cortex.errors import ModelError, StructureError

Build = Callable[..., tuple[Any, list[Any]]]


def test_threads_of_a_call(compiled: Build) -> None:
    fast, trees = compiled("tree_gru", 64, 1)
    want = fast(trees).nodes.h
    assert fast.compilations == 1
    assert (fast(trees, threads=2).nodes.h == want).all()
    assert fast.compilations == 2  # for several threads, from now on for any number
    assert (fast(trees, threads=3).nodes.h == want).all()
    assert (fast(trees).nodes.h == want).all()
    assert fast.compilations == 2


@pytest.mark.parametrize("threads", [0, -1, 65, 2.0, True, "2"])
def test_refused(compiled: Build, threads: Any) -> None:
    fast, trees = compiled("tree_fc", 8, 1)
    with pytest.raises(ModelError, match=r"threads=.*: a call runs on 1 to 64 threads"):
        fast(trees, threads=threads)
    with pytest.raises(ModelError, match="a call runs on 1 to 64 threads"):
        compiled("tree_fc", 8, threads)


def test_workers_do_not_wait_for_requests_that_fail(compiled: Build) -> None:
    fast, trees = compiled("tree_lstm", 64, 2)
    for _ in range(20):
        fast(trees)
    start = of_other_threads()
    for _ in range(50):
        with pytest.raises(StructureError):
            fast([*trees, 3])
        assert len(fast([]).h) == 0
        fast.bind(trees)
        time.sleep(0.004)
    assert of_other_threads() - start < 0.05  # 50 times 2 ms, and as much again, if workers went on looking


def of_other_threads() -> float:
    return time.process_time() - time.thread_time()


def test_concurrent_callers(compiled: Build) -> None:
    fast, trees = compiled("tree_lstm", 64, 2, 8)
    want = [fast([t], threads=1).nodes.h for t in trees]
    wrong: list[int] = []

    def work(seed: int) -> None:
        for i in np.random.default_rng(seed).integers(len(trees), size=100):
            if (fast([trees[i]], threads=1 + seed % 3).nodes.h != want[i]).any():
                wrong.append(int(i))

    callers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert not wrong


def test_bound_requests_on_a_team(compiled: Build) -> None:
    fast, trees = compiled("tree_lstm", 64, 2, 8)
    want = fast(trees, threads=1).nodes.h
    bound = [fast.bind(trees, threads=t) for t in (1, 2, 3)]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(50):
            if (bound[number]().nodes.h != want).any():
                wrong.append(number)

    callers = [threading.Thread(target=work, args=(i,)) for i in range(len(bound))]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert not wrong


def test_a_second_caller_does_not_wait() -> None:
    """Two calls meet in the middle of the function: neither can be waiting for the other's team."""
    both = threading.Barrier(2, timeout=20)
    seen: list[int] = []
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)

    def body(arrays: int, sizes: int, thread: int, threads: int, team: int) -> None:
        seen.append(threads)
        if thread == 0:
            both.wait()

    entry = function(body)
    address = ctypes.cast(entry, ctypes.c_void_p).value
    callers = [threading.Thread(target=_native.run_entry, args=(address, [0, 0], 0)) for _ in range(2)]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert not both.broken
    assert sorted(seen) == [1, 2, 2]


def test_a_request_that_is_faster_alone_runs_alone() -> None:
    """A function that takes 3 ms on a team and nothing on one thread; the team is tried again now and then."""
    calls, on_team = 200, []
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)

    def body(arrays: int, sizes: int, thread: int, threads: int, team: int) -> None:
        if thread == 0:
            on_team.append(threads > 1)
            until = time.perf_counter() + (0.003 if threads > 1 else 0.0)
            while time.perf_counter() < until:
                pass

    entry = function(body)
    program = _native.Program(
        _native.Linearizer(_spec()),
        {"entry": ctypes.cast(entry, ctypes.c_void_p).value, "keepalive": entry, "sizes": [], "arrays": []},
    )
    node = type("Node", (), {"children": []})()
    for _ in range(calls):
        program.run([node], True, 2)
    assert len(on_team) == calls
    assert sum(on_team) < calls // 2  # 15 where nobody interrupts: seven, four more of the first sixteen, four later on


def _spec() -> dict[str, Any]:
    return {
        "slots": [], "lists": ["children"], "accessors": {}, "num_kinds": 1, "tree": ("kind", 0),
        "int_fields": [], "float_fields": [], "uses": [[]], "needs": [[]],
    }  # fmt: skip


ONE_PROCESSOR = """
import os, random, time
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
import cortex
from cortex import zoo
entry = zoo.load("tree_gru")
trees = entry.structures(random.Random(0), 1, 50)
fast = cortex.compile(entry.model, entry.weights(128, 50), examples=trees, threads=2)
used = {1: [], 2: []}
for _ in range(20):
    for threads in used:
        start = time.process_time()
        for _ in range(20):
            got = fast(trees, threads=threads).nodes.h
        used[threads].append(time.process_time() - start)
assert (got == fast(trees, threads=1).nodes.h).all()
print(sum(used[2]) / sum(used[1]))
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processors cannot be chosen on this system")
def test_threads_without_processors_are_done_without() -> None:
    """Two threads on one processor wait for each other; after some calls one of them does the work alone."""

    def ratio() -> float:
        done = subprocess.run([sys.executable, "-c", ONE_PROCESSOR], timeout=60, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return float(done.stdout)

    assert any(ratio() < 1.5 for _ in range(4))  # more only where others take the processor at the wrong time


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_fork(compiled: Build) -> None:
    fast, trees = compiled("tree_gru", 64, 2)
    want = fast(trees).nodes.h
    for _ in range(3):
        child = os.fork()
        if child == 0:
            good = all((fast(trees, threads=t).nodes.h == want).all() for t in (2, 3))
            os._exit(0 if good else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert (fast(trees).nodes.h == want).all()


PROGRAM = """
import random, sys, threading
import cortex
from cortex import zoo
entry = zoo.load("tree_gru")
trees = entry.structures(random.Random(0), 2, 50)
fast = cortex.compile(entry.model, entry.weights(128, 50), examples=trees, threads=3)
fast(trees)
{ending}
"""


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "sys.exit(0)",
        "import atexit; atexit.register(lambda: fast(trees))",
        "fast.keep = fast",
        "caller = threading.Thread(target=lambda: [fast(trees) for _ in range(50)]); caller.start()",
    ],
)
def test_the_process_ends(ending: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(ending=ending)], timeout=60, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_workers_round_as_the_caller_does(compiled: Build) -> None:
    """Denormal numbers flushed to zero by the caller are flushed by its workers too."""
    torch = pytest.importorskip("torch")
    fast, trees = compiled("tree_fc", 128, 2)
    fast(trees)
    if not torch.set_flush_denormal(True):
        pytest.skip("this machine cannot flush denormal numbers")
    try:
        assert (fast(trees, threads=2).nodes.h == fast(trees, threads=1).nodes.h).all()
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.parametrize("microseconds", [0, 1000])
def test_spin_and_park(compiled: Build, microseconds: int) -> None:
    fast, trees = compiled("tree_fc", 64, 2)
    want = fast(trees, threads=1).nodes.h
    _native.set_team_spin(microseconds)
    try:
        for pause in (0.0, 0.0, 0.0005, 0.01, 0.0, 0.05):
            time.sleep(pause)
            assert (fast(trees, threads=3).nodes.h == want).all()
    finally:
        _native.set_team_spin(50)


WOKEN = """
import os, sys, time
from cortex import _native
allowed = {int(c) for c in sys.argv[1].split(",")}
os.sched_setaffinity(0, allowed)
before = set(os.listdir("/proc/self/task"))

def workers():
    return set(os.listdir("/proc/self/task")) - before

def is_parked(worker):
    with open(f"/proc/self/task/{worker}/stat") as f:
        return f.read().rpartition(")")[2].split()[0] == "S"

for caller in sorted(allowed):
    _native.barrier_nanoseconds(2)
    while not all(map(is_parked, workers())):
        time.sleep(0.001)
    os.sched_setaffinity(0, {caller} if len(allowed) > 1 else allowed)
    os.sched_setaffinity(0, allowed)  # it may go elsewhere, but has no reason to
    _native.barrier_nanoseconds(2)
print([sorted(os.sched_getaffinity(int(w))) for w in workers()])
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processors cannot be chosen on this system")
def test_workers_keep_off_the_processor_of_their_caller() -> None:
    """A worker that is woken may run on all processors that the process has, but for one; on that one if it is all."""
    processors = sorted(os.sched_getaffinity(0))
    for allowed in (processors, processors[:1]):
        given = ",".join(map(str, allowed))
        command = [sys.executable, "-c", WOKEN, given]
        done = subprocess.run(command, timeout=60, capture_output=True, text=True, check=True)
        (found,) = ast.literal_eval(done.stdout)
        assert set(found) <= set(allowed)
        assert len(found) == max(1, len(allowed) - 1)

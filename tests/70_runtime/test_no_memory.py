"""Memory or threads that the system does not give: a MemoryError or fewer threads, and everything works afterwards.

The native extension allocates with C++'s operator new. A small library that is loaded before it has its own, which
fails when it is told to: the first time, the second time, and so on until a call needs no more of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARY = r"""
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <atomic>
#include <cstdlib>
#include <new>

static std::atomic<long> left{-1};       // allocations until one fails
static std::atomic<bool> no_threads{false};

static bool fails() { return left.load() >= 0 && left.fetch_sub(1) == 0; }

extern "C" void fail_after(long allocations) { left.store(allocations); }
extern "C" int has_failed() { return left.load() == -1; }
extern "C" void refuse_threads(int whether) { no_threads.store(whether != 0); }

static void* get(std::size_t bytes) {
  void* p = fails() ? nullptr : std::malloc(bytes ? bytes : 1);
  if (!p) throw std::bad_alloc();
  return p;
}
void* operator new(std::size_t bytes) { return get(bytes); }
void* operator new[](std::size_t bytes) { return get(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return fails() ? nullptr : std::malloc(bytes); }
void* operator new(std::size_t bytes, std::align_val_t align, const std::nothrow_t&) noexcept {
  const auto a = static_cast<std::size_t>(align);
  return fails() ? nullptr : std::aligned_alloc(a, (bytes + a - 1) / a * a);
}
void* operator new(std::size_t bytes, std::align_val_t align) {
  const auto a = static_cast<std::size_t>(align);
  void* p = fails() ? nullptr : std::aligned_alloc(a, (bytes + a - 1) / a * a);
  if (!p) throw std::bad_alloc();
  return p;
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*run)(void*), void* given) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const Create create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return no_threads.load() ? EAGAIN : create(thread, how, run, given);
}
"""

START = """
import ctypes, os, random, signal
import numpy as np
import cortex
from cortex import Forest, zoo

library = ctypes.CDLL(os.environ["LD_PRELOAD"])
entry = zoo.load("tree_lstm")
trees = entry.structures(random.Random(0), 3, 20)
fast = cortex.compile(entry.model, entry.weights(16, 20), examples=trees, threads=3)
alone = fast(trees, threads=1).nodes.h

def threads():
    return len(os.listdir("/proc/self/task"))

def check():
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, [])
    for count in (1, 2, 3):
        for _ in range(3):
            assert (fast(trees, threads=count).nodes.h == alone).all()
"""

MEMORY = """
outcomes = set()

def sweep(call, want):
    for k in range(1000):
        library.fail_after(ctypes.c_long(k))
        try:
            found = call()
            outcome = "value"
        except MemoryError:
            outcome = "error"
        failed = library.has_failed()
        library.fail_after(ctypes.c_long(-1))
        if outcome == "value":
            assert (found == want).all()
        outcomes.add((outcome, bool(failed)))
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, [])
        if not failed:
            return
    raise AssertionError("a call needs thousands of allocations")

parents = Forest.from_parents(np.arange(9) // 2 - 1, fields={"word": np.arange(9)})
larger = entry.structures(random.Random(1), 40, 20)
want = cortex.compile(entry.model, entry.weights(16, 20), examples=trees)(larger).nodes.h
sweep(lambda: fast(trees, threads=3).nodes.h, alone)  # makes the team
sweep(lambda: fast.bind(trees, threads=3)().nodes.h, alone)
sweep(lambda: fast(larger, threads=2).nodes.h, want)
w = np.ones((3, 5), np.float32)
multiply = cortex.matmul(w, threads=2)
multiply(np.ones((2, 3), np.float32))
sweep(lambda: multiply(np.ones((2, 3), np.float32)), 3)
check()
assert ("error", True) in outcomes and ("value", True) in outcomes, outcomes
"""

NO_THREADS = """
library.refuse_threads(1)
before = threads()
for count in (2, 3):
    assert (fast(trees, threads=count).nodes.h == alone).all()
assert threads() == before
check()
library.refuse_threads(0)
check()
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None or not Path("/proc/self/task").exists():
        pytest.skip("needs a C++ compiler and /proc")
    folder = tmp_path_factory.mktemp("library")
    (folder / "failing.cpp").write_text(LIBRARY)
    command = [compiler, "-std=c++17", "-O1", "-shared", "-fPIC", "failing.cpp", "-o", "failing.so", "-ldl"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    return folder / "failing.so"


@pytest.mark.parametrize("script", [MEMORY, NO_THREADS], ids=["memory", "threads"])
def test_what_the_system_does_not_give(library: Path, script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", START + script],
        env=os.environ | {"LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")

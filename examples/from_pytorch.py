"""Checks a compiled module against the module itself, and measures both; the examples `from_pytorch_*.py` use it."""

import time
from statistics import median

import torch


def compare(module, fast, structures, seconds=0.5):
    """The same numbers, and the median time of a structure, one at a time and on one thread each."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            for structure in structures:
                torch.testing.assert_close(fast(structure), module(structure), rtol=1e-4, atol=1e-5)
            times = {module: [], fast: []}
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                for run, found in times.items():  # in turns: a busy machine is busy for both
                    start = time.process_time()  # other programs' work does not count
                    for structure in structures:
                        run(structure)
                    found.append((time.process_time() - start) / len(structures) * 1e6)
    finally:
        torch.set_num_threads(threads)
    eager, compiled = median(times[module]), median(times[fast])
    print(f"PyTorch {eager:.0f} us, compiled {compiled:.0f} us for a structure: {eager / compiled:.1f} times as fast")


if __name__ == "__main__":
    print("run one of the examples from_pytorch_*.py")

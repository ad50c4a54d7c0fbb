"""The programs that tests of packages need, and where the C runtime is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cortex.package import write_package as package

RUNTIME = Path(package.__file__).parent / "c"
CROSS = "aarch64-linux-gnu-gcc"
EMULATOR = "qemu-aarch64"


def found(program: str) -> str:
    """The program, or a skipped test that says what is missing."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed; `make test-aarch64` installs what AArch64 needs, apt-get the rest")
    return program

"""Compilers, and the C runtime compiled once by each of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from c_program import SANITIZERS, WARNINGS, Package, checked, exported_model
from c_tools import CROSS, RUNTIME, found

import cortex


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Path, ...]]:
    """`runtime(compiler, *flags)`: the objects of the runtime."""
    known: dict[tuple[str, ...], tuple[Path, ...]] = {}

    def build(compiler: str, *flags: str) -> tuple[Path, ...]:
        key = (compiler, *flags)
        if key not in known:
            to = tmp_path_factory.mktemp("runtime")
            sources = sorted(RUNTIME.glob("*.c"))
            for source in sources:
                checked([found(compiler), *WARNINGS, *flags, "-O1", "-c", source, "-o", to / f"{source.stem}.o"])
            known[key] = tuple(to / f"{source.stem}.o" for source in sources)
        return known[key]

    return build


@pytest.fixture
def exported(tmp_path: Path, runtime: Callable[..., tuple[Path, ...]]) -> Callable[..., tuple[Package, Path]]:
    """`exported(fast, name, compiler=, sanitize=)`: a package of `fast`, and its program."""

    def make(fast: Any, name: str, compiler: str = "gcc", sanitize: bool = False) -> tuple[Package, Path]:
        flags = SANITIZERS if sanitize else ("-static",) if compiler == CROSS else ()
        directory = tmp_path / name
        cortex.export(fast, directory, name)
        made = Package(exported_model(fast), name, directory)
        return made, made.build((compiler,), (*WARNINGS, *flags), runtime(compiler, *flags))

    return make

"""Options and fixtures shared by all tests."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from breadth import LONG
from hypothesis import HealthCheck, settings

from cortex.cost.machine import Machine
from cortex.runtime import measure_machine

GOLDEN = Path(__file__).parent / "golden"

os.environ.setdefault("CORTEX_VERIFY", "1")  # every program is verified after every step and pass
if "PYTEST_XDIST_WORKER" not in os.environ:  # workers share the folder of the process that started them
    _CACHE = tempfile.TemporaryDirectory(prefix="cortex-tests-")  # removed at exit
    os.environ["CORTEX_CACHE"] = _CACHE.name  # what the user has kept neither helps nor suffers
    Machine.example().save(measure_machine.kept_in(Path(_CACHE.name)))  # choices do not depend on who else is at work

# The same examples every time, others in the long run; a busy machine is no reason to fail.
settings.register_profile("cortex", deadline=None, derandomize=not LONG, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("cortex")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files from what the compiler does now"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Tests call compiled modules for their results; those of the warning about gradients ask for it."""
    config.addinivalue_line("filterwarnings", "ignore:the results of a compiled module have no gradients:UserWarning")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)`: `text` must equal tests/golden/<name>.txt, or becomes it when goldens are updated."""
    update = request.config.getoption("--update-golden")

    def check(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.rstrip("\n") + "\n")
        assert path.exists(), f"no golden file {path.name}; create it with --update-golden"
        assert _comparable(text) == _comparable(path.read_text())

    return check


def _comparable(text: str) -> str:
    """A golden text, or one to compare with it.

    Which part of a line an error underlines depends on the positions that Python gives its instructions, which differ
    from version to version: elsewhere than on 3.11, which part it is is not compared.
    """
    lines = text.rstrip("\n").split("\n")
    kept = lines if sys.version_info[:2] == (3, 11) else [line for line in lines if not re.fullmatch(r" *\^+", line)]
    return "\n".join(kept)


# Where torch is not installed, what asks for it is skipped: whole files that import it, and tests that do.

HAS_TORCH = find_spec("torch") is not None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    report = yield
    if not HAS_TORCH and report.failed and "No module named 'torch'" in str(report.longrepr):
        report.outcome, report.longrepr = "skipped", (str(collector.path), 1, "Skipped: torch is not installed")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    try:
        return (yield)
    except ModuleNotFoundError as error:
        if not HAS_TORCH and error.name == "torch":
            pytest.skip("torch is not installed")
        raise

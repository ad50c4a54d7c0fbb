"""Options and fixtures shared by all tests."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
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
        assert text.rstrip("\n") + "\n" == path.read_text()

    return check

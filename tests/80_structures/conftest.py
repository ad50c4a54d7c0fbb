"""Where the public treebanks and circuits are, if this machine has them."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data() -> Path:
    folder = Path(__file__).parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data beside the project")
    return folder

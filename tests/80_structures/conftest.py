"""Where the public treebanks and circuits are, if this machine has them."""

import sys
import warnings
from contextlib import suppress
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

with suppress(ImportError), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch

    own = torch.index_select, torch.select
    import torch_geometric  # noqa: F401 - it puts functions of its own in their place, which TorchScript cannot compile

    torch.index_select, torch.select = own


@pytest.fixture(scope="session")
def data() -> Path:
    folder = Path(__file__).parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data beside the project")
    return folder

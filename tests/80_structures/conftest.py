"""Where the public treebanks and circuits are, if this machine has them."""

import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from cortex.options import Options

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


@pytest.fixture(scope="session")
def torch_geometric() -> Any:
    """The package, which takes seconds to import and uses what its PyTorch calls deprecated."""
    torch = pytest.importorskip("torch")
    own = torch.index_select, torch.select
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package = pytest.importorskip("torch_geometric")
        pytest.importorskip("torch_geometric.data")
    torch.index_select, torch.select = own  # it puts functions of its own in their place: TorchScript compiles none
    return package


@pytest.fixture(scope="session")
def data() -> Path:
    folder = Options.from_environment().data.resolve()
    if not folder.is_dir():
        pytest.skip("needs the data that CORTEX_DATA names, or ../shared/data beside the project")
    return folder

"""What stands for a row of a tensor that is given to the module beside the structure: `inputs[node.idx]`."""

from __future__ import annotations

from typing import Any

import torch

from cortex.frontend.spans import fail
from cortex.frontend.torch.fields import field_tensor
from cortex.frontend.torch.node_field import IndexableTorchNodeField


class RowField(IndexableTorchNodeField):
    """A row of a tensor that is given beside the structure; calls with rows of another form are compiled again."""

    __slots__ = ()

    _cortex_is_row = True

    def _cortex_class(self) -> type:
        return torch.Tensor

    def _cortex_ask_form(self) -> None:
        """Nothing: it is no fact of a node."""

    def _cortex_array_attribute(self, sample: Any, name: str) -> Any:
        return torch.as_tensor(sample).dtype if name == "dtype" else getattr(field_tensor(self), name)

    def _cortex_item(self, at: int) -> Any:
        raise fail(
            "a row of a tensor of integers that is given beside the structure is used; one integer is accepted: give "
            "a tensor with an integer for each node."
        )

"""What a compiled model is called with: one structure, or a batch of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cortex.errors import StructureError
from cortex.runtime.forest import Forest


def root_nodes(batch: Any) -> list[Any]:
    """The root nodes of a request, as objects."""
    return list(batch.root_nodes()) if isinstance(batch, Forest) else list(batch)


def batch_of(structures: Any) -> Any:
    """Lists and tuples themselves are batches; subclasses of them (as some tree classes are) are structures."""
    if type(structures) in (list, tuple) or isinstance(structures, Forest):
        return structures
    if hasattr(type(structures), "__next__") and isinstance(structures, Iterator):
        raise StructureError(
            f"the model is called with a {type(structures).__name__}, which can be read only once; it takes a "
            "structure, a list of structures or a Forest"
        )
    return [structures]

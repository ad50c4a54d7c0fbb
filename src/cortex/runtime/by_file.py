"""Compiled models are pickled and copied as their files are: by the bytes that `fast.save` writes."""

from __future__ import annotations

import io
from typing import Any

from cortex.errors import CortexError


class ByFile:
    """A compiled model, which pickles as the bytes of its file. Training, and kinds not met yet, stay behind."""

    as_torch = False
    """Are results torch tensors?"""

    def save(self, file: Any) -> None:
        """Write the bytes of a file."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        """The function that loads it, and the bytes; TypeError for a model that has no file."""
        from importlib import import_module  # the loader knows all models, and models know no loader

        loader = import_module("cortex.loader")
        content = io.BytesIO()
        try:
            self.save(content)
            loader.refuse_functions(content.getvalue())
        except CortexError as error:
            raise TypeError(f"{self!r} cannot be pickled or copied: {error}") from None
        return loader.load_pickled, (content.getvalue(), self.as_torch)

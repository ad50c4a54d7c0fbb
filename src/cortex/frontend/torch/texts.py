"""What follows from a text of a node: `node.word.lower()`, `node.word[0]`, `node.word.isdigit()`.

It is another field of the node, so that words need not be told apart. It is no real text, though, and Python's own
functions take nothing else: `getattr(self, node.op.lower())`. Where that fails, the value of the text is asked for
instead, in all of the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cortex.errors import ModelError
from cortex.frontend.signals import Restart
from cortex.frontend.torch.steps import Attr, Called, Step

METHODS = (
    "lower", "upper", "casefold", "title", "capitalize", "swapcase", "strip", "lstrip", "rstrip", "replace",
    "removeprefix", "removesuffix", "zfill", "startswith", "endswith", "isdigit", "isdecimal", "isnumeric", "isalpha",
    "isalnum", "isupper", "islower", "istitle", "isspace", "count", "find", "__getitem__",
)  # fmt: skip
"""Those that give a text, a number or a truth value."""


class Texts:
    """Whether what follows from texts is made fields."""

    def __init__(self) -> None:
        self._are_fields = True
        self._are_used = False

    def steps(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Step, ...] | None:
        """From a text to what a method of it gives; None where the value of the text is to be asked for."""
        if not self._are_fields or method not in METHODS or kwargs or not all(map(_is_constant, args)):
            return None
        self._are_used = True
        return Attr(method), Called(args)

    @contextmanager
    def tried(self) -> Iterator[None]:
        """Trace again without fields where tracing with them fails in a way that may come of them."""
        self._are_used = False
        try:
            yield
        except (TypeError, ModelError):
            if not (self._are_used and self._are_fields):
                raise
            self._are_fields = False
            raise Restart from None


def _is_constant(x: Any) -> bool:
    return all(map(_is_constant, x)) if type(x) is tuple else type(x) in (str, int, type(None))

"""Refusals that hold only as long as a model function is traced node by node.

Such a trace knows one routine that is called on children and is passed nothing. Where a function does more, it is
compiled as modules are: calls are seen, and the structures of examples, or of the first call, tell what they are made
on (torch/function_entry.py).
"""

from __future__ import annotations

from typing import NoReturn

from cortex.errors import ModelError
from cortex.frontend.spans import fail
from cortex.ir.source import Span


class Beyond(ModelError):
    """The function does something for which its calls have to be seen."""


class BetterByCalls(Beyond):
    """The function can be traced node by node, but kinds would be many. Raised where there are structures to see."""


def beyond(message: str) -> ModelError:
    """The refusal at the user's expression that is being evaluated: `raise beyond("...")`."""
    return fail(message, Beyond)


def beyond_at(message: str, span: Span | None) -> Beyond:
    """The refusal of something that was found in the code."""
    return Beyond(message, span)


def prefer_calls(why: str) -> NoReturn:
    """Let the calls of the function be seen; who cannot do that goes on node by node."""
    raise fail(why, BetterByCalls)

"""Where in the user's source something was written."""

from __future__ import annotations

from cortex.ir.node import Node, node


@node
class Span(Node):
    """Columns `column`..`end` (0-based) of line `line` (1-based) of `file`; `text` is that line."""

    file: str
    line: int
    column: int
    end: int
    text: str

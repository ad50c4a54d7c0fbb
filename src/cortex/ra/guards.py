"""What a guard tells about the number of children."""

from __future__ import annotations

from cortex.ra import ir


def length_told(guard: tuple[ir.Fact, ...], name: str, path: tuple[ir.Hop, ...] = ()) -> int | None:
    """The number of children in the list relation `name` of the node at `path`, if `guard` tells it."""
    for fact in guard:
        match fact:
            case ir.Fact(ir.IsLeaf(at), True) if at == path:
                return 0
            case ir.Fact(ir.IsNone(asked, at), True) if (asked, at) == (name, path):
                return 0
            case ir.Fact(ir.Length(asked, at), int(answer)) if (asked, at) == (name, path):
                return answer
            case ir.Fact(ir.HasLength(asked, count, at), True) if (asked, at) == (name, path):
                return count
            case _:
                pass
    return None

"""What a guard tells about children."""

from __future__ import annotations

from collections.abc import Sequence

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


def has_some(guard: tuple[ir.Fact, ...], name: str, relations: tuple[str, ...] | None) -> bool:
    """Does `guard` tell that there are children in the list relation `name`? `relations` are all, if they are known."""
    for fact in guard:
        match fact:
            case ir.Fact(ir.IsLeaf(()), False) if relations == (name,):
                return True
            case ir.Fact(ir.Length(asked, ()), answer) if asked == name and answer:
                return True
            case ir.Fact(ir.HasLength(asked, count, ()), answer) if asked == name and answer is (count > 0):
                return True
            case _:
                pass
    return False


def cover_all_nodes(guards: Sequence[tuple[ir.Fact, ...]]) -> bool:
    """Does every node that there may be fit one of `guards`, which are the ways down a tree of questions?

    Yes where each question that is asked has a way on for both of its answers; a question with more is never done.
    """
    if not guards or () in guards:
        return bool(guards)
    test = guards[0][0].test
    ways: dict[object, list[tuple[ir.Fact, ...]]] = {True: [], False: []}
    for first, *rest in guards:
        if first.test != test or not isinstance(first.answer, bool):
            return False
        ways[first.answer].append(tuple(rest))
    return all(cover_all_nodes(way) for way in ways.values())


def can_be_leaf(kind: ir.Kind, m: ir.Model) -> bool:
    """May a node of this kind have no child in any relation?"""
    for fact in kind.guard:
        match fact:
            case ir.Fact(ir.IsLeaf(()), answer):
                return answer is True
            case ir.Fact(ir.IsAboveLeaves(()), True):
                return False
            case ir.Fact(ir.IsNone(name, ()), False) if name in m.slots:
                return False
            case ir.Fact(ir.HasLength(name, count, ()), answer) if name in m.lists and answer is (count > 0):
                return False  # there are some, or there are not none
            case ir.Fact(ir.Length(name, ()), answer) if name in m.lists and answer:
                return False
    paths = [let.op.path for let in kind.lets if isinstance(let.op, ir.State | ir.Field)]
    paths += [fact.test.path for fact in kind.guard]
    return not any(path and not isinstance(path[0], ir.Each) for path in paths)

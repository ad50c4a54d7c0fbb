"""What a node adds to collections, for any number of children.

before:  what children[0], children[1] and children[2] add, then itself         (a trace for 3 children)
after:   what each of children adds, then itself
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cortex.frontend.arity.values import NotAlike
from cortex.ra.ir import Collect, Each, Item, Slot

Entry = Slot | Item | Each | None


def rolled_collects(
    traces: Iterable[tuple[Mapping[str, int], tuple[Collect, ...]]],
) -> tuple[Collect, ...]:
    """The entries for any number of children of which each trace has an instance; `NotAlike` where there are none."""
    found = [
        tuple(replace(each, entries=_rolled(each.entries, lengths)) for each in collects)
        for lengths, collects in traces
    ]
    if any(each != found[0] for each in found):
        raise NotAlike("what it adds to a list depends on the number of its children")
    return found[0]


def written_out(collects: tuple[Collect, ...], lengths: Mapping[str, int]) -> tuple[Collect, ...]:
    """The entries for these numbers of children."""

    def items(entry: Entry) -> list[Entry]:
        if isinstance(entry, Each) and entry.name in lengths:
            return [Item(entry.name, i) for i in range(lengths[entry.name])]
        return [entry]

    return tuple(replace(each, entries=tuple(x for e in each.entries for x in items(e))) for each in collects)


def _rolled(entries: tuple[Entry, ...], lengths: Mapping[str, int]) -> tuple[Entry, ...]:
    made: list[Entry] = []
    at = 0
    while at < len(entries):
        entry = entries[at]
        count = lengths.get(entry.name, 0) if isinstance(entry, Item) else 0
        run = [Item(entry.name, i) for i in range(count)] if isinstance(entry, Item) else []
        if run and list(entries[at : at + count]) == run:
            made.append(Each(run[0].name))
            at += count
        else:
            made.append(entry)
            at += 1
    return tuple(made)

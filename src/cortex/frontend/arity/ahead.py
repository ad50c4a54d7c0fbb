"""Checking a kind of any arity for all numbers of children, before a model is saved: afterwards nobody can.

Each check is a trace, which takes a fraction of a millisecond for each child. So small numbers are all checked; of the
large ones, those that some number in the code or around it may stand for (see `near`), and a few others. Numbers
between two of these for which the kind is right are taken to be so too: the code has nothing that it could tell them
by. Code that tells small numbers apart (`len(node.children) % 7 == 0`) is given no such credit.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise, product
from typing import Any

import numpy as np

from cortex.frontend.arity.at_once import insert
from cortex.frontend.arity.check import agrees_at, with_equal_ones
from cortex.frontend.arity.lengths import CheckedLengths
from cortex.frontend.arity.mentions import EXACT, near, numbers_in
from cortex.frontend.arity.supposing import supposing
from cortex.frontend.arity.told import answers_alike
from cortex.frontend.decision import DecisionTree, Traced
from cortex.frontend.facts import Facts
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.signals import Impossible, MissingAttribute, NeedsExample, NeedsStates
from cortex.frontend.trace_kind import trace_kind

FIRST, ALL, ALL_WITHOUT_CREDIT = 5, 16, 64
"""Up to `ALL` children in one list, all numbers are checked; from `FIRST` on, the kind must be right for them."""
SOME = (17, 33, 64, 97, 200)
ALL_OF_SEVERAL, SOME_OF_SEVERAL, FEW = 4, (9, 33), (0, 1, 3)
"""The same for two lists, whose combinations are checked: `FEW` children in one list go with many in the other."""
LAST_OF_SEVERAL = 255
ALL_OF_STEPS, LAST_OF_STEPS = 8, 66
MOST_OWN = 8
"""So many numbers get kinds of their own, each of which is compiled."""
MOST_SPECIAL = 96
"""Code that has more numbers than these to tell others by is given no credit."""


def check_ahead(k: Knowledge, tree: DecisionTree, code: Iterable[Any]) -> None:
    """Check kinds of any arity as far as can be; `code` is what decides what children are used for.

    The first numbers that such a kind is not right for get kinds of their own.
    """
    numbers = numbers_in([*code, *k.weights.shapes()])
    for kind in list(tree.order):
        checked = kind.checked
        if checked is None or kind.found_from is None:
            continue
        if len(checked.lists) == 1:
            wrong = [n for n in _check_list(k, kind, checked, numbers) if {checked.lists[0]: n} not in checked]
            for n in wrong[:MOST_OWN]:
                _add_own(k, tree, kind, {checked.lists[0]: n})
        elif len(checked.lists) == 2:
            _check_pair(k, kind, checked, numbers)


def _add_own(k: Knowledge, tree: DecisionTree, kind: Traced, lengths: dict[str, int]) -> None:
    """Add the kind of a node with these numbers of children, unless there is one or the model fails for such a node."""
    assert kind.found_from is not None
    facts = Facts(supposing(kind.found_from, with_equal_ones(k, lengths), imagined=k.model.explores))
    if tree.find(facts.oracle.answer) not in (None, kind):
        return
    with suppress(Exception, Impossible, MissingAttribute, NeedsExample, NeedsStates):
        insert(k, tree, trace_kind(k, facts))


def _check_list(k: Knowledge, kind: Traced, checked: CheckedLengths, numbers: set[int]) -> list[int]:
    """Check one list; the numbers that were tried, smaller ones first."""
    if kind.sequences is not None:
        _check_steps(k, kind, checked, numbers)
        return []
    (name,) = checked.lists
    last = min(checked.most, EXACT)
    asked = [n for n in range(last + 1) if answers_alike(k, kind.guard, {name: n})]
    right = {n: _check(k, kind, (n,)) for n in asked if n <= ALL}
    special = [n for n in near(numbers, ALL + 1, last) if n in asked]
    is_alike = bool(asked) and all(is_right for n, is_right in right.items() if n >= FIRST)
    if not is_alike or len(special) > MOST_SPECIAL or k.model.mentions().periodic:
        for n in range(ALL + 1, ALL_WITHOUT_CREDIT + 1):
            _check(k, kind, (n,))
        return list(right)
    chosen = [*(max((m for m in asked if m <= n), default=asked[0]) for n in (ALL, *SOME)), *special, asked[-1]]
    found = {n: _check(k, kind, (n,)) for n in chosen}
    for n in [n for n, is_right in found.items() if not is_right and ALL < n < asked[-1]]:
        found |= {other: _check(k, kind, (other,)) for other in (asked[asked.index(n) + i] for i in (-1, 1))}
    for n, following in pairwise(sorted(found)):
        if found[n] and found[following]:
            checked.table[n:following] = 1  # also of others that lie between, which are of another kind
    if found[asked[-1]] and checked.most == last:
        checked.table[asked[-1] :] = 1
    return sorted({*right, *found})


def _check_steps(k: Knowledge, kind: Traced, checked: CheckedLengths, numbers: set[int]) -> None:
    """The same for steps over items, of which a trace takes longer: for fewer numbers, and up to `LAST_OF_STEPS`."""
    right = [_check(k, kind, (n,)) for n in range(ALL_OF_STEPS + 1)]
    special = near(numbers, ALL_OF_STEPS + 1, LAST_OF_STEPS)
    if not all(right[FIRST:]) or len(special) > ALL or k.model.mentions().periodic:
        return
    found = {n: _check(k, kind, (n,)) for n in (ALL_OF_STEPS, *special, LAST_OF_STEPS)}
    for n, following in pairwise(sorted(found)):
        if found[n] and found[following]:
            checked.table[n:following] = 1


def _check_pair(k: Knowledge, kind: Traced, checked: CheckedLengths, numbers: set[int]) -> None:
    for counts in product(range(ALL_OF_SEVERAL + 1), repeat=2):
        _check(k, kind, counts)
    apart = k.model.families.names(k)  # traces for many of them, in all their combinations, would take minutes
    if kind.sequences is not None or any(name in apart for name in checked.lists):
        return
    special = near(numbers, ALL_OF_SEVERAL + 1, checked.most)
    mentioned = k.model.mentions()
    if len(special) > MOST_SPECIAL or mentioned.periodic or mentioned.most > checked.most:
        return
    large = sorted({*SOME_OF_SEVERAL, *special, LAST_OF_SEVERAL}, reverse=True)
    chosen = dict.fromkeys(pair for n in large for few in FEW for pair in ((n, n), (n, few), (few, n)))
    for has in product((False, True), repeat=2):  # which lists have children at all
        alike = [counts for counts in chosen if tuple(n > 0 for n in counts) == has]
        if alike and all(_check(k, kind, counts) for counts in alike):
            _conclude(checked, has)


def _conclude(checked: CheckedLengths, has: tuple[bool, ...]) -> None:
    """Take the kind to be right wherever it is for as many children, or for `ALL_OF_SEVERAL` where there are more."""
    counts = np.arange(checked.most + 1)
    like = checked.table[np.ix_(*[np.minimum(counts, ALL_OF_SEVERAL)] * len(has))]
    inside = np.ix_(*[(counts > 0) == each for each in has])
    checked.table[inside] |= like[inside]


def _check(k: Knowledge, kind: Traced, counts: tuple[int, ...]) -> bool:
    checked, oracle = kind.checked, kind.found_from
    assert checked is not None and oracle is not None
    lengths = dict(zip(checked.lists, counts, strict=True))
    if lengths not in checked and agrees_at(k, kind, oracle, lengths):
        checked.add(lengths)
    return lengths in checked
